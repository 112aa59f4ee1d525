//! Counts of one post, of many, of a feed page, and of a time.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use likewise_tests::{Answer, Api, Oracle, drain, eventually, fresh};
use mysql_async::prelude::Queryable as _;
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(60);

#[track_caller]
fn assert_problem(answer: &Answer, slug: &str, detail: &str) {
    assert_eq!(answer.status, 400, "{answer:?}");
    assert_eq!(answer.json["type"], format!("urn:likewise:problem:{slug}"), "{answer:?}");
    let told = answer.json["detail"].as_str().unwrap_or_default();
    assert!(told.contains(detail), "{answer:?}");
}

/// P3
#[tokio::test]
async fn a_batch_has_one_item_for_each_distinct_post_in_the_order_asked() {
    let (api, base) = (Api::new(), fresh("post"));
    let [seven, eighty_two, other] = [7, 82, 102].map(|n| format!("{base}-{n}"));
    api.like("ann", &seven).await;
    for user in ["ann", "ben"] {
        api.like(user, &other).await;
    }
    let mark = drain().await;
    let ids = format!("{seven},{eighty_two},{seven},{base}-missing,{other}");
    let answer = api.read(&format!("/v1/posts/counts?ids={ids}&min_as_of={mark}"), None).await;
    let item = |post: &str, count: u64| json!({ "post_id": post, "count": count });
    let missing = format!("{base}-missing");
    assert_eq!(
        answer.json["items"],
        json!([item(&seven, 1), item(&eighty_two, 0), item(&missing, 0), item(&other, 2)])
    );
    assert_eq!(answer.json["stale"], false, "{answer:?}");
    assert!(answer.json["as_of"].as_str() >= Some(mark.as_str()), "{answer:?}");
}

/// P3
#[tokio::test]
async fn a_batch_takes_up_to_its_limit_and_names_what_it_refuses() {
    let api = Api::new();
    let ids = |n: usize| (0..n).map(|n| format!("p{n}")).collect::<Vec<_>>().join(",");
    for (path, most) in [("counts", 100), ("likes", 50)] {
        let call =
            async |query: &str| api.read(&format!("/v1/posts/{path}?{query}"), Some("ann")).await;
        for named in [1, most] {
            let answer = call(&format!("ids={}", ids(named))).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            assert_eq!(answer.json["items"].as_array().map(Vec::len), Some(named));
        }
        let one_more = format!("ids={}", ids(most + 1));
        assert_problem(&call(&one_more).await, "invalid-query", &format!("{} posts", most + 1));
        let repeated = format!("ids={}", vec!["p1"; most + 1].join(","));
        assert_problem(&call(&repeated).await, "invalid-query", "at most");
        assert_problem(&call("ids=").await, "invalid-id", "element 1");
        assert_problem(&call("ids=a,,b").await, "invalid-id", "element 2");
        assert_problem(&call("ids=a,b,").await, "invalid-id", "element 3");
        assert_problem(&call("ids=a,b%20c").await, "invalid-id", "b c");
        for query in ["", "ids=a&ids=b", "ids=a&x=1", "ids=a&min_as_of=soon"] {
            let answer = call(query).await;
            assert_eq!(
                (answer.status.as_u16(), &answer.json["type"]),
                (400, &"urn:likewise:problem:invalid-query".into()),
                "{query}"
            );
        }
    }
    let nobody = api.read("/v1/posts/likes?ids=p1", None).await;
    assert_problem(&nobody, "missing-user", "X-User-Id");
}

#[tokio::test]
async fn a_page_tells_counts_and_what_the_user_likes() {
    let (api, base) = (Api::new(), fresh("post"));
    let posts: Vec<String> = (0..50).map(|n| format!("{base}-{n}")).collect();
    for post in posts.iter().step_by(3) {
        api.like("ann", post).await;
        api.like("ben", post).await;
    }
    api.like("ben", &posts[1]).await;
    let mark = drain().await;
    let path = format!("/v1/posts/likes?ids={}&min_as_of={mark}", posts.join(","));
    let answer = api.read(&path, Some("ann")).await;
    let expected: Vec<Value> = posts
        .iter()
        .enumerate()
        .map(|(n, post)| {
            let count = if n.is_multiple_of(3) { 2 } else { u64::from(n == 1) };
            json!({ "post_id": post, "count": count, "liked_by_me": n.is_multiple_of(3) })
        })
        .collect();
    assert_eq!(answer.json["items"], Value::Array(expected));
    // Has-liked is the truth, and kept by nobody.
    for liked in [false, true, false] {
        let write = if liked {
            api.like("ann", &posts[0]).await
        } else {
            api.unlike("ann", &posts[0]).await
        };
        assert_eq!(write.status, 200);
        let path = format!("/v1/posts/likes?ids={}", posts[0]);
        assert_eq!(api.read(&path, Some("ann")).await.json["items"][0]["liked_by_me"], liked);
    }
}

#[tokio::test]
async fn a_count_of_the_time_of_a_write_includes_it() {
    let api = Api::new();
    for _ in 0..20 {
        let post = fresh("post");
        // Known before, without the like.
        assert_eq!(api.count(&post).await.json["count"], 0);
        let written = api.like("ann", &post).await.json["written_at"].take();
        // The log is as busy as the other tests make it: one that is behind is told to be.
        eventually("the write is counted", LIMIT, async || {
            let answer = api.count_since(&post, written.as_str().expect("a time")).await.json;
            let stale = answer["stale"].as_bool().expect("a flag");
            let includes = answer["count"] == 1 && answer["as_of"].as_str() >= written.as_str();
            assert!(stale || includes, "{answer}");
            (!stale).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_time_that_does_not_come_is_waited_for_a_moment_and_then_stale() {
    let (api, post) = (Api::new(), fresh("post"));
    let started = Instant::now();
    let waits = join_all((0..50).map(|_| api.count_since(&post, "2999-01-01T00:00:00Z"))).await;
    let waited = started.elapsed();
    assert!(waits.iter().all(|answer| answer.status == 200 && answer.json["stale"] == true));
    assert!(waited >= Duration::from_millis(900), "{waited:?}");
    for text in ["", "now", "2026-11-30", "1700000000", "2026-13-01T00:00:00Z"] {
        assert_problem(&api.count_since(&post, text).await, "invalid-query", "min_as_of");
    }
}

/// However many likes a post has, whoever tells its count tells the same.
#[tokio::test]
async fn every_way_to_ask_tells_the_same_count_and_it_is_the_truth() {
    let (api, oracle, base) = (Api::new(), Oracle::new(), fresh("post"));
    let sizes = [0_usize, 1, 100, 101, 10_000];
    let posts: Vec<String> = sizes.iter().map(|likes| format!("{base}-{likes}")).collect();
    let mut conn = oracle.mysql().await;
    for (post, likes) in posts.iter().zip(sizes) {
        for users in (0..likes).collect::<Vec<_>>().chunks(1_000) {
            let rows = vec!["(?, ?, TRUE, UTC_TIMESTAMP(6))"; users.len()].join(", ");
            let values: Vec<mysql_async::Value> = users
                .iter()
                .flat_map(|user| [format!("user{user}").into(), post.as_str().into()])
                .collect();
            let insert =
                format!("INSERT INTO post_likes (user_id, post_id, liked, liked_at) VALUES {rows}");
            conn.exec_drop(insert, values).await.expect("MySQL takes them");
        }
    }
    let names: Vec<&str> = posts.iter().map(String::as_str).collect();
    let counts = oracle.agrees(&names).await;
    assert_eq!(counts, sizes.map(|likes| likes as u64));
    let ids = posts.join(",");
    for path in [format!("/v1/posts/counts?ids={ids}"), format!("/v1/posts/likes?ids={ids}")] {
        let answer = api.read(&path, Some("user0")).await;
        let items = answer.json["items"].as_array().expect("items").clone();
        let told: Vec<u64> =
            items.iter().map(|item| item["count"].as_u64().expect("a count")).collect();
        assert_eq!(told, counts, "{path}");
    }
    for (post, likes) in posts.iter().zip(sizes) {
        let (mut likers, mut cursor) = (HashSet::new(), String::new());
        loop {
            let path = format!("/v1/posts/{post}/likers?limit=100{cursor}");
            let page = api.read(&path, None).await.json;
            for item in page["items"].as_array().expect("items") {
                assert!(likers.insert(item["user_id"].clone()), "{item} is listed twice");
            }
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(likers.len(), likes, "{post}");
    }
}
