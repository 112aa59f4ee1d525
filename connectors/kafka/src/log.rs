//! The change log, as a member of its consumer group reads it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use likewise_core::{Fingerprint, LogBounds, Offset};
use rdkafka::Message as _;
use rdkafka::consumer::stream_consumer::StreamPartitionQueue;
use rdkafka::consumer::{CommitMode, Consumer as _, StreamConsumer};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::BorrowedMessage;
use rdkafka::topic_partition_list::{Offset as StartOffset, TopicPartitionList};
use tokio::sync::mpsc;

use crate::membership::{Assignment, Event, Membership};
use crate::{Bounds, Brokers, Error, client};

const CLIENT_ID: &str = "likewise-aggregator";

/// What the coordinator answers to a member that it has dropped.
const DROPPED: [RDKafkaErrorCode; 4] = [
    RDKafkaErrorCode::IllegalGeneration,
    RDKafkaErrorCode::UnknownMemberId,
    RDKafkaErrorCode::FencedInstanceId,
    RDKafkaErrorCode::AssignmentLost,
];

/// How often one and the same error is logged.
const SAY_EVERY: Duration = Duration::from_secs(10);

/// How to read the change log.
#[derive(Clone, Debug)]
pub struct ChangeLogSettings {
    /// `host:port,host:port`.
    pub brokers: Brokers,
    /// The topic.
    pub topic: String,
    /// The consumer group.
    pub group: String,
    /// How many KiB of each partition are fetched ahead at most.
    pub prefetch_kib: u32,
}

/// A member of the consumer group.
pub struct ChangeLog {
    consumer: Arc<StreamConsumer<Membership>>,
    topic: String,
    bounds: Bounds,
}

/// One record as it stands in the log.
#[derive(Debug)]
pub struct Record<'a>(BorrowedMessage<'a>);

impl Record<'_> {
    /// Where it stands. Offsets have gaps: markers of producers' transactions take some.
    pub fn offset(&self) -> Offset {
        self.0.offset()
    }

    /// The key.
    pub fn key(&self) -> Option<&[u8]> {
        self.0.key()
    }

    /// The value; none for a tombstone.
    pub fn value(&self) -> Option<&[u8]> {
        self.0.payload()
    }

    /// The bytes that it takes in memory, about.
    pub fn len(&self) -> usize {
        self.0.payload_len() + self.0.key_len()
    }

    /// Whether it has neither key nor value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The records of one partition, in order.
pub struct PartitionQueue(StreamPartitionQueue<Membership>);

impl PartitionQueue {
    /// Waits for the next record. Cancel-safe: a record is either returned or stays.
    pub async fn next(&self) -> Result<Record<'_>, Error> {
        Ok(Record(self.0.recv().await?))
    }
}

impl ChangeLog {
    /// Joins the group. What it owns arrives as events, and only while [`ChangeLog::serve`] runs.
    pub fn join(
        settings: &ChangeLogSettings,
    ) -> Result<(Self, mpsc::UnboundedReceiver<Event>), Error> {
        let (membership, events) = Membership::new(settings.topic.clone());
        let consumer: StreamConsumer<Membership> = client::config(&settings.brokers, CLIENT_ID)
            .set("group.id", &settings.group)
            .set("partition.assignment.strategy", "cooperative-sticky")
            // A dead member's partitions wait this long; a pause of the process below it costs nothing.
            .set("session.timeout.ms", "10000")
            .set("heartbeat.interval.ms", "2000")
            .set("max.poll.interval.ms", "60000")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "error")
            .set("isolation.level", "read_committed")
            .set("queued.max.messages.kbytes", settings.prefetch_kib.to_string())
            // The default of 1 s leaves a full queue idle for that long after it was emptied.
            .set("fetch.queue.backoff.ms", "20")
            .set("fetch.error.backoff.ms", "100")
            .set("reconnect.backoff.max.ms", "1000")
            .create_with_context(membership)?;
        consumer.subscribe(&[&settings.topic])?;
        let bounds = Bounds::new(settings.brokers.clone(), &settings.topic)?;
        let log = Self { consumer: Arc::new(consumer), topic: settings.topic.clone(), bounds };
        Ok((log, events))
    }

    /// Serves the group until the client fails for good. Must be running for events to arrive.
    pub async fn serve(&self) -> Error {
        let mut said: Option<(String, Instant)> = None;
        loop {
            match self.consumer.recv().await.map_err(Error::from) {
                // Every partition has a queue of its own before it is fetched.
                Ok(message) => {
                    return Error::Fatal(rdkafka::error::KafkaError::ClientCreation(format!(
                        "a record of partition {} came past its queue",
                        message.partition()
                    )));
                }
                Err(error @ Error::Fatal(_)) => return error,
                Err(error) => {
                    // While a broker is away librdkafka says so several times a second.
                    let text = error.to_string();
                    if said
                        .as_ref()
                        .is_none_or(|(last, at)| *last != text || at.elapsed() > SAY_EVERY)
                    {
                        tracing::warn!("{text}");
                        said = Some((text, Instant::now()));
                    }
                }
            }
        }
    }

    /// How many partitions the topic has.
    pub async fn partitions(&self) -> Result<u32, Error> {
        self.bounds.partitions().await
    }

    /// What the log holds of a partition.
    pub async fn bounds(&self, partition: u32) -> Result<LogBounds, Error> {
        self.bounds.of(partition).await
    }

    /// The first record from `offset` on; see [`Bounds::record_from`].
    pub async fn record_from(
        &self,
        partition: u32,
        offset: Offset,
    ) -> Result<Option<(Offset, Fingerprint)>, Error> {
        self.bounds.record_from(partition, offset).await
    }

    /// Whether the group still gives the partition to this member, asked from its coordinator: a member that
    /// was frozen may have been dropped without knowing it. The question is a commit of `counted`, the
    /// first offset that is not counted, which the coordinator refuses to a member of an older generation
    /// of the group; nobody reads it.
    pub async fn confirm(
        &self,
        partition: u32,
        assignment: Assignment,
        counted: Offset,
    ) -> Result<bool, Error> {
        if !self.holds(partition, assignment) {
            return Ok(false);
        }
        let mut list = TopicPartitionList::new();
        let offset = StartOffset::Offset(counted);
        list.add_partition_offset(&self.topic, partition.cast_signed(), offset)
            .expect("an offset of ours is never negative");
        let consumer = self.consumer.clone();
        let asked = tokio::task::spawn_blocking(move || consumer.commit(&list, CommitMode::Sync));
        match asked.await.expect("a question does not panic") {
            Ok(()) => Ok(self.holds(partition, assignment)),
            Err(error) => match error.rdkafka_error_code() {
                Some(code) if DROPPED.contains(&code) => Ok(false),
                _ => Err(error.into()),
            },
        }
    }

    /// Whether the assignment stands, as far as this member knows.
    pub fn holds(&self, partition: u32, assignment: Assignment) -> bool {
        self.consumer.context().holds(partition, assignment)
    }

    /// Fetches a partition from `offset` on. None when the assignment does not stand any more. A
    /// queue of the same partition must have been dropped before.
    pub fn start(
        &self,
        partition: u32,
        assignment: Assignment,
        offset: Offset,
    ) -> Result<Option<PartitionQueue>, Error> {
        // The queue comes first: what is fetched before there is one would be delivered elsewhere.
        let queue = self
            .consumer
            .split_partition_queue(&self.topic, partition.cast_signed())
            .expect("the topic's name has no NUL");
        let membership = self.consumer.context();
        let started = membership.start(&*self.consumer, partition, assignment, offset)?;
        Ok(started.then_some(PartitionQueue(queue)))
    }

    /// Stops fetching a partition; it stays assigned.
    pub fn pause(&self, partition: u32, assignment: Assignment) {
        self.consumer.context().pause(&*self.consumer, partition, assignment);
    }

    /// Leaves the group, so that others take over at once. Every queue must have been dropped.
    pub async fn leave(self) {
        let consumer = self.consumer;
        let closing = tokio::task::spawn_blocking(move || drop(consumer));
        if tokio::time::timeout(Duration::from_secs(5), closing).await.is_err() {
            tracing::warn!(
                "leaving the consumer group takes long: the group will notice by itself"
            );
        }
    }
}
