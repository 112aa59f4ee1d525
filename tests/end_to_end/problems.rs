//! Every refusal is problem+json with a type and a sentence that helps.

use likewise_tests::{Answer, Api, Oracle, setting};
use reqwest::Method;

#[track_caller]
fn assert_problem(answer: &Answer, status: u16, slug: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.content_type, "application/problem+json", "{answer:?}");
    assert_eq!(answer.json["type"], format!("urn:likewise:problem:{slug}"), "{answer:?}");
    assert_eq!(answer.json["status"], status, "{answer:?}");
    assert!(answer.json["title"].as_str().is_some_and(|title| !title.is_empty()), "{answer:?}");
    assert!(answer.json["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{answer:?}");
}

#[tokio::test]
async fn refusals_say_what_is_wrong() {
    let api = Api::new();
    let bearer = format!("Bearer {}", setting("SERVICE_TOKEN"));
    let known = [("Authorization", bearer.as_str()), ("X-User-Id", "ann")];
    let like = "W/v1/posts/p1/like";
    let count = "R/v1/posts/p1/count";
    let (put, get) = (Method::PUT, Method::GET);

    for target in [like, count] {
        let method = if target == like { &put } else { &get };
        for headers in [
            &[("X-User-Id", "ann")][..],
            &[("Authorization", "Bearer wrong"), ("X-User-Id", "ann")],
            &[("Authorization", "Basic dTpw"), ("X-User-Id", "ann")],
            &[("Authorization", "Bearer "), ("X-User-Id", "ann")],
        ] {
            let answer = api.call(method.clone(), target, headers).await;
            assert_problem(&answer, 401, "unauthorized");
            let challenge = answer.headers["www-authenticate"].to_str().expect("text");
            // Whoever sent a token is told that it is not accepted.
            let sent = headers[0].1 == "Bearer wrong";
            assert_eq!(challenge.contains("error=\"invalid_token\""), sent, "{challenge}");
            assert!(challenge.starts_with("Bearer"), "{challenge}");
        }
    }
    let answer = api.call(put.clone(), like, &known[..1]).await;
    assert_problem(&answer, 400, "missing-user");
    let two_users = [known[0], known[1], ("X-User-Id", "ben")];
    assert_problem(&api.call(put.clone(), like, &two_users).await, 400, "missing-user");
    let bad_user = [known[0], ("X-User-Id", "a b")];
    assert_problem(&api.call(put.clone(), like, &bad_user).await, 400, "invalid-id");

    let long = "x".repeat(65);
    for id in ["a%20b", "a%2Fb", "%C3%A9", "%FF", "%00", "a,b", "a%25b", long.as_str(), ""] {
        let target = format!("W/v1/posts/{id}/like");
        assert_problem(&api.call(put.clone(), &target, &known).await, 400, "invalid-id");
        let target = format!("R/v1/posts/{id}/count");
        assert_problem(&api.call(get.clone(), &target, &known).await, 400, "invalid-id");
    }
    for target in ["R/v1/posts/p1/count?x=1", "R/v1/posts/p1/count?min_as_of"] {
        assert_problem(&api.call(get.clone(), target, &known).await, 400, "invalid-query");
    }
    for target in ["W/v1/posts/p1/like?x=1", "W/v1/posts/p1/like?x=1&x=2"] {
        assert_problem(&api.call(put.clone(), target, &known).await, 400, "invalid-query");
    }
    let answer = api.call(Method::POST, like, &known).await;
    assert_problem(&answer, 405, "method-not-allowed");
    let allow = answer.headers["allow"].to_str().expect("text");
    assert!(allow.contains("PUT") && allow.contains("DELETE"), "{allow}");
    assert_problem(&api.call(Method::DELETE, count, &known).await, 405, "method-not-allowed");
    for target in ["W/", "R/v2/posts", "W/v1/posts/p1/like/", "R/v1/posts/p1/like"] {
        assert_problem(&api.call(get.clone(), target, &known).await, 404, "not-found");
    }
}

/// W6
#[tokio::test]
async fn an_id_of_10_000_characters_is_refused_and_no_shortened_row_is_left() {
    let (api, oracle) = (Api::new(), Oracle::new());
    let id = "q".repeat(10_000);
    assert_problem(&api.like("ann", &id).await, 400, "invalid-id");
    assert_eq!(oracle.likes(&id[..64]).await, 0);
}

#[tokio::test]
async fn every_role_tells_its_health_and_its_metrics() {
    let client = reqwest::Client::new();
    for role in ["WRITE_API", "READ_API", "AGGREGATOR", "RECONCILER"] {
        let url = setting(&format!("{role}_URL"));
        for path in ["livez", "readyz", "metrics"] {
            let answer = client.get(format!("{url}/{path}")).send().await.expect("it answers");
            assert_eq!(answer.status(), 200, "{role} {path}");
        }
    }
    let metrics = client.get(format!("{}/metrics", setting("AGGREGATOR_URL")));
    let text = metrics.send().await.expect("it answers").text().await.expect("text");
    for name in [
        "likewise_repeats_total",
        "likewise_fenced_commits_total",
        "likewise_transaction_retries_total",
        "likewise_dead_letters_total",
    ] {
        assert!(text.lines().any(|line| line.starts_with(&format!("{name} "))), "{name}");
    }
}

#[tokio::test]
async fn a_request_id_is_taken_up_or_given() {
    let api = Api::new();
    let given = api.call(Method::GET, "R/livez", &[("x-request-id", "mine-1")]).await;
    assert_eq!(given.headers["x-request-id"], "mine-1");
    let made = api.call(Method::GET, "R/livez", &[]).await;
    assert!(!made.headers["x-request-id"].is_empty());
}
