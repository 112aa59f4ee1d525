//! How far the log goes, and how far it is counted.

use std::time::Duration;

use likewise_core::Offset;
use likewise_kafka::{Bounds, CHANGES};
use likewise_mongodb::{PartitionStatus, Store, StoreSettings};
use likewise_tests::{eventually, setting};

/// Asks Kafka and MongoDB, past the roles.
pub(crate) struct Progress {
    log: Bounds,
    store: Store,
}

impl Progress {
    /// Of the stack's own generation.
    pub(crate) async fn new() -> Self {
        let settings = StoreSettings {
            uri: setting("MONGODB_URI"),
            database: "likewise".to_owned(),
            max_connections: 4,
            deadline: Duration::from_secs(5),
        };
        let log = Bounds::new(setting("KAFKA_BROKERS"), CHANGES).expect("a client");
        Self { log, store: Store::new(&settings).await.expect("a client") }
    }

    /// The ends of the log; none while Kafka does not answer.
    pub(crate) async fn ends(&self) -> Option<Vec<Offset>> {
        self.log.ends().await.ok()
    }

    /// The offsets of all partitions together; none while Kafka does not answer.
    pub(crate) async fn length(&self) -> Option<u64> {
        let ends = self.ends().await?;
        Some(ends.into_iter().map(|end| u64::try_from(end).expect("not negative")).sum())
    }

    /// The checkpoints; none while MongoDB does not answer.
    pub(crate) async fn partitions(&self) -> Option<Vec<PartitionStatus>> {
        self.store.partitions(1).await.ok()
    }

    /// How often a partition was claimed, all of them together.
    pub(crate) async fn claims(&self) -> u64 {
        let partitions = self.partitions().await.expect("MongoDB answers");
        partitions.iter().map(|partition| partition.epoch.unsigned_abs()).sum()
    }

    /// How many records before `ends` are not counted.
    pub(crate) async fn behind(&self, ends: &[Offset]) -> u64 {
        let partitions = self.partitions().await.expect("MongoDB answers");
        let behind = partitions.iter().zip(ends).map(|(partition, end)| {
            // The last offset may be the mark of a transaction's end, which no reader is given.
            end.saturating_sub(1).saturating_sub(partition.next_offset).max(0).unsigned_abs()
        });
        behind.sum()
    }

    /// Waits until every partition is counted further than now.
    pub(crate) async fn moves(&self) {
        let before = self.partitions().await.expect("MongoDB answers");
        eventually("every partition is counted on", Duration::from_secs(90), async || {
            let now = self.partitions().await?;
            let moved = |(before, now): (&PartitionStatus, &PartitionStatus)| {
                now.next_offset > before.next_offset
            };
            before.iter().zip(&now).all(moved).then_some(())
        })
        .await;
    }
}
