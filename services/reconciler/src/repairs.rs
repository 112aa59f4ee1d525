//! Repairs: each post in doubt gets a recount. The aggregator closes the repair when it passes it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use likewise_mongodb::{OpenRepair, Store};
use likewise_mysql::Mysql;
use metrics::{counter, describe_counter, describe_gauge, gauge};
use tokio_util::sync::CancellationToken;

const REQUESTED: &str = "likewise_recounts_requested_total";
const OPEN: &str = "likewise_open_repairs";

/// How often repairs are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How many are worked off between two looks: recounts hold likes of their post up.
const AT_ONCE: i64 = 100;
/// A recount that has not closed its repair by then is written again.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Works repairs off until `shutdown`.
pub(crate) async fn work_off(
    mysql: Mysql,
    store: Store,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    describe_counter!(REQUESTED, "Recounts written for posts in doubt");
    describe_gauge!(OPEN, "Posts whose count is in doubt");
    counter!(REQUESTED).absolute(0);
    let mut requested: HashMap<OpenRepair, Instant> = HashMap::new();
    while !shutdown.is_cancelled() {
        if let Err(error) = look(&mysql, &store, &mut requested).await {
            tracing::warn!("repairs wait: {error:#}");
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
    Ok(())
}

async fn look(
    mysql: &Mysql,
    store: &Store,
    requested: &mut HashMap<OpenRepair, Instant>,
) -> anyhow::Result<()> {
    let open = store.repairs(AT_ONCE).await?;
    #[expect(clippy::cast_precision_loss, reason = "a gauge takes floats")]
    gauge!(OPEN).set(open.len() as f64);
    requested.retain(|repair, _| open.contains(repair));
    for repair in open {
        if requested.get(&repair).is_none_or(|at| at.elapsed() > AGAIN_AFTER) {
            mysql.recount(&repair.post).await?;
            counter!(REQUESTED).increment(1);
            tracing::info!(post = %repair.post, "a post in doubt is recounted");
            requested.insert(repair, Instant::now());
        }
    }
    Ok(())
}
