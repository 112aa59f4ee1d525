//! A minute of 64 clients that do everything at once: no call fails but the few that a moment's overload explains,
//! no answer contradicts itself, and every count equals MySQL afterwards.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use likewise_tests::{Answer, Api, drain, eventually, fresh, likewise, setting};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Method;
use serde_json::Value;

const CLIENTS: u64 = 64;
const MINUTE: Duration = Duration::from_secs(60);
const USERS: usize = 200;
const POSTS: usize = 100;
const SEED: u64 = 5;
/// Fewer calls of a kind than this would show nothing.
const FEWEST: u64 = 20;
/// A busy machine stands still now and then for longer than a call waits. The call says so and when to come back; one in
/// so many may.
const REFUSED_ONE_IN: u64 = 1_000;

/// What a client may do, and how often of 100.
const CALLS: [(Call, u32); 10] = [
    (Call::Like, 30),
    (Call::Unlike, 15),
    (Call::Liked, 10),
    (Call::Count, 15),
    (Call::Counts, 8),
    (Call::Feed, 8),
    (Call::Likers, 5),
    (Call::Likes, 5),
    (Call::DeleteAccount, 3),
    (Call::DeletePost, 1),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Call {
    Like,
    Unlike,
    Liked,
    Count,
    Counts,
    Feed,
    Likers,
    Likes,
    DeleteAccount,
    DeletePost,
}

/// How often each call was answered how, and the deletions that were begun.
#[derive(Default)]
struct Seen {
    answers: BTreeMap<(Call, u16), u64>,
    deletions: Vec<String>,
}

struct Client {
    api: Api,
    users: Vec<String>,
    posts: Vec<String>,
    random: StdRng,
    seen: Seen,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minute_of_everything_leaves_every_count_exact() {
    let names = |what: &str, number: usize| -> Vec<String> {
        let base = fresh(what);
        (0..number).map(|number| format!("{base}-{number}")).collect()
    };
    let (users, posts) = (names("user", USERS), names("post", POSTS));
    let until = Instant::now() + MINUTE;
    let clients = (0..CLIENTS).map(|number| {
        let client = Client {
            api: Api::new(),
            users: users.clone(),
            posts: posts.clone(),
            random: StdRng::seed_from_u64(SEED + number),
            seen: Seen::default(),
        };
        tokio::spawn(client.run(until))
    });
    let mut all = Seen::default();
    for seen in join_all(clients).await {
        let seen = seen.expect("a client ends well");
        for (answer, times) in seen.answers {
            *all.answers.entry(answer).or_default() += times;
        }
        all.deletions.extend(seen.deletions);
    }
    println!("{:?}", all.answers);
    let served = all.answers.iter().filter(|((_, status), _)| matches!(status, 200 | 202));
    let calls: BTreeMap<Call, u64> = served.map(|((call, _), times)| (*call, *times)).collect();
    for (call, _) in CALLS {
        let times = calls.get(&call).copied().unwrap_or_default();
        assert!(times >= FEWEST, "{call:?} was served only {times} times");
    }
    let refused = all.answers.values().sum::<u64>() - calls.values().sum::<u64>();
    let most = calls.values().sum::<u64>() / REFUSED_ONE_IN;
    assert!(refused <= most, "{refused} calls were refused: {:?}", all.answers);

    let api = Api::new();
    for receipt in &all.deletions {
        eventually("the deletion is done and counted", MINUTE, async || {
            let answer = operator(&api, Method::GET, &format!("/v1/deletions/{receipt}")).await;
            (answer.json["counted"] == true).then_some(())
        })
        .await;
    }
    drain().await;
    let verified = likewise(&["verify"]).await;
    assert!(verified.status.success(), "{verified:?}");
}

async fn operator(api: &Api, method: Method, path: &str) -> Answer {
    let token = format!("Bearer {}", setting("OPERATOR_TOKEN"));
    api.call(method, &format!("W{path}"), &[("Authorization", &token)]).await
}

impl Client {
    async fn run(mut self, until: Instant) -> Seen {
        while Instant::now() < until {
            let call = CALLS.choose_weighted(&mut self.random, |(_, weight)| *weight);
            let (call, _) = *call.expect("there are calls");
            let answer = self.call(call).await;
            *self.seen.answers.entry((call, answer.status.as_u16())).or_default() += 1;
            if answer.status.is_success() {
                self.check(call, &answer.json);
            } else {
                let explained = answer.status == 503 && answer.headers.contains_key("retry-after");
                assert!(explained, "{call:?}: {answer:?}");
                println!("{call:?}: {}", answer.json);
            }
        }
        self.seen
    }

    async fn call(&mut self, call: Call) -> Answer {
        let user = self.users.choose(&mut self.random).expect("there are users").clone();
        let post = self.posts.choose(&mut self.random).expect("there are posts").clone();
        let number = self.random.random_range(1..=50);
        let ids: Vec<_> = self.posts.sample(&mut self.random, number).map(String::as_str).collect();
        let ids = ids.join(",");
        let (method, target) = match call {
            Call::Like => (Method::PUT, format!("W/v1/posts/{post}/like")),
            Call::Unlike => (Method::DELETE, format!("W/v1/posts/{post}/like")),
            Call::Liked => (Method::GET, format!("W/v1/posts/{post}/like")),
            Call::Count => (Method::GET, format!("R/v1/posts/{post}/count")),
            Call::Counts => (Method::GET, format!("R/v1/posts/counts?ids={ids}")),
            Call::Feed => (Method::GET, format!("R/v1/posts/likes?ids={ids}")),
            Call::Likers => (Method::GET, format!("R/v1/posts/{post}/likers?limit=50")),
            Call::Likes => (Method::GET, format!("W/v1/users/{user}/likes?limit=50")),
            Call::DeleteAccount => (Method::DELETE, format!("W/v1/users/{user}/likes")),
            Call::DeletePost => (Method::DELETE, format!("W/v1/posts/{post}/likes")),
        };
        let token = format!("Bearer {}", setting("SERVICE_TOKEN"));
        let mut headers = vec![("Authorization", token.as_str())];
        if matches!(call, Call::Like | Call::Unlike | Call::Liked | Call::Feed) {
            headers.push(("X-User-Id", &user));
        }
        self.api.call(method, &target, &headers).await
    }

    /// What has to hold of an answer by itself, whatever the others do.
    fn check(&mut self, call: Call, answer: &Value) {
        match call {
            Call::Like => assert_eq!(answer["liked"], true, "{answer}"),
            Call::Unlike => assert_eq!(answer["liked"], false, "{answer}"),
            Call::Liked => assert!(answer["liked"].is_boolean(), "{answer}"),
            Call::Count => assert!(within(&answer["count"]), "{answer}"),
            Call::Counts | Call::Feed => {
                let items = answer["items"].as_array().expect("items");
                assert!(items.iter().all(|item| within(&item["count"])), "{answer}");
            }
            Call::Likers | Call::Likes => {
                let items = answer["items"].as_array().expect("items");
                let times: Vec<_> = items.iter().map(|item| item["liked_at"].as_str()).collect();
                assert!(times.is_sorted_by(|one, next| one >= next), "{answer}");
            }
            Call::DeleteAccount | Call::DeletePost => {
                let receipt = answer["id"].as_str().expect("a receipt").to_owned();
                self.seen.deletions.push(receipt);
            }
        }
    }
}

/// No post can have more likes than there are users.
fn within(count: &Value) -> bool {
    count.as_u64().is_some_and(|count| count <= USERS as u64)
}
