//! What the write API does in the background: sweeping.
//!
//! A sweep is one statement that finds what another instance has left, so any number of them does no harm.

use std::time::Duration;

use likewise_mysql::{Error, Mysql};
use tokio_util::sync::CancellationToken;

/// How many rows one transaction deletes: some ten milliseconds for whoever waits for one of its rows.
const CHUNK: u32 = 500;
/// A sweep that finds nothing reads one entry of an index.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// Removes rows that only remember a `seq` and are older than `retention`, until `shutdown`.
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
            Ok::<_, Error>(edges >= u64::from(CHUNK))
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
