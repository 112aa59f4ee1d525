//! Whether MySQL still has what was counted of it. A server that was restored from a backup or reset keeps
//! its UUID and gives numbers to new transactions that others had before: they would be taken for repeats.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use likewise_core::{Position, SourceName};
use likewise_mongodb::{PartitionStatus, Store};
use likewise_mysql::{Gtid, Mysql};
use metrics::{describe_gauge, gauge};
use tokio_util::sync::CancellationToken;

const HALTED: &str = "likewise_generation_halted";

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// MySQL hands a transaction to the readers of its binlog before it is among the executed ones: a moment,
/// or as long as it waits for a semi-synchronous replica. What is missing for longer is lost.
const LOST_AFTER: Duration = Duration::from_secs(30);

/// Compares the positions of every checkpoint with MySQL until `shutdown`, and halts the generation
/// when the server lacks one.
pub(crate) async fn watch(
    mysql: Mysql,
    store: Store,
    source: SourceName,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    describe_gauge!(HALTED, "1 while the live generation is halted: see `likewise doctor`");
    let mut missing_since = BTreeMap::new();
    while !shutdown.is_cancelled() {
        if let Err(error) = look(&mysql, &store, &source, &mut missing_since).await {
            tracing::warn!("MySQL's history is not compared with what was counted: {error:#}");
        }
        shutdown.run_until_cancelled(tokio::time::sleep(LOOK_EVERY)).await;
    }
    Ok(())
}

async fn look(
    mysql: &Mysql,
    store: &Store,
    source: &SourceName,
    missing_since: &mut BTreeMap<Gtid, Instant>,
) -> anyhow::Result<()> {
    let Some(live) = store.live().await? else { return Ok(()) };
    let halted = store.generation(live.generation).await?.and_then(|generation| generation.halted);
    gauge!(HALTED).set(if halted.is_some() { 1.0 } else { 0.0 });
    // In this order: what is counted was executed before.
    let counted = counted(&store.partitions(live.generation).await?, source);
    let missing = mysql.not_executed(counted).await?;
    missing_since.retain(|gtid, _| missing.contains(gtid));
    for gtid in missing {
        missing_since.entry(gtid).or_insert_with(Instant::now);
    }
    let lost = missing_since.iter().find(|(_, since)| since.elapsed() >= LOST_AFTER);
    if let (None, Some((lost, _))) = (halted, lost) {
        let reason = format!(
            "MySQL has not executed {lost}, which was counted: the server was restored or reset; \
             run `likewise recount --all --new-positions` once it is the right one"
        );
        tracing::error!("counting is halted: {reason}");
        store.halt(live.generation, &reason).await?;
    }
    Ok(())
}

/// The last transactions counted of the source.
fn counted(partitions: &[PartitionStatus], source: &SourceName) -> BTreeSet<Gtid> {
    let positions = partitions.iter().flat_map(|partition| partition.positions.iter());
    let gtid = |position: &Position| Gtid {
        uuid: position.server.uuid,
        tag: position.server.tag.to_string(),
        number: position.transaction,
    };
    positions.filter(|(of, _)| *of == source).map(|(_, position)| gtid(position)).collect()
}
