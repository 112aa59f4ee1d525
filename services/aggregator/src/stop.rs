//! Why *no* partition of the generation may be counted at the moment, looked at all the time.
//!
//! The number of partitions is fixed for the life of a topic. When somebody changes it all the same,
//! posts move, and no partition may be counted on: not only the new ones. A topic that is deleted and made
//! anew while it is read goes unnoticed by the reader once it has grown past where that was; and a MySQL
//! server may lack what was counted of it. For these two the generation is halted, durably.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use likewise_core::{Checkpoint, Fingerprint, Offset, Refusal, know_again};
use metrics::counter;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{Shared, telemetry};

/// Far below the five minutes after which the connector's producer looks for new partitions by
/// itself, so that counting stops before anything is written to them.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The last record that was counted of a partition, as of an earlier look.
struct Anchor {
    offset: Offset,
    record: Fingerprint,
    /// It was not there at the look before. A broker that has just become the leader may not show its
    /// last records for a moment: what is missing twice is gone.
    missed: bool,
}

type Anchors = HashMap<u32, Anchor>;

/// Compares topic, log and generation until `shutdown`, and tells why nothing may be counted.
pub(crate) async fn watch(
    shared: Arc<Shared>,
    tell: watch::Sender<Option<String>>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let mut anchors = Anchors::new();
    while !shutdown.is_cancelled() {
        match look(&shared, &mut anchors).await {
            Ok(reason) => {
                let changed = tell.send_if_modified(|told| {
                    let differs = *told != reason;
                    told.clone_from(&reason);
                    differs
                });
                if let (true, Some(reason)) = (changed, &reason) {
                    tracing::error!("counting stops: {reason}");
                }
            }
            // A claim says so, where it matters.
            Err(error) => tracing::debug!("the log is not compared with the generation: {error:#}"),
        }
        shutdown.run_until_cancelled(tokio::time::sleep(LOOK_EVERY)).await;
    }
    Ok(())
}

async fn look(shared: &Shared, anchors: &mut Anchors) -> anyhow::Result<Option<String>> {
    let found = shared.log.partitions().await?;
    let id = shared.settings.generation;
    let Some(generation) = shared.store.generation(id).await? else { return Ok(None) };
    let expected = generation.partitions();
    let refusal = match generation.halted {
        Some(reason) => Some(Refusal::Halted(id, reason)),
        None if found != expected => {
            Some(Refusal::PartitionsChanged { generation: id, expected, found })
        }
        None => {
            let refusal = another_log(shared, anchors).await?;
            if let Some(refusal) = &refusal {
                shared.store.halt(id, &refusal.to_string()).await?;
            }
            refusal
        }
    };
    Ok(refusal.map(|refusal| refusal.to_string()))
}

/// Whether the records that were the last ones counted at the look before are still there. Anchors are
/// as old as that because the last record of now may be the new log's already.
async fn another_log(shared: &Shared, anchors: &mut Anchors) -> anyhow::Result<Option<Refusal>> {
    anchors.retain(|partition, _| shared.board.has(*partition));
    for (partition, anchor) in &mut *anchors {
        let refusal = match compare(shared, *partition, anchor).await {
            Ok(refusal) => refusal,
            Err(error) => {
                tracing::debug!(partition, "the log could not be looked at: {error:#}");
                continue;
            }
        };
        if anchor.missed && refusal.is_some() {
            return Ok(refusal);
        }
        anchor.missed = refusal.is_some();
    }
    for known in shared.store.partitions(shared.settings.generation).await? {
        let missed = anchors.get(&known.partition).is_some_and(|anchor| anchor.missed);
        if let (false, true, Some(record)) =
            (missed, shared.board.has(known.partition), known.last_record)
        {
            let anchor = Anchor { offset: known.next_offset - 1, record, missed: false };
            anchors.insert(known.partition, anchor);
        }
    }
    counter!(telemetry::LOG_LOOKS).increment(1);
    Ok(None)
}

async fn compare(
    shared: &Shared,
    partition: u32,
    &Anchor { offset, record, .. }: &Anchor,
) -> anyhow::Result<Option<Refusal>> {
    if shared.log.bounds(partition).await?.low > offset {
        return Ok(None);
    }
    let counted = Checkpoint { last_record: Some(record), ..Checkpoint::at(offset + 1) };
    Ok(match shared.log.record_from(partition, offset).await? {
        Some((offset, found)) => know_again(partition, &counted, offset, found).err(),
        None => Some(Refusal::AnotherLog { partition, offset }),
    })
}
