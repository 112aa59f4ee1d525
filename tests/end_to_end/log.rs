//! What may stand in the log besides each change once.

use std::time::Duration;

use likewise_core::partition_of;
use likewise_tests::{Api, Log, Oracle, eventually, fresh, likewise, metric, setting};
use mysql_async::prelude::Queryable as _;
use rdkafka::Message as _;

/// A counter of the aggregator.
async fn counter(name: &str) -> f64 {
    metric("AGGREGATOR", name).await
}

async fn counter_passes(name: &str, before: f64, by: f64) {
    eventually(name, Duration::from_secs(30), async || {
        (counter(name).await >= before + by).then_some(())
    })
    .await;
}

/// What our partitioner says is where Kafka Connect's producer puts it.
#[tokio::test]
async fn edges_and_marks_stand_in_the_partition_of_their_key() {
    let (api, log) = (Api::new(), Log::at_end().await);
    let partitions: u32 = setting("PARTITIONS").parse().expect("a number");
    let posts: Vec<String> = (0..20).map(|_| fresh("post")).collect();
    for post in &posts {
        api.like("ann", post).await;
    }
    let mut left: Vec<&String> = posts.iter().collect();
    let mut marked = vec![false; partitions as usize];
    while !left.is_empty() || marked.contains(&false) {
        let message = log.next().await;
        let key = std::str::from_utf8(message.key().expect("a key")).expect("text");
        let partition = message.partition().cast_unsigned();
        // Other tests write past the connector, and to other partitions.
        if !key.starts_with("mark-") && !posts.iter().any(|post| post == key) {
            continue;
        }
        assert_eq!(partition, partition_of(key, partitions), "{key}");
        left.retain(|post| *post != key);
        if key.starts_with("mark-") {
            marked[partition as usize] = true;
        }
    }
}

/// L2: a change that is written to the log a second time, at a new offset, is counted once.
#[tokio::test]
async fn a_change_repeated_in_the_log_is_counted_once() {
    let (api, oracle, log, post) = (Api::new(), Oracle::new(), Log::at_end().await, fresh("post"));
    api.like("ann", &post).await;
    let first = log.next_of(&post).await;
    api.like("ben", &post).await;
    let second = log.next_of(&post).await;
    assert_eq!(oracle.agrees(&[&post]).await, [2]);

    let before = counter("likewise_repeats_total").await;
    for again in [&first, &second, &first] {
        log.append(&post, again.payload()).await;
    }
    counter_passes("likewise_repeats_total", before, 3.0).await;
    assert_eq!(oracle.agrees(&[&post]).await, [2]);
}

/// L1, L4, L5 where no post comes into doubt: nothing stops, and neighbours count.
#[tokio::test]
async fn snapshot_rows_tombstones_and_foreign_records_count_nothing_and_stop_nothing() {
    let (api, oracle, log, post) = (Api::new(), Oracle::new(), Log::at_end().await, fresh("post"));
    api.like("ann", &post).await;
    let like = log.next_of(&post).await;
    let like: serde_json::Value =
        serde_json::from_slice(like.payload().expect("a value")).expect("JSON");
    let mut snapshot = like.clone();
    snapshot["op"] = "r".into();
    let mut foreign = like.clone();
    foreign["source"]["table"] = "somebody_elses".into();

    let before = counter("likewise_snapshot_rows_total").await;
    for _ in 0..100 {
        log.append(&post, Some(snapshot.to_string().as_bytes())).await;
    }
    log.append(&post, Some(foreign.to_string().as_bytes())).await;
    log.append(&post, None).await;
    log.append(&post, Some(b"")).await;
    api.like("ben", &post).await;
    assert_eq!(oracle.agrees(&[&post]).await, [2]);
    assert!(counter("likewise_snapshot_rows_total").await >= before + 100.0);
}

/// L6: an unlike from one source before its like from another, with a recount between the two.
#[tokio::test]
async fn an_unlike_from_one_source_before_its_like_from_another_comes_out_even() {
    let (api, oracle, log, post) = (Api::new(), Oracle::new(), Log::at_end().await, fresh("post"));
    api.like("ann", &post).await;
    let like: serde_json::Value =
        serde_json::from_slice(log.next_of(&post).await.payload().expect("a value")).expect("JSON");
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
    let elsewhere = |source: &str| {
        let mut record = like.clone();
        let server = uuid::Uuid::new_v4();
        record["source"]["name"] = source.into();
        record["source"]["gtid"] = format!("{server}:1").into();
        record
    };
    let mut unlike = elsewhere("shard-1");
    unlike["op"] = "d".into();
    unlike["before"] = unlike["after"].take();
    log.append(&post, Some(unlike.to_string().as_bytes())).await;
    eventually("the unlike is counted", Duration::from_secs(30), async || {
        (api.count(&post).await.json["count"] == 0).then_some(())
    })
    .await;
    let recounted = likewise(&["recount", &post]).await;
    assert!(recounted.status.success(), "{recounted:?}");
    log.next_of(&post).await;
    log.next_of(&post).await;
    log.append(&post, Some(elsewhere("shard-2").to_string().as_bytes())).await;
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
}

/// L12b: a transaction that was counted comes again from another server, with other file positions.
#[tokio::test]
async fn a_transaction_that_comes_again_after_a_failover_is_not_counted_on_a_guess() {
    let (oracle, log, post) = (Oracle::new(), Log::at_end().await, fresh("post"));
    let mut conn = oracle.mysql().await;
    let rows: Vec<String> =
        (0..7).map(|user| format!("('user{user}', '{post}', TRUE, NOW(6))")).collect();
    let insert = "INSERT INTO post_likes (user_id, post_id, liked, liked_at) VALUES ";
    conn.query_drop(format!("{insert}{}", rows.join(","))).await.expect("MySQL takes them");
    let mut records: Vec<serde_json::Value> = Vec::new();
    while records.len() < rows.len() {
        let record = log.next_of(&post).await;
        records.push(serde_json::from_slice(record.payload().expect("a value")).expect("JSON"));
    }
    assert_eq!(oracle.agrees(&[&post]).await, [7]);

    let before = counter("likewise_cannot_tell_total").await;
    for mut record in records {
        record["source"]["file"] = "replica.000002".into();
        record["source"]["pos"] = 50.into();
        log.append(&post, Some(record.to_string().as_bytes())).await;
    }
    counter_passes("likewise_cannot_tell_total", before, 7.0).await;
    // A drain waits for the repair that this raised.
    assert_eq!(oracle.agrees(&[&post]).await, [7]);
}

/// A copy in another partition, as a mirror or a restore may leave it, is not counted again: there
/// it would be new.
#[tokio::test]
async fn a_copy_in_another_partition_is_kept_aside() {
    let (api, oracle, log, post) = (Api::new(), Oracle::new(), Log::at_end().await, fresh("post"));
    api.like("ann", &post).await;
    let like = log.next_of(&post).await;
    let partitions: u32 = setting("PARTITIONS").parse().expect("a number");
    let elsewhere = (partition_of(&post, partitions) + 1) % partitions;
    let before = counter("likewise_dead_letters_total").await;
    for _ in 0..20 {
        log.append_to(Some(elsewhere.cast_signed()), &post, like.payload()).await;
    }
    counter_passes("likewise_dead_letters_total", before, 20.0).await;
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
}

/// Thousands of unreadable records hold nothing up for long.
#[tokio::test]
async fn many_unreadable_records_of_many_posts_stop_nothing() {
    let (api, oracle, log, post) = (Api::new(), Oracle::new(), Log::at_end().await, fresh("post"));
    // Among them keys that no post of MySQL can have: nothing can ever recount them.
    let length = |n: usize| if n.is_multiple_of(100) { 65 } else { 0 };
    let junk: Vec<String> =
        (0..2000).map(|n| format!("{post}-{n}{}", "x".repeat(length(n)))).collect();
    let before = counter("likewise_dead_letters_total").await;
    futures_util::future::join_all(junk.iter().map(|key| log.append(key, Some(b"junk")))).await;
    api.like("ann", &post).await;
    counter_passes("likewise_dead_letters_total", before, 2000.0).await;
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
}

/// L12: Debezium sends an UPDATE of a key as a deletion and a creation at one (pos, row).
#[tokio::test]
async fn a_post_id_changed_by_hand_moves_the_like() {
    let (api, oracle) = (Api::new(), Oracle::new());
    let (old, new) = (fresh("old"), fresh("new"));
    api.like("ann", &old).await;
    api.like("ben", &old).await;
    let mut conn = oracle.mysql().await;
    conn.exec_drop(
        "UPDATE post_likes SET post_id = ? WHERE post_id = ? AND user_id = 'ann'",
        (&new, &old),
    )
    .await
    .expect("MySQL updates");
    conn.exec_drop("UPDATE post_likes SET user_id = 'zoe' WHERE post_id = ?", (&new,))
        .await
        .expect("MySQL updates");
    assert_eq!(oracle.agrees(&[&old, &new]).await, [1, 1]);
}
