//! Sequence numbers over HTTP, counted.

use std::time::Duration;

use likewise_tests::{Answer, Api, Log, Oracle, eventually, fresh, metric};
use mysql_async::prelude::Queryable as _;
use reqwest::Method;
use serde_json::Value;

async fn send(api: &Api, method: Method, post: &str, seq: &str) -> Answer {
    let target = format!("W/v1/posts/{post}/like{seq}");
    api.as_service(method, &target, &[("X-User-Id", "ann")]).await
}

fn told(answer: &Answer) -> (bool, bool) {
    assert_eq!(answer.status, 200, "{answer:?}");
    let is = |name: &str| answer.json[name].as_bool().expect("told");
    (is("liked"), is("changed"))
}

/// W7
#[tokio::test]
async fn a_request_that_arrives_late_changes_neither_the_edge_nor_the_count() {
    let (api, oracle) = (Api::new(), Oracle::new());
    let (put, delete) = (Method::PUT, Method::DELETE);
    let (first, second) = (fresh("post"), fresh("post"));
    assert_eq!(told(&send(&api, put.clone(), &first, "?seq=5").await), (true, true));
    assert_eq!(told(&send(&api, delete.clone(), &first, "?seq=3").await), (true, false));
    assert_eq!(oracle.agrees(&[&first]).await, [1]);
    assert_eq!(told(&send(&api, delete.clone(), &first, "?seq=6").await), (false, true));
    assert_eq!(told(&send(&api, put.clone(), &first, "?seq=5").await), (false, false));
    // There was no row.
    assert_eq!(told(&send(&api, delete.clone(), &second, "?seq=6").await), (false, false));
    assert_eq!(told(&send(&api, put.clone(), &second, "?seq=5").await), (false, false));
    assert_eq!(oracle.agrees(&[&first, &second]).await, [0, 0]);
    assert_eq!(told(&send(&api, put, &second, "?seq=9223372036854775807").await), (true, true));
    assert_eq!(oracle.agrees(&[&first, &second]).await, [0, 1]);
}

/// What a number alone changes is a row, and no like.
#[tokio::test]
async fn a_number_that_flips_nothing_is_in_the_log_and_counts_nothing() {
    let (api, oracle, log, post) = (Api::new(), Oracle::new(), Log::at_end().await, fresh("post"));
    for (method, seq) in [
        (Method::PUT, "?seq=1"),
        (Method::PUT, "?seq=1"),
        (Method::PUT, "?seq=2"),
        (Method::DELETE, "?seq=3"),
        (Method::DELETE, "?seq=3"),
        (Method::DELETE, "?seq=4"),
    ] {
        told(&send(&api, method, &post, seq).await);
    }
    let mut changes = Vec::new();
    for _ in 0..4 {
        let record = log.next_of(&post).await;
        let payload = rdkafka::Message::payload(&record).expect("a value");
        let value: Value = serde_json::from_slice(payload).expect("JSON");
        let row = |image: &Value| (image["liked"].as_i64(), image["seq"].as_i64());
        changes.push((row(&value["before"]), row(&value["after"])));
    }
    let row = |liked, seq| (Some(liked), Some(seq));
    assert_eq!(
        changes,
        [
            ((None, None), row(1, 1)),
            (row(1, 1), row(1, 2)),
            (row(1, 2), row(0, 3)),
            (row(0, 3), row(0, 4)),
        ]
    );
    assert_eq!(oracle.agrees(&[&post]).await, [0]);
}

#[tokio::test]
async fn a_number_that_is_none_is_refused_and_leaves_no_row() {
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    for seq in [
        "0",
        "-1",
        "%2B1",
        "1.0",
        "1e3",
        "",
        "%20",
        "x",
        "01",
        "9223372036854775808",
        "1&seq=2",
        "1&x=2",
        "1&seq=1",
    ] {
        for method in [Method::PUT, Method::DELETE] {
            let answer = send(&api, method, &post, &format!("?seq={seq}")).await;
            assert_eq!(answer.status, 400, "{seq}: {answer:?}");
            assert_eq!(answer.json["type"], "urn:likewise:problem:invalid-query", "{seq}");
        }
    }
    let answer = send(&api, Method::GET, &post, "?seq=1").await;
    assert_eq!(answer.json["type"], "urn:likewise:problem:invalid-query", "{answer:?}");
    let mut conn = oracle.mysql().await;
    let rows: Option<u64> = conn
        .exec_first("SELECT COUNT(*) FROM post_likes WHERE post_id = ?", (&post,))
        .await
        .expect("MySQL counts");
    assert_eq!(rows, Some(0));
}

/// A row older than the retention stands in for one that was left that long ago.
#[tokio::test]
async fn what_remembers_a_number_is_swept_after_its_retention() {
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    let mut conn = oracle.mysql().await;
    let insert = "INSERT INTO post_likes (user_id, post_id, liked, seq, liked_at)
         VALUES (?, ?, ?, 6, UTC_TIMESTAMP(6) - INTERVAL ? DAY)";
    for (user, liked, days) in [("ann", false, 8), ("ben", false, 6), ("cid", true, 8)] {
        conn.exec_drop(insert, (user, &post, liked, days)).await.expect("MySQL inserts");
    }
    eventually("the old row is swept", Duration::from_secs(60), async || {
        let rows = "SELECT user_id FROM post_likes WHERE post_id = ? ORDER BY user_id";
        let rows: Vec<String> = conn.exec(rows, (&post,)).await.expect("MySQL reads");
        (rows == ["ben", "cid"]).then_some(())
    })
    .await;
    // The row goes a moment before it is told.
    eventually("it is told", Duration::from_secs(60), async || {
        (metric("WRITE_API", "likewise_swept_total").await >= 1.0).then_some(())
    })
    .await;
    assert_eq!(told(&send(&api, Method::PUT, &post, "?seq=5").await), (true, true), "long after");
    assert_eq!(oracle.agrees(&[&post]).await, [2]);
}
