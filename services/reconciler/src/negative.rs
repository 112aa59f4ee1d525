//! Sums below zero. An unlike may be counted before its like only where the two come from different
//! sources or servers: when every source that sets marks has passed a later one, a sum that is still below
//! zero is wrong.

use std::collections::HashMap;
use std::time::Duration;

use likewise_core::{Micros, PostId, partition_of};
use likewise_kafka::CHANGES;
use likewise_mongodb::Store;
use metrics::{counter, describe_counter};
use tokio_util::sync::CancellationToken;

const NEGATIVE: &str = "likewise_negative_sums_total";

/// How often sums below zero are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How many are looked at.
const LOOKED_AT: i64 = 1000;

/// Raises repairs for sums that stay below zero, until `shutdown`.
pub(crate) async fn watch(store: Store, shutdown: CancellationToken) -> anyhow::Result<()> {
    describe_counter!(NEGATIVE, "Posts whose sum stayed below zero");
    counter!(NEGATIVE).absolute(0);
    let mut seen = HashMap::new();
    while !shutdown.is_cancelled() {
        if let Err(error) = look(&store, &mut seen).await {
            tracing::warn!("sums below zero are not looked for: {error:#}");
        }
        shutdown.run_until_cancelled(tokio::time::sleep(LOOK_EVERY)).await;
    }
    Ok(())
}

/// `seen` holds how far the partition was when the post was first seen below zero.
async fn look(store: &Store, seen: &mut HashMap<PostId, Option<Micros>>) -> anyhow::Result<()> {
    let Some(live) = store.live().await? else { return Ok(()) };
    let negative = store.negative_sums(live.generation, LOOKED_AT).await?;
    seen.retain(|post, _| negative.contains(post));
    if negative.is_empty() {
        return Ok(());
    }
    let partitions = store.partitions(live.generation).await?;
    for post in negative {
        let partition = partition_of(post.as_str(), live.partitions);
        let known = partitions.iter().find(|known| known.partition == partition);
        let passed = known.and_then(|known| known.passed);
        let first = *seen.entry(post.clone()).or_insert(passed);
        if passed > first
            && store.doubt_negative_sum(live.generation, CHANGES, partition, &post).await?
        {
            counter!(NEGATIVE).increment(1);
            tracing::error!(partition, %post, "a sum stays below zero and is recounted");
        }
    }
    Ok(())
}
