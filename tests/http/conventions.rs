//! What HTTP itself asks of every answer.

use likewise_tests::{Api, fresh, setting};
use reqwest::{Client, Method, StatusCode};

use crate::raw::{Raw, address, request};
use crate::role::Role;

async fn counts(headers: &[(&str, &str)]) -> likewise_tests::Answer {
    let bearer = format!("Bearer {}", setting("SERVICE_TOKEN"));
    let headers = [&[("Authorization", bearer.as_str())], headers].concat();
    Api::new().call(Method::GET, "R/v1/posts/unliked/count", &headers).await
}

#[tokio::test]
async fn a_request_id_that_is_odd_is_replaced() {
    let long = "x".repeat(129);
    for odd in ["", "a b", "a\"b", &long] {
        let answer = counts(&[("X-Request-Id", odd)]).await;
        let id = answer.headers["x-request-id"].to_str().expect("text");
        assert_eq!(id.len(), 36, "{odd}: {id}");
    }
    let answer = counts(&[("X-Request-Id", "app-1/7:x")]).await;
    assert_eq!(answer.headers["x-request-id"], "app-1/7:x");
}

#[tokio::test]
async fn a_count_that_the_caller_has_is_not_sent_again() {
    let first = counts(&[]).await;
    assert_eq!(first.status, 200);
    assert_eq!(first.headers["cache-control"], "private, max-age=1");
    let tag = first.headers["etag"].to_str().expect("text").to_owned();
    assert!(tag.starts_with("W/\""), "{tag}");
    let other = counts(&[("If-None-Match", "W/\"other\"")]).await;
    assert_eq!(other.status, 200);
    let any = counts(&[("If-None-Match", "*")]).await;
    assert_eq!(any.status, StatusCode::NOT_MODIFIED);
    for answer in [&first, &any] {
        assert_eq!(answer.headers["vary"], "accept-encoding");
    }
    assert!(any.headers.contains_key("etag") && any.content_type.is_empty(), "{any:?}");
    // Its `as_of` moves on every few seconds, and with it the tag.
    let mut tag = tag;
    likewise_tests::eventually(
        "it is not sent again",
        std::time::Duration::from_secs(20),
        async || {
            let again = counts(&[("If-None-Match", &tag)]).await;
            tag = again.headers["etag"].to_str().expect("text").to_owned();
            (again.status == StatusCode::NOT_MODIFIED).then_some(())
        },
    )
    .await;
}

#[tokio::test]
async fn what_is_a_users_and_what_went_wrong_is_kept_nowhere() {
    let api = Api::new();
    let like = api.like("ann", &fresh("post")).await;
    assert_eq!(like.headers["cache-control"], "private, no-store");
    let missing = api.call(Method::GET, "R/v1/nothing", &[]).await;
    assert_eq!(missing.headers["cache-control"], "private, no-store");
    let unknown = api.call(Method::GET, "R/v1/posts/p/count", &[]).await;
    assert_eq!(unknown.headers["cache-control"], "private, no-store");
}

#[tokio::test]
async fn head_answers_as_get_without_content() {
    let mut raw = Raw::connect(&address("READ_API")).await;
    raw.send(&request("HEAD", "/v1/posts/p/count", "Connection: close\r\n")).await;
    let head = raw.bytes(15).await;
    assert_eq!(head, b"HTTP/1.1 200 OK");
    let client = Client::new();
    let url = format!("{}/v1/posts/p/count", setting("READ_API_URL"));
    let answer = client.head(url).bearer_auth(setting("SERVICE_TOKEN")).send().await;
    let answer = answer.expect("it answers");
    assert!(answer.headers().contains_key("etag"));
    assert!(answer.bytes().await.expect("an end").is_empty());
}

#[tokio::test]
async fn options_and_unknown_methods_are_told_what_there_is() {
    let api = Api::new();
    let options = api.call(Method::OPTIONS, "W/v1/posts/p/like", &[]).await;
    assert_eq!(options.status, StatusCode::NO_CONTENT);
    let post = api.call(Method::POST, "W/v1/posts/p/like", &[]).await;
    assert_eq!(post.status, StatusCode::METHOD_NOT_ALLOWED);
    for answer in [options, post] {
        let allow = answer.headers["allow"].to_str().expect("text");
        for method in ["GET", "HEAD", "PUT", "DELETE"] {
            assert!(allow.contains(method), "{allow}");
        }
        assert!(!answer.headers.contains_key("access-control-allow-origin"), "{answer:?}");
    }
}

#[tokio::test]
async fn who_takes_no_json_is_refused_before_anything_is_done() {
    let api = Api::new();
    let bearer = format!("Bearer {}", setting("SERVICE_TOKEN"));
    let post = fresh("post");
    let headers =
        [("Authorization", bearer.as_str()), ("X-User-Id", "ann"), ("Accept", "text/html")];
    let refused = api.call(Method::PUT, &format!("W/v1/posts/{post}/like"), &headers).await;
    assert_eq!(refused.status, StatusCode::NOT_ACCEPTABLE);
    assert_eq!(refused.json["type"], "urn:likewise:problem:not-acceptable");
    assert_eq!(likewise_tests::Oracle::new().likes(&post).await, 0);
    assert_eq!(counts(&[("Accept", "text/html, */*;q=0.1")]).await.status, 200);
}

#[tokio::test]
async fn what_is_large_is_compressed_where_the_caller_says_so() {
    let api = Api::new();
    let gzip = [("Accept-Encoding", "gzip")];
    let document = api.call(Method::GET, "R/openapi.json", &gzip).await;
    assert_eq!(document.headers["content-encoding"], "gzip");
    assert!(document.headers["vary"].to_str().expect("text").contains("accept-encoding"));
    assert!(
        !api.call(Method::GET, "R/openapi.json", &[])
            .await
            .headers
            .contains_key("content-encoding")
    );
    assert!(!counts(&gzip).await.headers.contains_key("content-encoding"));
}

#[tokio::test]
async fn who_takes_no_coding_that_there_is_gets_the_answer_plain() {
    let api = Api::new();
    let post = fresh("post");
    for accepted in ["identity;q=0", "br, *;q=0"] {
        let headers = [("X-User-Id", "ann"), ("Accept-Encoding", accepted)];
        let like = format!("W/v1/posts/{post}/like");
        let liked = api.as_service(Method::PUT, &like, &headers).await;
        assert_eq!((liked.status.as_u16(), liked.json["liked"].as_bool()), (200, Some(true)));
        assert!(!liked.headers.contains_key("content-encoding"), "{liked:?}");
    }
    assert_eq!(likewise_tests::Oracle::new().likes(&post).await, 1);
}

#[tokio::test]
async fn pages_of_an_origin_that_is_named_may_call_and_others_may_not() {
    let role = Role::write_api(&[("LIKEWISE_CORS_ORIGINS", "https://app.example")]).await;
    for (origin, allowed) in [("https://app.example", true), ("https://evil.example", false)] {
        let preflight = role.call(Method::OPTIONS, "/v1/posts/p/like").header("Origin", origin);
        let preflight = preflight
            .header("Access-Control-Request-Method", "PUT")
            .header("Access-Control-Request-Headers", "authorization");
        let answer = preflight.send().await.expect("it answers");
        let named = answer.headers().get("access-control-allow-origin");
        assert_eq!(named.is_some_and(|named| named == origin), allowed, "{answer:?}");
    }
}

#[tokio::test]
async fn calls_are_measured_by_their_route_and_logged_by_it() {
    let api = Api::new();
    api.call(Method::GET, "R/v1/posts/a-post-of-one-name/count", &[]).await;
    api.call(Method::GET, "R/no/such/address", &[]).await;
    let url = format!("{}/metrics", setting("READ_API_URL"));
    let text = reqwest::get(url).await.expect("it answers").text().await.expect("text");
    let has = |line: &str| text.lines().any(|one| one.starts_with(line));
    assert!(has(
        "likewise_http_requests_total{method=\"GET\",route=\"/v1/posts/{post_id}/count\",status=\"401\"}"
    ));
    assert!(has("likewise_http_requests_total{method=\"GET\",route=\"none\",status=\"404\"}"));
    assert!(has(
        "likewise_http_request_seconds_bucket{method=\"GET\",route=\"/v1/posts/{post_id}/count\",le=\"0.0025\"}"
    ));
    assert!(has("likewise_refused_calls_total{reason=\"no-token\"}"));
    assert!(!text.contains("a-post-of-one-name") && !text.contains("/no/such/address"));
    let log = std::fs::read_to_string(likewise_tests::home().join("logs/read-api.log"));
    let log = log.expect("it can be read");
    assert!(log.contains("route=\"/v1/posts/{post_id}/count\" status=401"));
    assert!(!log.contains("a-post-of-one-name") && !log.contains(&setting("SERVICE_TOKEN")));
}

/// The stack's peers are not trusted proxies, so what they say of a client is not believed.
#[tokio::test]
async fn a_trace_is_taken_up_and_a_made_up_client_is_not() {
    let trace = fresh("").replace('-', "");
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let answer = counts(&[("traceparent", &parent), ("X-Forwarded-For", "203.0.113.7")]).await;
    assert_eq!(answer.status, 200);
    counts(&[("traceparent", "00-junk-junk-01")]).await;
    let log = std::fs::read_to_string(likewise_tests::home().join("logs/read-api.log"));
    let log = log.expect("it can be read");
    let line = log.lines().rfind(|line| line.contains(&trace)).expect("the call is in the log");
    assert!(line.contains("client=127.0.0.1") && !line.contains("203.0.113.7"), "{line}");
    assert!(!log.contains("junk-junk"));
}
