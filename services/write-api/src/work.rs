//! What the write API does in the background: working deletions off, and sweeping.
//!
//! Each instance does both. They share deletions by MySQL's row locks, and a sweep is one statement that
//! finds what another has left, so any number of instances does no harm.

use std::sync::Arc;
use std::time::{Duration, Instant};

use likewise_mysql::{Error, Mysql};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How many rows one transaction deletes: some ten milliseconds for whoever waits for one of its rows.
const CHUNK: u32 = 500;
/// A claim outlives a pause between two chunks, and not a process that stands still.
const LEASE: Duration = Duration::from_secs(10);
/// How often deletions are looked for that another instance took on and did not end.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// A sweep that finds nothing reads one entry of an index.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// Long after whoever asked has seen it.
const RECEIPT_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// Works open deletions off until `shutdown`, soon after one was `asked` for. What it deletes needs marks:
/// `written` hears of each chunk.
pub(crate) async fn delete(
    mysql: Mysql,
    asked: Arc<Notify>,
    written: Arc<Notify>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    while !shutdown.is_cancelled() {
        if let Err(error) = delete_all(&mysql, &written, &shutdown).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "deletions could not be worked off"
            );
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = asked.notified() => {}
            () = tokio::time::sleep(jittered(LOOK_EVERY)) => {}
        }
    }
    Ok(())
}

async fn delete_all(
    mysql: &Mysql,
    written: &Notify,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    if !mysql.has_open_deletion().await? {
        return Ok(());
    }
    let mut deleting = mysql.deleting(LEASE).await?;
    while !shutdown.is_cancelled() {
        let started = Instant::now();
        let chunk = deleting.chunk(CHUNK).await;
        // A chunk whose outcome is unknown may have taken effect.
        written.notify_one();
        let Some(chunk) = chunk? else { break };
        metrics::counter!("likewise_deleted_edges_total").increment(chunk.edges);
        if chunk.done {
            metrics::counter!("likewise_deletions_done_total").increment(1);
        }
        // Half of the time belongs to the others.
        let pause = tokio::time::sleep(started.elapsed().min(LEASE / 2));
        shutdown.run_until_cancelled(pause).await;
    }
    Ok(())
}

/// Removes rows that only remember a `seq` and are older than `retention`, and old receipts, until `shutdown`.
pub(crate) async fn sweep(
    mysql: Mysql,
    retention: Duration,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let swept = metrics::counter!("likewise_swept_total");
    while !shutdown.is_cancelled() {
        let sweeping = async {
            let edges = mysql.sweep_edges(retention, CHUNK).await?;
            swept.increment(edges);
            let receipts = mysql.sweep_receipts(RECEIPT_RETENTION, CHUNK).await?;
            Ok::<_, Error>(edges.max(receipts) >= u64::from(CHUNK))
        };
        let more = sweeping.await.unwrap_or_else(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "a sweep failed");
            false
        });
        let pause = jittered(if more { SWEEP_EVERY / 100 } else { SWEEP_EVERY });
        shutdown.run_until_cancelled(tokio::time::sleep(pause)).await;
    }
    Ok(())
}

/// Half to one and a half of a time, so that instances that started together part.
fn jittered(around: Duration) -> Duration {
    around.mul_f64(rand::random_range(0.5..1.5))
}
