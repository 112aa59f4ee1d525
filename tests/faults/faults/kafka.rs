//! Kafka that dies or stands still, and a topic that somebody changes.

use std::time::Duration;

use likewise_kafka::CHANGES;
use likewise_tests::{eventually, setting, start_what_is_missing};
use rand::RngExt as _;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions};
use rdkafka::client::DefaultClientContext;

use crate::big::{self, Rows};
use crate::metrics::Lines;
use crate::scene::Scene;
use crate::stack;

const ROWS: u64 = 300_000;

/// Kill −9 in the middle of transactions, and started again soon.
pub(super) async fn kill(scene: &mut Scene) {
    for _ in 0..3 {
        let before = scene.progress.length().await.expect("Kafka answers");
        let rows = Rows::new(scene, 50_000);
        let inserted = rows.insert();
        let until = scene.rng.random_range(10_000..30_000);
        big::grown(scene, before, until).await;
        stack::kill("kafka").await;
        scene.provoked += 1;
        inserted.await.expect("it does not panic").expect("MySQL takes the rows");
        start_what_is_missing().await;
        let grown = scene.progress.length().await.expect("Kafka answers") - before;
        scene.reach("kills in the middle of a transaction", u64::from(grown < rows.rows));
        scene.progress.moves().await;
    }
}

/// SIGSTOP for 9 s in the middle of a transaction of 300,000 rows, then kill −9 of Connect while that
/// transaction is still being sent.
pub(super) async fn freeze_9(scene: &mut Scene) {
    freeze(scene, Duration::from_secs(9)).await;
}

/// The same for 75 s: longer than a producer's transaction may stay open.
pub(super) async fn freeze_75(scene: &mut Scene) {
    freeze(scene, Duration::from_secs(75)).await;
}

async fn freeze(scene: &mut Scene, time: Duration) {
    let before = scene.progress.length().await.expect("Kafka answers");
    let inserted = Rows::new(scene, ROWS).insert();
    let until = scene.rng.random_range(20_000..100_000);
    big::grown(scene, before, until).await;
    scene.provoked += 1;
    stack::freeze("kafka", time).await;
    let thawed = eventually("Kafka answers", Duration::from_secs(60), async || {
        scene.progress.length().await
    })
    .await;
    big::grown(scene, thawed, 1_000).await;
    scene.any_moment(0..2_000).await;
    stack::kill("connect").await;
    let grown = scene.progress.length().await.expect("Kafka answers") - before;
    scene.reach("Connect killed while the transaction was sent", u64::from(grown < ROWS));
    inserted.await.expect("it does not panic").expect("MySQL takes the rows");
    start_what_is_missing().await;
    scene.progress.moves().await;
}

/// L11: partitions are raised from 4 to 8 while likes and unlikes flow. Counting stops on every
/// partition with a message that names the one command, and nothing is miscounted.
pub(super) async fn partitions_raised(scene: &mut Scene) {
    let lines = Lines::of("aggregator");
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new()
        .set("bootstrap.servers", setting("KAFKA_BROKERS"))
        .create()
        .expect("a client");
    let before = scene.progress.ends().await.expect("Kafka answers").len();
    let raised = NewPartitions::new(CHANGES, 2 * before);
    let results = admin.create_partitions(&[raised], &AdminOptions::new()).await;
    let results = results.expect("Kafka answers");
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    scene.provoked += 1;
    let url = format!("{}/readyz", setting("AGGREGATOR_URL"));
    eventually("counting has stopped everywhere", Duration::from_secs(60), async || {
        let text = reqwest::get(&url).await.ok()?.text().await.ok()?;
        let says = |partition| {
            let waits = format!("partition {partition} waits: the topic has");
            text.contains(&waits) && text.contains("likewise rebuild --from-here")
        };
        (0..before).all(says).then_some(())
    })
    .await;
    scene.reach("messages that counting stops", lines.with("counting stops:"));
    let counted = scene.progress.partitions().await.expect("MongoDB answers");
    scene.load.flows_to_mysql().await;
    // Kafka Connect's producer finds the new partitions by itself in five minutes; other writers at once.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let now = scene.progress.partitions().await.expect("MongoDB answers");
    let offsets = |all: &[likewise_mongodb::PartitionStatus]| {
        all.iter().map(|partition| partition.next_offset).collect::<Vec<_>>()
    };
    assert_eq!(offsets(&now), offsets(&counted), "something is counted on");
}
