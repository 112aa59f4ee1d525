//! Connections that are slow, silent, too many, or speak HTTP/2.

use std::time::Duration;

use likewise_tests::{eventually, fresh};

use crate::raw::{Raw, address, frame, head, request};
use crate::role::Role;

const LIMIT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_request_that_does_not_arrive_is_not_waited_for() {
    let settings =
        [("LIKEWISE_HEADER_DEADLINE_MS", "3000"), ("LIKEWISE_IDLE_DEADLINE_MS", "60000")];
    let role = Role::write_api(&settings).await;
    let mut silent = Raw::connect(&role.address).await;
    let mut half = Raw::connect(&role.address).await;
    half.send("GET /livez HTTP/1.1\r\nHo").await;
    let mut second_half = Raw::connect(&role.address).await;
    second_half.send("GET /livez HTTP/1.1\r\nHost: test\r\n\r\n").await;
    assert_eq!(second_half.answer().await.status(), "200");
    second_half.send("GET /livez HTTP").await;
    silent.is_closed().await;
    half.is_closed().await;
    second_half.is_closed().await;
    assert!(role.metric("likewise_http_connections_cut_total{why=\"header\"}").await >= 3.0);
}

#[tokio::test]
async fn content_that_does_not_arrive_is_not_waited_for() {
    let role = Role::write_api(&[("LIKEWISE_HEADER_DEADLINE_MS", "3000")]).await;
    let mut slow = Raw::connect(&role.address).await;
    let post = fresh("post");
    let like = request("PUT", &format!("/v1/posts/{post}/like"), "Content-Length: 10\r\n");
    slow.send(&like).await;
    slow.answer().await.is_problem("408", "slow-request");
    assert_eq!(likewise_tests::Oracle::new().likes(&post).await, 0);
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_one_in_use_is_not() {
    let settings = [("LIKEWISE_IDLE_DEADLINE_MS", "6000"), ("LIKEWISE_HEADER_DEADLINE_MS", "3000")];
    let role = Role::write_api(&settings).await;
    let mut idle = Raw::connect(&role.address).await;
    let began = std::time::Instant::now();
    idle.send("GET /livez HTTP/1.1\r\nHost: test\r\n\r\n").await;
    assert_eq!(idle.answer().await.status(), "200");
    idle.is_closed().await;
    // Longer than a request may take to arrive.
    assert!(began.elapsed() >= Duration::from_secs(6), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_client_that_takes_no_answer_is_cut_off() {
    let role = Role::write_api(&[("LIKEWISE_SEND_DEADLINE_MS", "500")]).await;
    let mut deaf = Raw::connect(&role.address).await;
    deaf.send_all_it_takes("GET /openapi.json HTTP/1.1\r\nHost: test\r\n\r\n").await;
    eventually("it is cut off", LIMIT, async || {
        let cut = role.metric("likewise_http_connections_cut_total{why=\"send\"}").await;
        (cut >= 1.0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_http_2_client_that_opens_no_window_is_cut_off() {
    let settings = [
        ("LIKEWISE_SEND_DEADLINE_MS", "1000"),
        ("LIKEWISE_HEADER_DEADLINE_MS", "60000"),
        ("LIKEWISE_IDLE_DEADLINE_MS", "60000"),
    ];
    let role = Role::write_api(&settings).await;
    let mut deaf = Raw::connect(&role.address).await;
    let no_window = [0, 4, 0, 0, 0, 0];
    deaf.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    deaf.send_bytes(
        &[frame(4, 0, 0, &no_window), frame(1, 0x5, 1, &head("GET", "/openapi.json", &[]))]
            .concat(),
    )
    .await;
    deaf.ends().await;
    assert!(role.metric("likewise_http_connections_cut_total{why=\"send\"}").await >= 1.0);
}

#[tokio::test]
async fn above_the_limit_of_connections_calls_are_refused_at_once_and_health_is_told() {
    let role = Role::write_api(&[("LIKEWISE_MAX_CONNECTIONS", "2")]).await;
    let mut within = Vec::new();
    // The client that asked for readiness may hold one of them: its place is free when it is closed.
    let held = eventually("both places are taken", LIMIT, async || {
        let mut one = Raw::connect(&role.address).await;
        // Above the limit a connection has a second, which may be too short for this machine.
        let answer = one.ask(&request("GET", "/v1/posts/p/like", "")).await?;
        let refused = answer.status() == "503";
        within.push(one);
        refused.then_some(answer)
    })
    .await;
    held.is_problem("503", "overloaded");
    assert!(
        held.head.contains("retry-after: 1") && held.head.contains("connection: close"),
        "{held:?}"
    );
    let mut health = eventually("health is told", LIMIT, async || {
        let mut health = Raw::connect(&role.address).await;
        let answer = health.ask("GET /livez HTTP/1.1\r\nHost: test\r\n\r\n").await?;
        assert_eq!(answer.status(), "200");
        Some(health)
    })
    .await;
    health.is_closed().await;

    drop(within);
    eventually("a place is free again", LIMIT, async || {
        let mut next = Raw::connect(&role.address).await;
        let answer = next.ask(&request("GET", "/v1/posts/p/like", "")).await?;
        (answer.status() == "200").then_some(())
    })
    .await;
}

#[tokio::test]
async fn requests_in_one_packet_are_answered_one_after_the_other() {
    let mut raw = Raw::connect(&address("READ_API")).await;
    let one = request("GET", "/v1/posts/p/count", "X-Request-Id: one\r\n");
    let two = request("GET", "/v1/posts/p/nothing", "X-Request-Id: two\r\n");
    raw.send(&format!("{one}{two}")).await;
    let (first, second) = (raw.answer().await, raw.answer().await);
    assert_eq!(first.status(), "200");
    assert!(first.head.contains("x-request-id: one"), "{first:?}");
    second.is_problem("404", "not-found");
    assert!(second.head.contains("x-request-id: two"), "{second:?}");
}

#[tokio::test]
async fn http_2_is_spoken_without_tls() {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let mut raw = Raw::connect(&address("READ_API")).await;
    raw.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    raw.send_bytes(&SETTINGS).await;
    let frame = raw.bytes(9).await;
    assert_eq!(
        (frame[3], &frame[5..9]),
        (4, &[0, 0, 0, 0][..]),
        "its settings come first: {frame:?}"
    );
}
