//! Kafka Connect that dies, pauses, or forgets.

use std::time::Duration;

use likewise_tests::{eventually, likewise, setting, start_with};
use rand::RngExt as _;
use reqwest::Method;

use crate::big::{self, Rows};
use crate::metrics::Counters;
use crate::oracle;
use crate::scene::Scene;
use crate::stack;

const ROWS: u64 = 10_000;
/// The stack's override.
const WITHOUT: [(&str, &str); 1] = [("LIKEWISE_CONNECTOR_EXACTLY_ONCE", "false")];

/// Kill −9 in the middle of a transaction of 10,000 rows. On a fast machine a kill may come too late.
pub(super) async fn kill(scene: &mut Scene) {
    for _ in 0..4 {
        if kill_in_the_middle(scene, &[]).await {
            break;
        }
    }
}

/// The same without Kafka Connect's exactly-once support: rows come again, and the positions alone
/// keep them from being counted twice.
pub(super) async fn kill_without_exactly_once(scene: &mut Scene) {
    start_with(&WITHOUT).await;
    let counters = Counters::follow(&setting("AGGREGATOR_URL")).await;
    scene.progress.moves().await;
    for _ in 0..2 {
        kill_in_the_middle(scene, &WITHOUT).await;
    }
    oracle::drained().await.expect("it is drained");
    scene.reach("repeats dropped", counters.added("likewise_repeats_total").await);
}

/// Whether the transaction was still being sent.
async fn kill_in_the_middle(scene: &mut Scene, settings: &[(&str, &str)]) -> bool {
    let before = scene.progress.length().await.expect("Kafka answers");
    let rows = Rows::new(scene, ROWS);
    let inserted = rows.insert();
    let until = scene.rng.random_range(2_000..6_000);
    big::grown(scene, before, until).await;
    stack::kill("connect").await;
    scene.provoked += 1;
    let grown = scene.progress.length().await.expect("Kafka answers") - before;
    let in_the_middle = grown < ROWS;
    scene.reach("kills in the middle of a transaction", u64::from(in_the_middle));
    inserted.await.expect("it does not panic").expect("MySQL takes the rows");
    start_with(settings).await;
    scene.progress.moves().await;
    in_the_middle
}

/// Paused by an operator: nothing flows, the watcher leaves it alone, and nothing is lost.
pub(super) async fn pause(scene: &mut Scene) {
    let watcher = Counters::follow(&setting("RECONCILER_URL")).await;
    for _ in 0..2 {
        ask(Method::PUT, "/pause").await;
        scene.provoked += 1;
        let still = Duration::from_secs(8);
        eventually("the log stands still", Duration::from_secs(60), async || {
            let before = scene.progress.ends().await?;
            tokio::time::sleep(still).await;
            (scene.progress.ends().await? == before).then_some(())
        })
        .await;
        scene.reach("pauses in which the log stood still", 1);
        ask(Method::PUT, "/resume").await;
        scene.progress.moves().await;
    }
    let restarts = watcher.added("likewise_connector_restarts_total").await;
    assert_eq!(restarts, 0, "the watcher started a connector that somebody had paused");
}

/// L12a: the connector is deleted with its offsets and registered again under its name, with changes
/// in between. The chain of marks notices, `as_of` stands still; a recount of all makes it exact and
/// fresh again.
pub(super) async fn forgotten(scene: &mut Scene) {
    let counters = Counters::follow(&setting("AGGREGATOR_URL")).await;
    ask(Method::PUT, "/stop").await;
    eventually("its offsets are deleted", Duration::from_secs(60), async || {
        try_ask(Method::DELETE, "/offsets").await.then_some(())
    })
    .await;
    ask(Method::DELETE, "").await;
    scene.provoked += 1;
    let missed = Rows::new(scene, 500).insert();
    missed.await.expect("it does not panic").expect("MySQL takes the rows");
    scene.load.flows_to_mysql().await;
    let applied = likewise(&["connector", "apply"]).await;
    assert!(applied.status.success(), "{applied:?}");
    eventually("as_of stands still", Duration::from_secs(60), async || {
        let partitions = scene.progress.partitions().await?;
        partitions.iter().all(|partition| partition.stands_since.is_some()).then_some(())
    })
    .await;
    scene.reach("gaps noticed", counters.added("likewise_log_gaps_total").await);
    let recounted = likewise(&["recount", "--all"]).await;
    assert!(recounted.status.success(), "{recounted:?}");
    eventually("as_of goes on", Duration::from_secs(60), async || {
        let partitions = scene.progress.partitions().await?;
        (!partitions.iter().any(|partition| partition.stands_since.is_some())).then_some(())
    })
    .await;
}

async fn ask(method: Method, path: &str) {
    eventually("Kafka Connect does it", Duration::from_secs(60), async || {
        try_ask(method.clone(), path).await.then_some(())
    })
    .await;
}

/// While the worker is busy with the connector it refuses.
async fn try_ask(method: Method, path: &str) -> bool {
    let url = format!("{}/connectors/likewise{path}", setting("CONNECT_URL"));
    let answer = reqwest::Client::new().request(method, url).send().await;
    answer.is_ok_and(|answer| answer.status().is_success())
}
