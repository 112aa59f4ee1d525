//! A role that is asked to stop, while it is called.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use likewise_tests::{eventually, fresh, setting};
use reqwest::Client;
use tokio::task::JoinSet;

use crate::raw::{Raw, request};
use crate::role::Role;

const LIMIT: Duration = Duration::from_secs(20);
/// After it a role cuts off what it still serves.
const GRACE: Duration = Duration::from_secs(10);
const CLIENTS: usize = 8;

/// Likes until nobody listens any more; anything else that is no success is a failure.
async fn like_until_refused(client: Client, url: String, user: String, likes: Arc<AtomicUsize>) {
    loop {
        let like = client.put(&url).bearer_auth(setting("SERVICE_TOKEN"));
        match like.header("X-User-Id", &user).send().await {
            Ok(answer) => {
                assert_eq!(answer.status(), 200);
                answer.bytes().await.expect("the answer is whole");
                likes.fetch_add(1, Relaxed);
            }
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
    let likes = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        // Half of them hold a connection, half make one for each call.
        let idle = if number % 2 == 0 { 1 } else { 0 };
        let client = Client::builder().pool_max_idle_per_host(idle).timeout(LIMIT);
        let client = client.build().expect("a client");
        let user = format!("{}-{number}", fresh("user"));
        clients.spawn(like_until_refused(client, url.clone(), user, likes.clone()));
    }
    eventually("likes flow", LIMIT, async || (likes.load(Relaxed) > 100).then_some(())).await;
    role.terminate().await;
    while let Some(client) = clients.join_next().await {
        client.expect("no request failed");
    }
    assert!(role.end().await.success());
}

#[tokio::test]
async fn a_connection_that_owes_a_request_does_not_hold_a_role_up() {
    for name in ["write-api", "read-api", "reconciler"] {
        let mut role = Role::start(name, &[]).await;
        let mut silent = Raw::connect(&role.address).await;
        let mut half = Raw::connect(&role.address).await;
        half.send("GET /livez HTTP/1.1\r\nHo").await;
        let mut idle = Raw::connect(&role.address).await;
        idle.send("GET /livez HTTP/1.1\r\nHost: test\r\n\r\n").await;
        assert_eq!(idle.answer().await.status(), "200");
        let asked = Instant::now();
        role.terminate().await;
        assert!(role.end().await.success(), "{name}");
        assert!(asked.elapsed() < GRACE / 2, "{name}: {:?}", asked.elapsed());
        silent.is_closed().await;
        half.is_closed().await;
        idle.is_closed().await;
    }
}

#[tokio::test]
async fn a_connection_in_use_is_told_that_its_answer_is_the_last_one() {
    let mut role = Role::write_api(&[]).await;
    let mut caller = Raw::connect(&role.address).await;
    let read = request("GET", "/v1/posts/p/like", "");
    caller.send(&read).await;
    assert!(!caller.answer().await.head.contains("connection: close"));
    role.terminate().await;
    let told = eventually("it stops", LIMIT, async || {
        caller.send(&read).await;
        let answer = caller.answer().await;
        assert_eq!(answer.status(), "200");
        answer.head.contains("connection: close").then_some(())
    });
    told.await;
    caller.is_closed().await;
    assert!(role.end().await.success());
}
