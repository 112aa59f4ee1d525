//! A role that is asked to stop, while it is called.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use likewise_tests::{eventually, fresh, setting};
use reqwest::{Client, Response};
use tokio::task::JoinSet;

use crate::lock::Lock;
use crate::raw::{Raw, frame, head, request};
use crate::role::Role;

const LIMIT: Duration = Duration::from_secs(20);
const CLIENTS: usize = 8;

/// What the clients of a role know together, as behind a balancer.
#[derive(Default)]
struct Told {
    likes: AtomicUsize,
    /// The role is not ready any more.
    stopping: AtomicBool,
}

fn is_last(answer: &Response) -> bool {
    answer.headers().get("connection").is_some_and(|value| value == "close")
}

/// Likes until the role is known to stop; anything else that is no success is a failure.
async fn like_until_told(client: Client, url: String, user: String, told: Arc<Told>) {
    while !told.stopping.load(Relaxed) {
        let like = client.put(&url).bearer_auth(setting("SERVICE_TOKEN"));
        match like.header("X-User-Id", &user).send().await {
            Ok(answer) => {
                assert_eq!(answer.status(), 200);
                let is_last = is_last(&answer);
                answer.bytes().await.expect("the answer is whole");
                told.likes.fetch_add(1, Relaxed);
                if is_last {
                    return;
                }
            }
            // One that was slow to connect finds nobody.
            Err(error) if error.is_connect() => return,
            Err(error) => panic!("a request failed: {error:?}"),
        }
    }
}

#[tokio::test]
async fn a_role_that_stops_under_load_fails_no_request() {
    let mut role = Role::write_api(&[]).await;
    let post = fresh("post");
    let url = role.url(&format!("/v1/posts/{post}/like"));
    let told = Arc::new(Told::default());
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        // Half of them hold a connection, half make one for each call.
        let idle = if number % 2 == 0 { 1 } else { 0 };
        let client = Client::builder().pool_max_idle_per_host(idle).timeout(LIMIT);
        let client = client.build().expect("a client");
        let user = format!("{}-{number}", fresh("user"));
        clients.spawn(like_until_told(client, url.clone(), user, told.clone()));
    }
    eventually("likes flow", LIMIT, async || (told.likes.load(Relaxed) > 100).then_some(())).await;
    role.terminate().await;
    eventually("it is not ready", LIMIT, async || is_stopping(&role).await.then_some(())).await;
    told.stopping.store(true, Relaxed);
    while let Some(client) = clients.join_next().await {
        client.expect("no request failed");
    }
    assert!(role.end().await.success());
}

/// Says that it is not ready, or nothing any more.
async fn is_stopping(role: &Role) -> bool {
    let Some(mut raw) = Raw::reach(&role.address).await else { return true };
    let answer = raw.ask("GET /readyz HTTP/1.1\r\nHost: test\r\n\r\n").await;
    answer.is_none_or(|answer| answer.status() == "503")
}

#[tokio::test]
async fn a_connection_that_owes_a_request_does_not_hold_a_role_up() {
    for name in ["write-api", "read-api", "reconciler"] {
        let settings =
            [("LIKEWISE_SHUTDOWN_GRACE_MS", "60000"), ("LIKEWISE_HEADER_DEADLINE_MS", "60000")];
        let mut role = Role::start(name, &settings).await;
        let mut silent = Raw::connect(&role.address).await;
        let mut half = Raw::connect(&role.address).await;
        half.send("GET /livez HTTP/1.1\r\nHo").await;
        let mut idle = Raw::connect(&role.address).await;
        idle.send("GET /livez HTTP/1.1\r\nHost: test\r\n\r\n").await;
        assert_eq!(idle.answer().await.status(), "200");
        let asked = Instant::now();
        role.terminate().await;
        assert!(role.end().await.success(), "{name}");
        assert!(asked.elapsed() < Duration::from_secs(30), "{name}: {:?}", asked.elapsed());
        silent.is_closed().await;
        half.is_closed().await;
        idle.is_closed().await;
    }
}

#[tokio::test]
async fn a_connection_in_use_is_told_that_its_answer_is_the_last_one() {
    let settings = [
        ("LIKEWISE_SHUTDOWN_GRACE_MS", "60000"),
        ("LIKEWISE_REQUEST_DEADLINE_MS", "60000"),
        ("LIKEWISE_STORE_DEADLINE_MS", "50000"),
    ];
    let mut role = Role::write_api(&settings).await;
    let mut caller = Raw::connect(&role.address).await;
    let like = format!("/v1/posts/{}/like", fresh("post"));
    caller.send(&request("PUT", &like, "")).await;
    let liked = caller.answer().await;
    assert!(liked.status() == "200" && !liked.head.contains("connection: close"), "{liked:?}");
    // A lock on its row holds the unlike up until the role was asked to stop.
    let lock = Lock::of("raw", like.split('/').nth(3).expect("the post")).await;
    caller.send(&request("DELETE", &like, "")).await;
    lock.is_waited_for().await;
    role.terminate().await;
    eventually("it stops", LIMIT, async || is_stopping(&role).await.then_some(())).await;
    lock.release().await;
    let last = caller.answer().await;
    assert_eq!(last.status(), "200");
    assert!(last.head.contains("connection: close"), "{last:?}");
    caller.is_closed().await;
    assert!(role.end().await.success());
}

/// It says which protocol it speaks after the role was asked to stop, and its call outlasts the listener.
#[tokio::test]
async fn an_http_2_connection_that_calls_while_a_role_stops_is_answered_and_told_to_go() {
    let settings =
        [("LIKEWISE_REQUEST_DEADLINE_MS", "60000"), ("LIKEWISE_STORE_DEADLINE_MS", "50000")];
    let mut role = Role::write_api(&settings).await;
    let post = fresh("post");
    assert_eq!(role.like("raw", &post).await.status(), 200);
    let lock = Lock::of("raw", &post).await;
    let mut caller = Raw::connect(&role.address).await;
    role.terminate().await;
    eventually("it stops", LIMIT, async || is_stopping(&role).await.then_some(())).await;
    let token = format!("Bearer {}", setting("SERVICE_TOKEN"));
    let headers = [("authorization", token.as_str()), ("x-user-id", "raw")];
    let unlike = head("DELETE", &format!("/v1/posts/{post}/like"), &headers);
    caller.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    caller.send_bytes(&[frame(4, 0, 0, &[]), frame(1, 0x5, 1, &unlike)].concat()).await;
    lock.is_waited_for().await;
    eventually("nobody listens", LIMIT, async || {
        Raw::reach(&role.address).await.is_none().then_some(())
    })
    .await;
    lock.release().await;
    // The kinds of its frames: HEADERS of the answer, GOAWAY (RFC 9113, 6.2 and 6.8).
    let (mut kinds, mut at) = (Vec::new(), 0);
    while !(kinds.contains(&1) && kinds.contains(&7)) {
        let head = caller.bytes(at + 9).await[at..].to_vec();
        kinds.push(head[3]);
        at += 9 + usize::from(head[0]) * 65_536 + usize::from(head[1]) * 256 + usize::from(head[2]);
    }
    drop(caller);
    assert!(role.end().await.success());
}
