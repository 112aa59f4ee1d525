//! Gathering a batch: as much as is there, within limits.

use std::time::Duration;

use likewise_core::{Batch, Checkpoint, Fold};
use likewise_debezium::decode;
use likewise_kafka::{Error, PartitionQueue};
use tokio::time::{Instant, timeout_at};

/// When a batch is full. Memory is bounded by these, never by the backlog.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    /// Records of the log.
    pub records: u64,
    /// Bytes of the log.
    pub bytes: usize,
    /// How long a batch may gather from its first record on.
    pub age: Duration,
    /// How long an unfilled batch waits for a next record.
    pub linger: Duration,
}

/// Waits for a record and gathers what follows it. Not cancel-safe: a batch half gathered is lost,
/// and its records must be fetched again.
pub(crate) async fn gather(
    queue: &PartitionQueue,
    checkpoint: Checkpoint,
    limits: BatchLimits,
) -> Result<Batch, Error> {
    let mut fold = Fold::from(checkpoint);
    let mut bytes = 0;
    let mut record = queue.next().await?;
    let end = Instant::now() + limits.age;
    loop {
        bytes += record.len();
        fold.apply(record.offset(), decode(record.key(), record.value()));
        if fold.records() >= limits.records || bytes >= limits.bytes {
            break;
        }
        let patience = end.min(Instant::now() + limits.linger);
        record = match timeout_at(patience, queue.next()).await {
            Ok(next) => next?,
            Err(_) => break,
        };
    }
    Ok(fold.finish())
}
