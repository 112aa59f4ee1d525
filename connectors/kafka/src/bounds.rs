//! What the log holds, asked from Kafka by a client of its own that belongs to no group.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use likewise_core::{Fingerprint, LogBounds, Offset};
use rdkafka::Message as _;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::topic_partition_list::{Offset as StartOffset, TopicPartitionList};

use crate::{Brokers, Error, client};

/// How long Kafka has for an answer.
const DEADLINE: Duration = Duration::from_secs(3);

/// Asks for the size of a topic, and for single records; clones share the clients.
///
/// A client that failed is replaced: librdkafka may be left without a single broker, for ever, when it asks one
/// that has just woken from a freeze, is unknown to its cluster for that moment, and lists none.
#[derive(Clone)]
pub struct Bounds {
    brokers: Brokers,
    client: Arc<Mutex<Arc<BaseConsumer>>>,
    /// Reads one record at a time; made when it is first needed.
    reader: Arc<Mutex<Option<BaseConsumer>>>,
    topic: String,
}

impl Bounds {
    /// Makes the client. Waits for no server.
    pub fn new(brokers: impl Into<Brokers>, topic: &str) -> Result<Self, Error> {
        let brokers = brokers.into();
        Ok(Self {
            client: Arc::new(Mutex::new(Arc::new(asker(&brokers)?))),
            brokers,
            reader: Arc::default(),
            topic: topic.to_owned(),
        })
    }

    /// Replaces the client that failed, unless somebody has.
    fn replace(&self, failed: &Arc<BaseConsumer>) {
        let Ok(fresh) = asker(&self.brokers) else { return };
        let mut client = self.client.lock().expect("no holder of the lock panics");
        if Arc::ptr_eq(&client, failed) {
            *client = Arc::new(fresh);
        }
    }

    /// The first record that a reader of committed records finds from `offset` on, with its offset. None
    /// when the log has no such offset, or nothing to read from there on.
    pub async fn record_from(
        &self,
        partition: u32,
        offset: Offset,
    ) -> Result<Option<(Offset, Fingerprint)>, Error> {
        self.run(move |this| {
            let mut kept = this.reader.lock().expect("no holder of the lock panics");
            let reader = match kept.take() {
                Some(reader) => reader,
                None => reader(&this.brokers)?,
            };
            let mut list = TopicPartitionList::new();
            list.add_partition_offset(
                &this.topic,
                partition.cast_signed(),
                StartOffset::Offset(offset),
            )?;
            reader.assign(&list)?;
            let read = read_one(&reader);
            reader.unassign()?;
            if !matches!(read, Err(Error::Unavailable(_))) {
                *kept = Some(reader);
            }
            read
        })
        .await
    }

    /// Asks for another topic, through the same client.
    pub(crate) fn about(&self, topic: &str) -> Self {
        Self { topic: topic.to_owned(), ..self.clone() }
    }

    /// The number of partitions of the topic.
    pub async fn partitions(&self) -> Result<u32, Error> {
        self.ask(|this, client| this.count_partitions(client)).await
    }

    /// What the log holds of one partition.
    pub async fn of(&self, partition: u32) -> Result<LogBounds, Error> {
        self.ask(move |this, client| {
            let partitions = this.count_partitions(client)?;
            let (low, high) =
                client.fetch_watermarks(&this.topic, partition.cast_signed(), DEADLINE)?;
            Ok(LogBounds { partitions, low, high })
        })
        .await
    }

    /// The offset behind the last record of each partition.
    pub async fn ends(&self) -> Result<Vec<Offset>, Error> {
        self.ask(|this, client| {
            let partitions = this.count_partitions(client)?.cast_signed();
            let end = |partition| client.fetch_watermarks(&this.topic, partition, DEADLINE);
            let ends = (0..partitions).map(|partition| Ok(end(partition)?.1));
            ends.collect()
        })
        .await
    }

    /// The number of partitions, and of copies of the one that has fewest.
    pub(crate) async fn shape(&self) -> Result<(u32, u32), Error> {
        self.ask(|this, client| this.look_at_shape(client)).await
    }

    fn count_partitions(&self, client: &BaseConsumer) -> Result<u32, Error> {
        self.look_at_shape(client).map(|(partitions, _)| partitions)
    }

    fn look_at_shape(&self, client: &BaseConsumer) -> Result<(u32, u32), Error> {
        let metadata = client.fetch_metadata(Some(&self.topic), DEADLINE)?;
        let topic = metadata
            .topics()
            .iter()
            .find(|topic| topic.name() == self.topic && topic.error().is_none());
        let partitions = topic.map_or(&[][..], |topic| topic.partitions());
        let copies = partitions.iter().map(|partition| partition.replicas().len()).min();
        match (u32::try_from(partitions.len()), copies.map(u32::try_from)) {
            (Ok(partitions), Some(Ok(copies))) => Ok((partitions, copies)),
            _ => Err(Error::NoTopic(self.topic.clone())),
        }
    }

    /// Asks through the client, which is replaced when it fails.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Self, &BaseConsumer) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.run(move |this| {
            let client = this.client.lock().expect("no holder of the lock panics").clone();
            let answer = question(this, &client);
            if matches!(answer, Err(Error::Unavailable(_))) {
                this.replace(&client);
            }
            answer
        })
        .await
    }

    /// librdkafka's calls block.
    async fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let this = self.clone();
        let called = tokio::task::spawn_blocking(move || call(&this));
        called.await.expect("a call does not panic")
    }
}

/// The first record of what is assigned; none where there is nothing. What is told of brokers that were away
/// is older than the question.
fn read_one(reader: &BaseConsumer) -> Result<Option<(Offset, Fingerprint)>, Error> {
    let until = Instant::now() + DEADLINE;
    loop {
        match reader.poll(until.saturating_duration_since(Instant::now())) {
            Some(Ok(record)) => {
                let fingerprint = Fingerprint::of(record.key(), record.payload());
                return Ok(Some((record.offset(), fingerprint)));
            }
            Some(Err(KafkaError::PartitionEOF(_))) => return Ok(None),
            Some(Err(error)) => match Error::from(error) {
                Error::OutsideLog(_) => return Ok(None),
                Error::Unavailable(_) => {}
                error => return Err(error),
            },
            None => {
                let code = RDKafkaErrorCode::OperationTimedOut;
                return Err(Error::Unavailable(KafkaError::MessageConsumption(code)));
            }
        }
    }
}

fn asker(brokers: &Brokers) -> Result<BaseConsumer, Error> {
    Ok(client::config(brokers, "likewise-bounds").create()?)
}

fn reader(brokers: &Brokers) -> Result<BaseConsumer, Error> {
    // Assigned by hand it joins no group, but librdkafka wants a name.
    let reader = client::config(brokers, "likewise-bounds")
        .set("group.id", "likewise-bounds")
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "error")
        .set("isolation.level", "read_committed")
        // Tells "there is nothing" from "there was no answer".
        .set("enable.partition.eof", "true")
        .set("fetch.message.max.bytes", "65536")
        .create()?;
    Ok(reader)
}
