//! The change log, read and written past the system.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{Consumer as _, StreamConsumer};
use rdkafka::message::OwnedMessage;
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::setting;

/// The topic of the system.
const CHANGES: &str = "likewise.changes";

/// A plain reader and writer of the change log.
pub struct Log {
    producer: FutureProducer,
    consumer: StreamConsumer,
}

impl Log {
    /// Reads committed records of every partition, from the end on.
    ///
    /// # Panics
    /// If Kafka does not answer.
    pub async fn at_end() -> Self {
        let brokers = setting("KAFKA_BROKERS");
        let producer = ClientConfig::new()
            .set("bootstrap.servers", &brokers)
            .set("partitioner", "murmur2_random")
            .create()
            .expect("a producer");
        let consumer: StreamConsumer = ClientConfig::new()
            .set("bootstrap.servers", &brokers)
            .set("group.id", "likewise-tests")
            .set("enable.auto.commit", "false")
            .set("isolation.level", "read_committed")
            .create()
            .expect("a consumer");
        let consumer = tokio::task::spawn_blocking(move || {
            let limit = Duration::from_secs(10);
            let metadata = consumer.fetch_metadata(Some(CHANGES), limit).expect("Kafka answers");
            let mut list = TopicPartitionList::new();
            for partition in metadata.topics()[0].partitions() {
                // The end as it is now: a consumer that looks for it later would miss what came before.
                let (_, high) = consumer
                    .fetch_watermarks(CHANGES, partition.id(), limit)
                    .expect("Kafka answers");
                list.add_partition_offset(CHANGES, partition.id(), Offset::Offset(high))
                    .expect("an offset");
            }
            consumer.assign(&list).expect("an assignment");
            consumer
        });
        Self { producer, consumer: consumer.await.expect("it does not panic") }
    }

    /// The next record, whatever it is.
    ///
    /// # Panics
    /// If none comes within half a minute.
    pub async fn next(&self) -> OwnedMessage {
        let limit = Duration::from_secs(30);
        let message = tokio::time::timeout(limit, self.consumer.recv()).await;
        message.expect("a record comes").expect("Kafka answers").detach()
    }

    /// The next record with this key.
    pub async fn next_of(&self, key: &str) -> OwnedMessage {
        use rdkafka::Message as _;
        loop {
            let message = self.next().await;
            if message.key() == Some(key.as_bytes()) {
                return message;
            }
        }
    }

    /// Appends a record where its key belongs.
    ///
    /// # Panics
    /// If Kafka does not take it.
    pub async fn append(&self, key: &str, value: Option<&[u8]>) {
        self.append_to(None, key, value).await;
    }

    /// Appends a record to a partition.
    ///
    /// # Panics
    /// If Kafka does not take it.
    pub async fn append_to(&self, partition: Option<i32>, key: &str, value: Option<&[u8]>) {
        let mut record = FutureRecord::to(CHANGES).key(key);
        record.partition = partition;
        if let Some(value) = value {
            record = record.payload(value);
        }
        self.producer.send(record, Duration::from_secs(10)).await.expect("Kafka takes it");
    }
}
