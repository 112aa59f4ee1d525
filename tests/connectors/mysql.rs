//! Migrations, edges and marks.

use std::time::Duration;

use likewise_core::{PostId, UserId, partition_of};
use likewise_mysql::{Error, Gtid, Mysql, PoolSettings, migrate};
use likewise_tests::eventually;

use crate::schema::{PARTITIONS, Schema};

#[tokio::test]
async fn migrations_are_applied_once_also_from_two_places_at_once() {
    let schema = Schema::new().await;
    let (one, two) = (schema.mysql("MYSQL_ADMIN_URL"), schema.mysql("MYSQL_ADMIN_URL"));
    assert!(matches!(one.ready().await, Err(Error::NotMigrated)));
    let (first, second) = tokio::join!(migrate(&one, PARTITIONS), migrate(&two, PARTITIONS));
    let applied = [first.expect("it migrates").len(), second.expect("it migrates").len()];
    assert_eq!(applied.iter().sum::<usize>(), 5, "{applied:?}");
    assert_eq!(migrate(&one, PARTITIONS).await.expect("it migrates"), Vec::<String>::new());
    one.ready().await.expect("it is ready");

    let keys: Vec<String> = schema.query("SELECT mark_key FROM partition_marks").await;
    let mut partitions: Vec<u32> = keys.iter().map(|key| partition_of(key, PARTITIONS)).collect();
    partitions.sort_unstable();
    assert_eq!(partitions, [0, 1, 2, 3]);
    schema.drop().await;
}

#[tokio::test]
async fn an_edge_follows_its_likes_and_unlikes() {
    let (schema, mysql) = Schema::migrated().await;
    let (ann, post) = (UserId::from_log("ann"), PostId::from_log("p"));

    let first = mysql.like(&ann, &post, None).await.expect("it writes");
    assert!(first.liked && first.changed);
    let again = mysql.like(&ann, &post, None).await.expect("it writes");
    assert!(again.liked && !again.changed);
    assert!(again.written_at >= first.written_at);
    assert!(mysql.liked(&ann, &post).await.expect("it reads"));
    let gone = mysql.unlike(&ann, &post, None).await.expect("it writes");
    assert!(!gone.liked && gone.changed);
    assert!(!mysql.unlike(&ann, &post, None).await.expect("it writes").changed);
    assert_eq!(schema.query::<u64>("SELECT COUNT(*) FROM post_likes").await, [0]);
    schema.drop().await;
}

/// A row that carries a `seq` stays behind, not liked, when it is unliked without one.
#[tokio::test]
async fn a_numbered_edge_is_left_behind_when_it_is_unliked() {
    let (schema, mysql) = Schema::migrated().await;
    let (ann, post) = (UserId::from_log("ann"), PostId::from_log("p"));
    schema
        .query::<u8>("INSERT INTO post_likes VALUES ('ann', 'p', TRUE, 5, UTC_TIMESTAMP(6))")
        .await;
    assert!(mysql.unlike(&ann, &post, None).await.expect("it writes").changed);
    assert!(!mysql.unlike(&ann, &post, None).await.expect("it writes").changed);
    let rows: Vec<(bool, i64)> = schema.query("SELECT liked, seq FROM post_likes").await;
    assert_eq!(rows, [(false, 5)]);
    assert!(mysql.like(&ann, &post, None).await.expect("it writes").changed);
    let rows: Vec<(bool, i64)> = schema.query("SELECT liked, seq FROM post_likes").await;
    assert_eq!(rows, [(true, 5)]);
    schema.drop().await;
}

/// A transaction is told for what changed something, and it is the one in the binlog.
#[tokio::test]
async fn a_write_tells_its_own_transaction_and_a_repeat_none() {
    let schema = Schema::new().await;
    migrate(&schema.mysql("MYSQL_ADMIN_URL"), PARTITIONS).await.expect("it migrates");
    let mysql = schema.mysql("MYSQL_URL");
    let post = PostId::from_log("p");
    let mut told = Vec::new();
    for user in ["ann", "ben", "cem"] {
        let written = mysql.like(&UserId::from_log(user), &post, None).await.expect("it writes");
        told.push(written.transaction.expect("a transaction"));
        let again = mysql.like(&UserId::from_log(user), &post, None).await.expect("it writes");
        assert_eq!(again.transaction, None);
    }
    assert!(told.is_sorted() && told[0] != told[1] && told[1] != told[2], "{told:?}");
    let later = Gtid { number: told[2].number + 1_000_000, ..told[2].clone() };
    let gtids = told.into_iter().chain([later.clone()]).collect();
    let missing = mysql.not_executed(gtids).await.expect("it reads");
    assert_eq!(missing, [later].into());
    schema.drop().await;
}

#[tokio::test]
async fn the_hearts_of_a_page_cost_one_query() {
    let schema = Schema::new().await;
    migrate(&schema.mysql("MYSQL_ADMIN_URL"), PARTITIONS).await.expect("it migrates");
    let mysql = schema.mysql("MYSQL_URL");
    let ann = UserId::from_log("ann");
    let posts: Vec<PostId> = (0..50).map(|n| PostId::from_log(&format!("p{n}"))).collect();
    for post in [&posts[0], &posts[49]] {
        mysql.like(&ann, post, None).await.expect("it writes");
    }
    mysql.like(&UserId::from_log("ben"), &posts[1], None).await.expect("it writes");
    let liked = mysql.liked_among(&ann, &posts).await.expect("it reads");
    assert_eq!(liked, [posts[0].clone(), posts[49].clone()].into());
    let one = mysql.liked_among(&ann, &posts[..1]).await.expect("it reads");
    assert_eq!(one, [posts[0].clone()].into());
    let counted = format!(
        "SELECT CAST(COALESCE(SUM(COUNT_STAR), 0) AS UNSIGNED)
         FROM performance_schema.events_statements_summary_by_digest
         WHERE SCHEMA_NAME = '{}' AND DIGEST_TEXT LIKE 'EXECUTE SELECT `post_id`%'",
        schema.name
    );
    // A statement is counted after its answer was sent.
    let ran = eventually("both are counted", Duration::from_secs(10), async || {
        let ran = schema.query::<u64>(&counted).await[0];
        (ran >= 2).then_some(ran)
    })
    .await;
    assert_eq!(ran, 2);
    schema.drop().await;
}

#[tokio::test]
async fn marks_are_set_when_due_and_never_go_back() {
    let (schema, mysql) = Schema::migrated().await;
    let long = Duration::from_secs(3600);
    assert!(!mysql.set_due_marks(long).await.expect("it writes"), "they were set a moment ago");
    assert!(mysql.set_due_marks(Duration::ZERO).await.expect("it writes"));

    let first = mysql.set_all_marks().await.expect("it writes").expect("marks");
    let written = mysql
        .like(&UserId::from_log("ann"), &PostId::from_log("p"), None)
        .await
        .expect("it writes");
    let second = mysql.set_all_marks().await.expect("it writes").expect("marks");
    assert!(first < written.written_at && written.written_at <= second);

    // MySQL's clock was an hour ahead, and is set back; the marks had not all been set at once.
    schema.query::<u8>("UPDATE partition_marks SET at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR").await;
    schema.query::<u8>("UPDATE partition_marks SET at = at + INTERVAL 1 MINUTE LIMIT 1").await;
    let newest: Vec<i64> = schema
        .query("SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', MAX(at)) FROM partition_marks")
        .await;
    let ahead = mysql.set_all_marks().await.expect("it writes").expect("marks");
    assert!(ahead.0 > newest[0], "or a mark from before would seem to be this one");
    let written = mysql
        .like(&UserId::from_log("ben"), &PostId::from_log("p"), None)
        .await
        .expect("it writes");
    assert!(written.written_at > ahead, "or a mark before the like would seem to be after it");
    assert!(mysql.set_due_marks(long).await.expect("it writes"), "they must not stand still");
    let later = mysql.set_all_marks().await.expect("it writes").expect("marks");
    assert!(later > written.written_at);
    schema.drop().await;
}

#[tokio::test]
async fn each_post_comes_once_sorted_by_its_bytes() {
    let (schema, mysql) = Schema::migrated().await;
    schema
        .query::<u8>(
            "INSERT INTO post_likes (user_id, post_id, liked, liked_at) VALUES
             ('a', 'b', TRUE, NOW(6)), ('b', 'b', TRUE, NOW(6)), ('a', 'B', TRUE, NOW(6)),
             ('a', 'é', TRUE, NOW(6)), ('a', 'gone', FALSE, NOW(6)), ('a', 'b ', TRUE, NOW(6))",
        )
        .await;
    let mut posts = Vec::new();
    mysql
        .each_post(async |post, likes| posts.push((post.to_string(), likes)))
        .await
        .expect("it reads");
    let posts: Vec<_> = posts.iter().map(|(post, likes)| (post.as_str(), *likes)).collect();
    assert_eq!(posts, [("B", 1), ("b", 2), ("b ", 1), ("é", 1)]);
    schema.drop().await;
}

#[tokio::test]
async fn a_server_that_is_away_is_unavailable_and_not_refused() {
    let url = "mysql://u:p@127.0.0.1:1/likewise".to_owned();
    let deadline = Duration::from_secs(2);
    let mysql = Mysql::new(&PoolSettings { url, max_connections: 1, tls_ca: None, deadline })
        .expect("settings");
    let error = mysql.ready().await.expect_err("nobody answers");
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
}

/// Of its own transactions, and of servers that it knows; another server's it may have never heard of.
#[tokio::test]
async fn a_transaction_that_was_counted_and_not_executed_is_missing() {
    let schema = Schema::new().await;
    let own: Vec<String> = schema.query("SELECT @@GLOBAL.server_uuid").await;
    let uuid = u128::from_str_radix(&own[0].replace('-', ""), 16).expect("a UUID");
    let gtid = |uuid, number| Gtid { uuid, tag: String::new(), number };
    let gtids = [gtid(uuid, 1), gtid(uuid, 1 << 40), gtid(!uuid, 1)];
    let missing = schema.mysql("MYSQL_URL").not_executed(gtids.into()).await;
    let missing = missing.expect("MySQL answers");
    assert_eq!(missing.into_iter().collect::<Vec<_>>(), [gtid(uuid, 1 << 40)]);
    schema.drop().await;
}
