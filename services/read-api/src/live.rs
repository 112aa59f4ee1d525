//! Which generation is read.

use std::time::Duration;

use likewise_mongodb::{Live, Store};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// For how long a switch of the live generation may go unnoticed.
const REFRESH: Duration = Duration::from_millis(500);

pub(crate) const NO_GENERATION: &str = "there is no live generation of counts: run `likewise migrate`, or `likewise rebuild` if the counts were lost";

/// Publishes the live generation until `shutdown`. While MongoDB is away the last one stands.
pub(crate) async fn watch(
    store: Store,
    publish: watch::Sender<Option<Live>>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    while !shutdown.is_cancelled() {
        match store.live().await {
            Ok(live) => {
                publish.send_if_modified(|current| std::mem::replace(current, live) != live);
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the live generation could not be read"
                );
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = tokio::time::sleep(REFRESH) => {}
        }
    }
    Ok(())
}
