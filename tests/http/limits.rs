//! How large a request may be, how many there may be, and how often a user may write.

use std::time::Duration;

use likewise_tests::{Oracle, eventually, fresh};
use reqwest::Method;

use crate::lock::Lock;
use crate::raw::{Raw, address, request};
use crate::role::Role;

const LIMIT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_target_of_16_kib_is_read_and_a_longer_one_is_refused() {
    for role in ["WRITE_API", "READ_API"] {
        let target = |bytes: usize| format!("/{}", "x".repeat(bytes - 1));
        let mut raw = Raw::connect(&address(role)).await;
        raw.send(&request("GET", &target(16 << 10), "")).await;
        raw.answer().await.is_problem("404", "not-found");
        for bytes in [(16 << 10) + 1, 60 << 10] {
            let mut raw = Raw::connect(&address(role)).await;
            raw.send(&request("GET", &target(bytes), "")).await;
            raw.answer().await.is_problem("414", "target-too-long");
        }
    }
}

#[tokio::test]
async fn headers_that_are_too_large_are_refused() {
    let headers = |bytes: usize| format!("X-Large: {}\r\n", "x".repeat(bytes));
    let mut raw = Raw::connect(&address("READ_API")).await;
    raw.send(&request("GET", "/v1/posts/p/count", &headers(15 << 10))).await;
    assert_eq!(raw.answer().await.status(), "200");
    raw.send(&request("GET", "/v1/posts/p/count", &headers(17 << 10))).await;
    raw.answer().await.is_problem("431", "headers-too-large");
    let mut raw = Raw::connect(&address("READ_API")).await;
    raw.send(&request("GET", "/v1/posts/p/count", &headers(80 << 10))).await;
    assert_eq!(raw.answer().await.status(), "431");
    let mut raw = Raw::connect(&address("READ_API")).await;
    raw.send(&request("GET", "/v1/posts/p/count", &"X-Many: 1\r\n".repeat(200))).await;
    assert_eq!(raw.answer().await.status(), "431");
}

#[tokio::test]
async fn content_is_ignored_and_more_than_16_kib_of_it_is_refused() {
    let post = fresh("post");
    let target = format!("/v1/posts/{post}/like");
    let mut raw = Raw::connect(&address("WRITE_API")).await;
    for (headers, content) in [
        ("Content-Length: 2\r\nContent-Type: application/json\r\n", "{}".to_owned()),
        ("Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n".to_owned()),
        ("Content-Length: 16384\r\n", "x".repeat(16 << 10)),
    ] {
        raw.send(&(request("PUT", &target, headers) + &content)).await;
        let answer = raw.answer().await;
        assert_eq!(answer.status(), "200", "{answer:?}");
    }
    let other = fresh("post");
    let target = format!("/v1/posts/{other}/like");
    raw.send(&request("PUT", &target, "Content-Length: 16385\r\n")).await;
    raw.answer().await.is_problem("413", "content-too-large");
    let mut raw = Raw::connect(&address("WRITE_API")).await;
    let chunk = format!("4401\r\n{}\r\n", "x".repeat(0x4401));
    raw.send(&(request("PUT", &target, "Transfer-Encoding: chunked\r\n") + &chunk)).await;
    raw.answer().await.is_problem("413", "content-too-large");
    let mut raw = Raw::connect(&address("WRITE_API")).await;
    raw.send(&(request("PUT", &target, "Transfer-Encoding: chunked\r\n") + "ZZ\r\n")).await;
    raw.answer().await.is_problem("400", "bad-request");
    assert_eq!(Oracle::new().likes(&other).await, 0);
}

#[tokio::test]
async fn what_is_no_http_is_refused_by_400() {
    for junk in ["junk\r\n\r\n", "GET / HTTP/1.1\r\nA b: c\r\n\r\n"] {
        let mut raw = Raw::connect(&address("READ_API")).await;
        raw.send(junk).await;
        assert_eq!(raw.answer().await.status(), "400", "{junk}");
        raw.is_closed().await;
    }
}

#[tokio::test]
async fn above_the_limit_of_calls_the_next_is_refused_at_once_and_health_is_told() {
    let settings = [
        ("LIKEWISE_MAX_CONCURRENT_REQUESTS", "1"),
        ("LIKEWISE_REQUEST_DEADLINE_MS", "60000"),
        ("LIKEWISE_STORE_DEADLINE_MS", "50000"),
    ];
    let role = Role::write_api(&settings).await;
    let (user, post) = (fresh("user"), fresh("post"));
    assert_eq!(role.like(&user, &post).await.status(), 200);
    // A lock on its row holds the next like of it up.
    let lock = Lock::of(&user, &post).await;
    let held = role.call(Method::DELETE, &format!("/v1/posts/{post}/like"));
    let held = held.header("X-User-Id", &user);
    // The calls below may take the one place before it does.
    let held = eventually("it has the place", LIMIT, async || {
        let again = held.try_clone().expect("it has no content");
        let status = again.send().await.expect("it answers").status();
        (status != 503).then_some(status)
    });
    let others = async {
        let refused = eventually("a call is refused", LIMIT, async || {
            let answer = role.like("somebody", &post).await;
            (answer.status() == 503).then_some(answer)
        })
        .await;
        assert_eq!(refused.headers()["retry-after"], "1");
        let problem: serde_json::Value = refused.json().await.expect("JSON");
        assert_eq!(problem["type"], "urn:likewise:problem:overloaded");
        for path in ["/livez", "/readyz", "/metrics"] {
            let health = role.call(Method::GET, path).send().await.expect("it answers");
            assert_eq!(health.status(), 200, "{path}");
        }
        lock.release().await;
    };
    let (held, ()) = tokio::join!(held, others);
    assert_eq!(held, 200);
    assert_eq!(role.like("somebody", &post).await.status(), 200);
}

/// R2
#[tokio::test]
async fn a_user_who_writes_too_often_is_refused_and_succeeds_after_that_time() {
    let role = Role::write_api(&[("LIKEWISE_WRITES_PER_MINUTE", "30")]).await;
    let (user, oracle) = (fresh("user"), Oracle::new());
    let mut left = Vec::new();
    let refused = loop {
        let post = fresh("post");
        let answer = role.like(&user, &post).await;
        assert_eq!(answer.headers()["ratelimit-policy"], "\"writes\";q=30;w=60");
        let limit = answer.headers()["ratelimit"].to_str().expect("text").to_owned();
        if answer.status() == 429 {
            assert_eq!(oracle.likes(&post).await, 0, "no edge is written");
            break answer;
        }
        assert_eq!(answer.status(), 200);
        assert_eq!(oracle.likes(&post).await, 1);
        left.push(limit);
        assert!(left.len() < 40, "{left:?}");
    };
    assert!(left.len() >= 30, "{left:?}");
    assert_eq!(left[0], "\"writes\";r=29;t=2");
    let wait = refused.headers()["retry-after"].to_str().expect("text").to_owned();
    assert_eq!(refused.headers()["ratelimit"], format!("\"writes\";r=0;t={wait}"));
    let wait: u64 = wait.parse().expect("seconds");
    assert!((1..=3).contains(&wait), "{wait}");
    let problem: serde_json::Value = refused.json().await.expect("JSON");
    assert_eq!(problem["type"], "urn:likewise:problem:too-many-writes");

    let post = fresh("post");
    assert_eq!(role.like(&fresh("user"), &post).await.status(), 200, "another user");
    let read = role.call(Method::GET, &format!("/v1/posts/{post}/like"));
    let read = read.header("X-User-Id", &user).send().await.expect("it answers");
    assert_eq!(read.status(), 200, "reads are not limited");
    assert!(!read.headers().contains_key("ratelimit"));
    let refused_at = std::time::Instant::now();
    let in_time = Duration::from_secs(wait);
    eventually("the user may write again", in_time + Duration::from_secs(1), async || {
        if refused_at.elapsed() < in_time {
            return None;
        }
        (role.like(&user, &post).await.status() == 200).then_some(())
    })
    .await;
    assert_eq!(oracle.likes(&post).await, 2);
}

#[tokio::test]
async fn above_the_limit_of_listeners_the_next_is_refused_at_once_and_finds_a_place_later() {
    let role = Role::start("read-api", &[("LIKEWISE_STREAM_LISTENERS", "1")]).await;
    let path = format!("/v1/posts/{}/count/stream", fresh("post"));
    let listen = async || role.call(Method::GET, &path).send().await.expect("it answers");
    let mut first = listen().await;
    assert_eq!(first.status(), 200);
    assert!(first.chunk().await.expect("it goes on").is_some(), "the count of now comes at once");
    let refused = listen().await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["retry-after"]),
        (503, &"1".parse().expect("a value"))
    );
    let problem: serde_json::Value = refused.json().await.expect("a problem");
    assert_eq!(problem["type"], "urn:likewise:problem:overloaded");
    drop(first);
    eventually("the place is free again", LIMIT, async || {
        (listen().await.status() == 200).then_some(())
    })
    .await;
}
