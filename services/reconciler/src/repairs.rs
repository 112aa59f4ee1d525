//! Repairs: each post in doubt gets a recount. The aggregator closes the repair when it passes it.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use likewise_mongodb::{OpenRepair, Store};
use likewise_mysql::Mysql;
use metrics::{counter, describe_counter, describe_gauge, gauge};
use tokio_util::sync::CancellationToken;

const REQUESTED: &str = "likewise_recounts_requested_total";
const OPEN: &str = "likewise_open_repairs";

/// How often repairs are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How many are looked at, so that some that cannot be closed keep none of the others waiting.
const LOOKED_AT: i64 = 10_000;
/// How many are worked off between two looks: recounts hold likes of their post up.
const AT_ONCE: usize = 100;
/// A recount that has not closed its repair by then is written again.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Works repairs off until `shutdown`.
pub(crate) async fn work_off(
    mysql: Mysql,
    store: Store,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    describe_counter!(REQUESTED, "Recounts written for posts in doubt");
    describe_gauge!(OPEN, "Posts whose count is in doubt, 10,000 at most");
    counter!(REQUESTED).absolute(0);
    let mut requested: HashMap<OpenRepair, Instant> = HashMap::new();
    while !shutdown.is_cancelled() {
        if let Err(error) = look(&mysql, &store, &mut requested).await {
            tracing::warn!("repairs wait: {error:#}");
        }
        shutdown.run_until_cancelled(tokio::time::sleep(LOOK_EVERY)).await;
    }
    Ok(())
}

async fn look(
    mysql: &Mysql,
    store: &Store,
    requested: &mut HashMap<OpenRepair, Instant>,
) -> anyhow::Result<()> {
    let open: HashSet<OpenRepair> = store.repairs(LOOKED_AT).await?.into_iter().collect();
    #[expect(clippy::cast_precision_loss, reason = "a gauge takes floats")]
    gauge!(OPEN).set(open.len() as f64);
    requested.retain(|repair, _| open.contains(repair));
    let due = open
        .into_iter()
        .filter(|repair| requested.get(repair).is_none_or(|at| at.elapsed() > AGAIN_AFTER));
    let due: Vec<OpenRepair> = due.take(AT_ONCE).collect();
    for repair in due {
        match mysql.recount(&repair.post).await {
            Ok(()) => {
                counter!(REQUESTED).increment(1);
                tracing::info!(post = %repair.post, "a post in doubt is recounted");
            }
            // The server may still be at work on one that was cut off.
            Err(error @ likewise_mysql::Error::Timeout(_)) => {
                tracing::error!(post = %repair.post, "a recount takes too long: {error}");
            }
            Err(error) if error.is_transient() => return Err(error.into()),
            // This post alone: the others need not wait for it.
            Err(error) => tracing::error!(post = %repair.post, "a recount was refused: {error}"),
        }
        requested.insert(repair, Instant::now());
    }
    Ok(())
}
