//! Gathering a batch: as much as is there, within limits.

use std::time::Duration;

use likewise_core::{Batch, Checkpoint, Fingerprint, Fold, in_its_partition};
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

/// How much may be set aside in one batch: dead letters and repairs are documents of their own.
const MOST_SET_ASIDE: usize = 500;

/// A partition of a topic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partition {
    pub(crate) number: u32,
    /// How many the topic has.
    pub(crate) of: u32,
}

/// Waits for a record and gathers what follows it. Not cancel-safe: a batch half gathered is lost,
/// and its records must be fetched again.
pub(crate) async fn gather(
    queue: &PartitionQueue,
    partition: Partition,
    checkpoint: Checkpoint,
    limits: BatchLimits,
) -> Result<Batch, Error> {
    let mut fold = Fold::from(checkpoint);
    let mut bytes = 0;
    let mut record = queue.next().await?;
    let mut taken;
    let end = Instant::now() + limits.age;
    loop {
        bytes += record.len();
        let (key, value) = (record.key(), record.value());
        let entry = decode(key, value);
        let entry = in_its_partition(entry, key, value, partition.number, partition.of);
        taken = fold.apply(record.offset(), entry);
        if fold.records() >= limits.records
            || bytes >= limits.bytes
            || fold.set_aside() >= MOST_SET_ASIDE
        {
            break;
        }
        let patience = end.min(Instant::now() + limits.linger);
        record = match timeout_at(patience, queue.next()).await {
            Ok(next) => next?,
            Err(_) => break,
        };
    }
    let mut batch = fold.finish();
    if taken {
        batch.checkpoint.last_record = Some(Fingerprint::of(record.key(), record.value()));
    }
    Ok(batch)
}
