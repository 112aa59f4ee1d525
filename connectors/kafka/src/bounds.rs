//! What the log holds, asked from Kafka by a client of its own that belongs to no group.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use likewise_core::{Fingerprint, LogBounds, Offset};
use rdkafka::Message as _;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::topic_partition_list::{Offset as StartOffset, TopicPartitionList};

use crate::{Error, client};

/// How long Kafka has for an answer.
const DEADLINE: Duration = Duration::from_secs(3);

/// Asks for the size of a topic, and for single records; clones share the clients.
///
/// A client that failed is replaced: librdkafka may be left without a single broker, for ever, when it asks one
/// that has just woken from a freeze, is unknown to its cluster for that moment, and lists none.
#[derive(Clone)]
pub struct Bounds {
    brokers: String,
    client: Arc<Mutex<Arc<BaseConsumer>>>,
    /// Reads one record at a time.
    reader: Arc<Mutex<BaseConsumer>>,
    topic: String,
}

impl Bounds {
    /// Makes the client. Waits for no server.
    pub fn new(brokers: &str, topic: &str) -> Result<Self, Error> {
        Ok(Self {
            brokers: brokers.to_owned(),
            client: Arc::new(Mutex::new(Arc::new(asker(brokers)?))),
            reader: Arc::new(Mutex::new(reader(brokers)?)),
            topic: topic.to_owned(),
        })
    }

    fn client(&self) -> Arc<BaseConsumer> {
        self.client.lock().expect("no holder of the lock panics").clone()
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
        self.ask(move |this| {
            let mut reader = this.reader.lock().expect("no holder of the lock panics");
            let mut list = TopicPartitionList::new();
            list.add_partition_offset(
                &this.topic,
                partition.cast_signed(),
                StartOffset::Offset(offset),
            )?;
            reader.assign(&list)?;
            let read = read_one(&reader);
            reader.unassign()?;
            if matches!(read, Err(Error::Unavailable(_))) {
                *reader = self::reader(&this.brokers)?;
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
        self.ask(Self::count_partitions).await
    }

    /// What the log holds of one partition.
    pub async fn of(&self, partition: u32) -> Result<LogBounds, Error> {
        self.ask(move |this| {
            let partitions = this.count_partitions()?;
            let (low, high) =
                this.client().fetch_watermarks(&this.topic, partition.cast_signed(), DEADLINE)?;
            Ok(LogBounds { partitions, low, high })
        })
        .await
    }

    /// The offset behind the last record of each partition.
    pub async fn ends(&self) -> Result<Vec<Offset>, Error> {
        self.ask(|this| {
            let partitions = this.count_partitions()?.cast_signed();
            let end = |partition| this.client().fetch_watermarks(&this.topic, partition, DEADLINE);
            let ends = (0..partitions).map(|partition| Ok(end(partition)?.1));
            ends.collect()
        })
        .await
    }

    /// The number of partitions, and of copies of the one that has fewest.
    pub(crate) async fn shape(&self) -> Result<(u32, u32), Error> {
        self.ask(Self::look_at_shape).await
    }

    fn count_partitions(&self) -> Result<u32, Error> {
        self.look_at_shape().map(|(partitions, _)| partitions)
    }

    fn look_at_shape(&self) -> Result<(u32, u32), Error> {
        let metadata = self.client().fetch_metadata(Some(&self.topic), DEADLINE)?;
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

    /// librdkafka's calls block.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let this = self.clone();
        let asked = move || {
            let client = this.client();
            let answer = question(&this);
            if matches!(answer, Err(Error::Unavailable(_))) {
                this.replace(&client);
            }
            answer
        };
        tokio::task::spawn_blocking(asked).await.expect("a question does not panic")
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

fn asker(brokers: &str) -> Result<BaseConsumer, Error> {
    Ok(client::config(brokers, "likewise-bounds").create()?)
}

fn reader(brokers: &str) -> Result<BaseConsumer, Error> {
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
