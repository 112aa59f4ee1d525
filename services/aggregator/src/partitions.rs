//! The number of partitions is fixed for the life of a topic. When somebody changes it all the same,
//! posts move, and *no* partition may be counted on: not only the new ones.

use std::sync::Arc;
use std::time::Duration;

use likewise_core::Refusal;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::Shared;

/// Far below the five minutes after which the connector's producer looks for new partitions by
/// itself, so that counting stops before anything is written to them.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Compares the topic with the generation until `shutdown`, and tells why nothing may be counted.
pub(crate) async fn watch(
    shared: Arc<Shared>,
    tell: watch::Sender<Option<String>>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    while !shutdown.is_cancelled() {
        if let Some(moved) = look(&shared).await {
            let changed = tell.send_if_modified(|told| {
                let differs = *told != moved;
                told.clone_from(&moved);
                differs
            });
            if let (true, Some(reason)) = (changed, &moved) {
                tracing::error!("counting stops: {reason}");
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
    Ok(())
}

/// None when Kafka or MongoDB does not answer, or the generation is gone: a claim says so.
async fn look(shared: &Shared) -> Option<Option<String>> {
    let found = shared.log.partitions().await.ok()?;
    let id = shared.settings.generation;
    let expected = shared.store.generation(id).await.ok()??.partitions();
    let refusal = Refusal::PartitionsChanged { generation: id, expected, found };
    Some((found != expected).then(|| refusal.to_string()))
}
