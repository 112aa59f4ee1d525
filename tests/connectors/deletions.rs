//! Deletions, as their workers do them: chunk by chunk.

use std::time::Duration;

use likewise_core::{PostId, UserId};
use likewise_mysql::{Chunk, Deleting, Mysql, Receipt, Subject};
use likewise_tests::eventually;
use mysql_async::prelude::Queryable as _;

use crate::schema::Schema;

const LIMIT: Duration = Duration::from_secs(20);
/// Of a worker that stands still: it outlives a stall of this machine.
const LEASE: Duration = Duration::from_secs(3);
const LIKES: &str = "INSERT INTO post_likes (user_id, post_id, liked, seq, liked_at)
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25)
     SELECT 'ann', CONCAT('p', i), i <= 20, IF(i > 20, 9, NULL), UTC_TIMESTAMP(6) FROM n
     UNION ALL SELECT 'ben', 'p1', TRUE, NULL, UTC_TIMESTAMP(6)
     UNION ALL SELECT 'Ann', 'p1', TRUE, NULL, UTC_TIMESTAMP(6)";

fn ann() -> Subject {
    Subject::User(UserId::from_log("ann"))
}

async fn deleting(mysql: &Mysql) -> Deleting {
    mysql.deleting(Duration::from_secs(10)).await.expect("it connects")
}

/// Works until nothing is left that nobody else holds.
async fn work(worker: &mut Deleting, size: u32) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    while let Some(chunk) = worker.chunk(size).await.expect("it deletes") {
        chunks.push(chunk);
    }
    chunks
}

async fn users(schema: &Schema) -> Vec<String> {
    schema.query("SELECT user_id FROM post_likes ORDER BY user_id").await
}

#[tokio::test]
async fn a_deletion_takes_every_row_of_its_user_in_chunks_and_counts_the_likes() {
    let (schema, mysql) = Schema::migrated().await;
    schema.query::<u8>(LIKES).await;
    let asked = mysql.ask_deletion("one", &ann()).await.expect("it asks");
    assert_eq!((asked.id.as_str(), asked.edges, asked.done_at), ("one", 0, None));
    assert!(mysql.has_open_deletion().await.expect("it reads"));

    let mut worker = deleting(&mysql).await;
    let chunks: Vec<_> = work(&mut worker, 8).await.iter().map(|c| (c.edges, c.done)).collect();
    // 20 likes, 5 rows that remember a number, and one look that finds nothing.
    assert_eq!(chunks, [(8, false), (8, false), (4, false), (0, false), (0, true)]);
    assert_eq!(users(&schema).await, ["Ann", "ben"]);
    let newest = mysql.newest_mark().await.expect("it reads").expect("marks");
    let receipt = mysql.deletion("one").await.expect("it reads").expect("a receipt");
    assert_eq!((receipt.edges, &receipt.subject), (20, &ann()));
    assert!(receipt.done_at.is_some_and(|done| done > asked.requested_at && done > newest));
    assert!(!mysql.has_open_deletion().await.expect("it reads"));
    assert_eq!(mysql.deletion("two").await.expect("it reads"), None);
    schema.drop().await;
}

#[tokio::test]
async fn a_deletion_of_a_post_takes_every_row_of_the_post() {
    let (schema, mysql) = Schema::migrated().await;
    schema.query::<u8>(LIKES).await;
    let post = Subject::Post(PostId::from_log("p1"));
    mysql.ask_deletion("one", &post).await.expect("it asks");
    let edges: u64 = work(&mut deleting(&mysql).await, 2).await.iter().map(|c| c.edges).sum();
    assert_eq!(edges, 3);
    let left: Vec<u64> = schema.query("SELECT COUNT(*) FROM post_likes").await;
    assert_eq!(left, [24]);
    schema.drop().await;
}

/// While one is open it is the answer to a repeat; afterwards a repeat finds nothing.
#[tokio::test]
async fn a_repeat_is_the_open_deletion_or_a_new_one_that_finds_nothing() {
    let (schema, mysql) = Schema::migrated().await;
    schema.query::<u8>(LIKES).await;
    let id = async |id: &str, subject: &Subject| -> Receipt {
        mysql.ask_deletion(id, subject).await.expect("it asks")
    };
    assert_eq!(id("one", &ann()).await.id, "one");
    let ann = ann();
    let (a, b) = tokio::join!(id("two", &ann), id("three", &ann));
    assert_eq!((a.id.as_str(), b.id.as_str()), ("one", "one"));
    // A post of that name is another matter.
    assert_eq!(id("post", &Subject::Post(PostId::from_log("ann"))).await.id, "post");

    let mut worker = deleting(&mysql).await;
    worker.chunk(8).await.expect("it deletes").expect("one is open");
    work(&mut worker, 8).await;
    assert_eq!(id("four", &ann).await.id, "four");
    work(&mut worker, 8).await;
    assert_eq!(mysql.deletion("one").await.expect("it reads").expect("a receipt").edges, 20);
    assert_eq!(mysql.deletion("four").await.expect("it reads").expect("a receipt").edges, 0);
    schema.drop().await;
}

/// Two instances share the work: no like is counted twice, and none is left.
#[tokio::test(flavor = "multi_thread")]
async fn several_workers_at_once_delete_and_count_each_like_once() {
    let (schema, mysql) = Schema::migrated().await;
    schema.query::<u8>(LIKES).await;
    mysql.ask_deletion("user", &ann()).await.expect("it asks");
    mysql.ask_deletion("post", &Subject::Post(PostId::from_log("p1"))).await.expect("it asks");
    let worker = async || {
        let mut worker = deleting(&mysql).await;
        while mysql.has_open_deletion().await.expect("it reads") {
            worker.chunk(1).await.expect("it deletes");
        }
    };
    tokio::join!(worker(), worker(), worker());
    let edges: Vec<u64> = schema.query("SELECT edges FROM deletions ORDER BY kind").await;
    // Of p1's three likes one was ann's, which either of the two may have taken.
    assert_eq!(edges.iter().sum::<u64>(), 22, "{edges:?}");
    assert_eq!(users(&schema).await, Vec::<String>::new());
    schema.drop().await;
}

/// A worker that dies in the middle of a chunk leaves nothing half done, and another goes on. Its connection
/// ends with it; of one that stands still the server ends it after the lease.
#[tokio::test]
async fn a_worker_that_dies_in_a_chunk_is_succeeded_by_another() {
    let (schema, mysql) = Schema::migrated().await;
    schema.query::<u8>(LIKES).await;
    mysql.ask_deletion("one", &ann()).await.expect("it asks");
    let mut worker = deleting(&mysql).await;
    assert_eq!(worker.chunk(8).await.expect("it deletes").map(|c| c.edges), Some(8));

    // Another worker is in the middle of its chunk: what it has done is not committed, and it holds the claim.
    let mut dying = schema.conn().await;
    for sql in [
        "START TRANSACTION",
        "SELECT id FROM deletions WHERE still_open = TRUE ORDER BY worked_at LIMIT 1 FOR UPDATE",
        "DELETE FROM post_likes WHERE user_id = 'ann' AND liked LIMIT 8",
        "UPDATE deletions SET edges = edges + 8",
    ] {
        dying.query_drop(sql).await.expect("it works");
    }
    assert_eq!(worker.chunk(8).await.expect("it looks"), None, "it is claimed");
    let id = dying.id();
    let mut killer = schema.conn().await;
    killer.query_drop(format!("KILL CONNECTION {id}")).await.expect("it kills");
    drop(dying);

    eventually("its claim is free", LIMIT, async || {
        worker.chunk(8).await.expect("it deletes").map(drop)
    })
    .await;
    work(&mut worker, 8).await;
    assert_eq!(mysql.deletion("one").await.expect("it reads").expect("a receipt").edges, 20);
    assert_eq!(users(&schema).await, ["Ann", "ben"]);
    schema.drop().await;
}

/// Frozen by its machine, it ends no connection itself: the server does.
#[tokio::test]
async fn a_worker_that_stands_still_in_a_chunk_loses_its_claim_after_the_lease() {
    let (schema, mysql) = Schema::migrated().await;
    schema.query::<u8>(LIKES).await;
    mysql.ask_deletion("one", &ann()).await.expect("it asks");

    // It has to wait for a like that somebody writes, and is frozen there.
    let mut writer = schema.conn().await;
    for sql in ["START TRANSACTION", "SELECT 1 FROM post_likes WHERE user_id = 'ann' FOR UPDATE"] {
        writer.query_drop(sql).await.expect("it locks");
    }
    let mut frozen = mysql.deleting(LEASE).await.expect("it connects");
    let mut chunk = std::pin::pin!(frozen.chunk(8));
    let claimed = eventually("it has its claim", LIMIT, async || {
        let free = "SELECT id FROM deletions WHERE still_open = TRUE FOR UPDATE SKIP LOCKED";
        schema.query::<String>(free).await.is_empty().then_some(())
    });
    tokio::select! {
        chunk = &mut chunk => panic!("it did not wait: {chunk:?}"),
        () = claimed => {}
    }
    writer.query_drop("COMMIT").await.expect("it lets go");

    let mut other = deleting(&mysql).await;
    eventually("its claim is free", LIMIT, async || {
        other.chunk(8).await.expect("it deletes").map(drop)
    })
    .await;
    work(&mut other, 8).await;
    assert!(chunk.await.is_err(), "what it wakes up to is a connection that was ended");
    assert_eq!(mysql.deletion("one").await.expect("it reads").expect("a receipt").edges, 20);
    assert_eq!(users(&schema).await, ["Ann", "ben"]);
    schema.drop().await;
}
