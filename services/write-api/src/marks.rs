//! Keeping the marks fresh: soon after a write, and now and then while nobody writes.

use std::sync::Arc;
use std::time::Duration;

use likewise_mysql::Mysql;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Sets due marks until `shutdown`. A write is followed by a mark within twice `interval`: a mark
/// that another instance set less than `interval` ago is left alone, and tried again after it.
pub(crate) async fn keep(
    mysql: Mysql,
    written: Arc<Notify>,
    interval: Duration,
    idle_interval: Duration,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let mut pending = false;
    while !shutdown.is_cancelled() {
        let wait = if pending { interval } else { idle_interval };
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = written.notified(), if !pending => {
                pending = true;
                continue;
            }
            () = tokio::time::sleep(wait) => {}
        }
        // While nobody writes, a mark that another instance set lately will do.
        let due = if pending { interval } else { idle_interval / 2 };
        match mysql.set_due_marks(due).await {
            // Whatever was committed before this statement stands before the mark.
            Ok(set) => pending = pending && !set,
            Err(error) => {
                metrics::counter!("likewise_mark_failures_total").increment(1);
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the marks could not be set"
                );
            }
        }
    }
    Ok(())
}
