//! A deletion whose worker is killed.

use std::time::Duration;

use likewise_tests::{Api, Oracle, eventually, fresh, signal, start_what_is_missing};
use mysql_async::prelude::Queryable as _;
use reqwest::Method;

use crate::STACK;

/// W10: the write API dies by `kill -9` with a deletion half done.
#[tokio::test]
async fn a_deletion_goes_on_where_a_killed_write_api_left_it() {
    let _alone = STACK.lock().await;
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    let mut conn = oracle.mysql().await;
    conn.query_drop("SET SESSION cte_max_recursion_depth = 30000").await.expect("it is set");
    let likes = "INSERT INTO post_likes (user_id, post_id, liked, liked_at)
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
         SELECT CONCAT('user', i), ?, TRUE, UTC_TIMESTAMP(6) FROM n";
    conn.exec_drop(likes, (&post,)).await.expect("MySQL inserts");

    // The like that a deletion comes to last is held, so that it cannot be done.
    let last = "SELECT user_id FROM post_likes WHERE post_id = ? AND liked
         ORDER BY liked_at DESC, user_id DESC LIMIT 1";
    let last: Option<String> = conn.exec_first(last, (&post,)).await.expect("it reads");
    conn.query_drop("START TRANSACTION").await.expect("it begins");
    let hold = "SELECT 1 FROM post_likes WHERE user_id = ? AND post_id = ? FOR UPDATE";
    conn.exec_drop(hold, (last.expect("a like"), &post)).await.expect("it locks");

    let asked = api.as_service(Method::DELETE, &format!("W/v1/posts/{post}/likes"), &[]).await;
    let id = asked.json["id"].as_str().expect("an id");
    let receipt = async |api: &Api| {
        api.as_service(Method::GET, &format!("W/v1/deletions/{id}"), &[]).await.json
    };
    eventually("some are deleted", Duration::from_secs(30), async || {
        (receipt(&api).await["edges"].as_u64()? > 0).then_some(())
    })
    .await;
    signal("write-api", "KILL").await;
    assert!(oracle.likes(&post).await > 0, "one is held");
    conn.query_drop("COMMIT").await.expect("it lets go");
    start_what_is_missing().await;

    let done = eventually("it is done and counted", Duration::from_secs(60), async || {
        let receipt = receipt(&api).await;
        (receipt["counted"] == true).then_some(receipt)
    })
    .await;
    assert_eq!((&done["state"], &done["edges"]), (&"done".into(), &30_000.into()), "{done}");
    assert_eq!(oracle.agrees(&[&post]).await, [0]);
}
