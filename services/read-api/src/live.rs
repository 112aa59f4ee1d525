//! Which generation is read, and whether all of its counts are in doubt.

use std::time::Duration;

use likewise_mongodb::{Error, Live, Store};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// For how long a switch of the live generation may go unnoticed.
const REFRESH: Duration = Duration::from_millis(500);

pub(crate) const NO_GENERATION: &str = "there is no live generation of counts: run `likewise migrate`, or `likewise rebuild` if the counts were lost";

/// The generation that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Readable {
    pub(crate) live: Live,
    /// A table was truncated, or the log has a gap: until everything was recounted, any count may be wrong.
    pub(crate) in_doubt: bool,
}

/// Publishes the live generation until `shutdown`. While MongoDB is away the last one stands.
pub(crate) async fn watch(
    store: Store,
    publish: watch::Sender<Option<Readable>>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    while !shutdown.is_cancelled() {
        match look(&store).await {
            Ok(seen) => {
                publish.send_if_modified(|current| std::mem::replace(current, seen) != seen);
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the live generation could not be read"
                );
            }
        }
        shutdown.run_until_cancelled(tokio::time::sleep(REFRESH)).await;
    }
    Ok(())
}

async fn look(store: &Store) -> Result<Option<Readable>, Error> {
    let Some(live) = store.live().await? else { return Ok(None) };
    Ok(Some(Readable { live, in_doubt: store.stands(live.generation).await? }))
}
