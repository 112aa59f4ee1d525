//! What the log holds, asked from Kafka by a client of its own that belongs to no group.

use std::sync::Arc;
use std::time::Duration;

use likewise_core::{LogBounds, Offset};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};

use crate::Error;

/// How long Kafka has for an answer.
const DEADLINE: Duration = Duration::from_secs(3);

/// Asks for the size of a topic; clones share the client.
#[derive(Clone)]
pub struct Bounds {
    client: Arc<BaseConsumer>,
    topic: String,
}

impl Bounds {
    /// Makes the client. Waits for no server.
    pub fn new(brokers: &str, topic: &str) -> Result<Self, Error> {
        let client: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", brokers)
            .set("client.id", "likewise-bounds")
            .set("allow.auto.create.topics", "false")
            .create()?;
        Ok(Self { client: Arc::new(client), topic: topic.to_owned() })
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
                this.client.fetch_watermarks(&this.topic, partition.cast_signed(), DEADLINE)?;
            Ok(LogBounds { partitions, low, high })
        })
        .await
    }

    /// The offset behind the last record of each partition.
    pub async fn ends(&self) -> Result<Vec<Offset>, Error> {
        self.ask(|this| {
            let partitions = this.count_partitions()?.cast_signed();
            let end = |partition| this.client.fetch_watermarks(&this.topic, partition, DEADLINE);
            let ends = (0..partitions).map(|partition| Ok(end(partition)?.1));
            ends.collect()
        })
        .await
    }

    fn count_partitions(&self) -> Result<u32, Error> {
        let metadata = self.client.fetch_metadata(Some(&self.topic), DEADLINE)?;
        let partitions = metadata
            .topics()
            .iter()
            .find(|topic| topic.name() == self.topic && topic.error().is_none())
            .map_or(0, |topic| topic.partitions().len());
        match u32::try_from(partitions) {
            Ok(0) | Err(_) => Err(Error::NoTopic(self.topic.clone())),
            Ok(partitions) => Ok(partitions),
        }
    }

    /// librdkafka's calls block.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let this = self.clone();
        tokio::task::spawn_blocking(move || question(&this))
            .await
            .expect("a question does not panic")
    }
}
