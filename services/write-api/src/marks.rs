//! Keeping the marks fresh: soon after a write, and now and then while nobody writes.

use std::sync::Arc;
use std::time::Duration;

use likewise_mysql::Mysql;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The pause after MySQL did not take the marks.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Sets due marks until `shutdown`, which must come after the last write, and once more then. A write is followed by a mark within twice `interval`: a mark
/// that another instance set less than `interval` ago is left alone, and tried again after it.
pub(crate) async fn keep(
    mysql: Mysql,
    written: Arc<Notify>,
    interval: Duration,
    idle_interval: Duration,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let mut pending = false;
    let mut wait = idle_interval;
    while !shutdown.is_cancelled() {
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = written.notified(), if !pending => {
                pending = true;
                wait = interval;
                continue;
            }
            () = tokio::time::sleep(wait) => {}
        }
        // While nobody writes, a mark that another instance set lately will do.
        let due = if pending { interval } else { idle_interval / 2 };
        match mysql.set_due_marks(due).await {
            // Whatever was committed before this statement stands before the mark.
            Ok(set) => {
                pending = pending && !set;
                wait = if pending { interval } else { idle_interval };
            }
            Err(error) => {
                metrics::counter!("likewise_mark_failures_total").increment(1);
                // What was written stays pending; a server that is away need not be asked so often.
                pending = true;
                wait = AFTER_FAILURE;
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the marks could not be set"
                );
            }
        }
    }
    if let Err(error) = mysql.set_due_marks(Duration::ZERO).await {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(error, "the last marks could not be set: the next instance sets them");
    }
    Ok(())
}
