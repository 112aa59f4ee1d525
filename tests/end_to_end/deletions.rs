//! Accounts and posts that are gone.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use likewise_tests::{Answer, Api, Oracle, eventually, fresh};
use mysql_async::prelude::Queryable as _;
use reqwest::Method;

async fn ask(api: &Api, target: &str) -> String {
    let answer = api.as_service(Method::DELETE, target, &[]).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let id = answer.json["id"].as_str().expect("an id").to_owned();
    assert_eq!(answer.headers["location"], format!("/v1/deletions/{id}"));
    id
}

async fn receipt(api: &Api, id: &str) -> Answer {
    api.as_service(Method::GET, &format!("W/v1/deletions/{id}"), &[]).await
}

/// Waits until a deletion is done, and answers with its receipt.
async fn done(api: &Api, id: &str) -> Answer {
    eventually("the deletion is done", Duration::from_secs(60), async || {
        let answer = receipt(api, id).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        (answer.json["state"] == "done").then_some(answer)
    })
    .await
}

/// W10
#[tokio::test(flavor = "multi_thread")]
async fn an_account_with_500_likes_is_taken_out_of_every_count_and_list_exactly_once() {
    let (api, oracle, base, user) = (Api::new(), Oracle::new(), fresh("p"), fresh("user"));
    let posts: Vec<String> = (0..500).map(|n| format!("{base}-{n:03}")).collect();
    let mut conn = oracle.mysql().await;
    for chunk in posts.chunks(250) {
        let rows = chunk.iter().flat_map(|post| {
            [&user, "other"].map(|user| format!("('{user}', '{post}', TRUE, UTC_TIMESTAMP(6))"))
        });
        let sql = format!(
            "INSERT INTO post_likes (user_id, post_id, liked, liked_at) VALUES {}",
            rows.collect::<Vec<_>>().join(",")
        );
        conn.query_drop(sql).await.expect("MySQL inserts");
    }
    // What only remembers a number goes too, and is no like.
    let numbered = format!("W/v1/posts/{base}-numbered/like?seq=7");
    api.as_service(Method::DELETE, &numbered, &[("X-User-Id", &user)]).await;
    let all: Vec<&str> = posts.iter().map(String::as_str).collect();
    let some: Vec<&str> = all.iter().step_by(10).copied().collect();
    assert!(oracle.agrees(&some).await.iter().all(|count| *count == 2));

    let list = format!("W/v1/users/{user}/likes");
    let id = ask(&api, &list).await;
    let answer = done(&api, &id).await;
    assert_eq!(answer.json["edges"], 500, "{answer:?}");
    assert_eq!(
        (&answer.json["user_id"], &answer.json["post_id"]),
        (&user.as_str().into(), &().into())
    );
    let counted = eventually("it is counted", Duration::from_secs(60), async || {
        let answer = receipt(&api, &id).await;
        (answer.json["counted"] == true).then_some(answer)
    })
    .await;
    // Then, and not only after a drain, each count is without it.
    assert!(counted.json["as_of"].as_str() >= counted.json["done_at"].as_str(), "{counted:?}");
    let done_at = counted.json["done_at"].as_str().expect("a time");
    let counts = stream::iter(&posts).map(|post| api.count_since(post, done_at));
    let counts: Vec<Answer> = counts.buffered(16).collect().await;
    for answer in counts {
        assert_eq!(answer.json["count"], 1, "{answer:?}");
    }
    assert!(oracle.agrees(&some).await.iter().all(|count| *count == 1));

    let answer = api.as_service(Method::GET, &list, &[]).await;
    assert_eq!(answer.json["items"], serde_json::json!([]), "{answer:?}");
    let likers = format!("R/v1/posts/{}/likers", posts[0]);
    let likers = api.as_service(Method::GET, &likers, &[]).await;
    assert_eq!(likers.json["items"].as_array().map(Vec::len), Some(1), "{likers:?}");
    assert_eq!(likers.json["items"][0]["user_id"], "other");
    let rows = "SELECT COUNT(*) FROM post_likes WHERE user_id = ?";
    let rows: Option<u64> = conn.exec_first(rows, (&user,)).await.expect("MySQL counts");
    assert_eq!(rows, Some(0));

    let again = ask(&api, &list).await;
    assert_ne!(again, id);
    assert_eq!(done(&api, &again).await.json["edges"], 0);
    assert!(oracle.agrees(&some).await.iter().all(|count| *count == 1));
}

/// W10
#[tokio::test(flavor = "multi_thread")]
async fn likes_that_race_with_a_deletion_are_removed_or_stand_and_all_agree() {
    let (api, oracle, base, user) = (Api::new(), Oracle::new(), fresh("p"), fresh("user"));
    let posts: Vec<String> = (0..60).map(|n| format!("{base}-{n}")).collect();
    for post in posts.iter().step_by(2) {
        api.like(&user, post).await;
    }
    let list = format!("W/v1/users/{user}/likes");
    let racing = stream::iter(&posts).map(|post| async { api.like(&user, post).await.status });
    let (id, statuses) =
        tokio::join!(ask(&api, &list), racing.buffer_unordered(8).collect::<Vec<_>>(),);
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    done(&api, &id).await;
    let page = api.as_service(Method::GET, &format!("{list}?limit=100"), &[]).await;
    let items = page.json["items"].as_array().expect("items");
    let listed: Vec<&str> = items.iter().filter_map(|item| item["post_id"].as_str()).collect();
    let all: Vec<&str> = posts.iter().map(String::as_str).collect();
    let counts = oracle.agrees(&all).await;
    for (post, count) in all.iter().zip(counts) {
        let liked = api.liked(&user, post).await;
        assert_eq!((liked, count), (listed.contains(post), u64::from(liked)), "{post}");
    }
}

#[tokio::test]
async fn a_post_that_is_gone_has_no_likes_and_count_0() {
    let (api, oracle, post, other) = (Api::new(), Oracle::new(), fresh("post"), fresh("post"));
    for n in 0..30 {
        api.like(&format!("user{n}"), &post).await;
    }
    api.like("user1", &other).await;
    let answer = api.as_operator(Method::DELETE, &format!("W/v1/posts/{post}/likes")).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let id = answer.json["id"].as_str().expect("an id");
    let done = done(&api, id).await;
    assert_eq!((&done.json["edges"], &done.json["post_id"]), (&30.into(), &post.as_str().into()));
    assert_eq!(oracle.agrees(&[&post, &other]).await, [0, 1]);
    let answer = api.as_operator(Method::GET, &format!("W/v1/deletions/{id}")).await;
    assert_eq!(answer.json["edges"], 30, "{answer:?}");
}

#[tokio::test]
async fn a_deletion_is_refused_to_whom_it_is_not_for() {
    let api = Api::new();
    for target in ["W/v1/users/ann/likes", "W/v1/posts/p1/likes"] {
        assert_eq!(api.call(Method::DELETE, target, &[]).await.status, 401);
        let answer = api.as_service(Method::DELETE, &format!("{target}?x=1"), &[]).await;
        assert_eq!(answer.json["type"], "urn:likewise:problem:invalid-query", "{answer:?}");
    }
    for target in ["W/v1/users/a%20b/likes", "W/v1/posts/a%20b/likes"] {
        let answer = api.as_service(Method::DELETE, target, &[]).await;
        assert_eq!(answer.json["type"], "urn:likewise:problem:invalid-id", "{answer:?}");
    }
    let unknown = "0f8e4c1c-6d0b-4b3e-9a57-0a3c4b9d2e61";
    for id in [unknown, "x", "%FF", "%00", &"x".repeat(5000)] {
        let answer = receipt(&api, id).await;
        assert_eq!(answer.status, 404, "{answer:?}");
        assert_eq!(answer.json["type"], "urn:likewise:problem:not-found", "{answer:?}");
    }
}
