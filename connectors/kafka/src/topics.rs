//! The topics of `kafka/topics.json`: made where they are missing, compared where they are there.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::RDKafkaErrorCode;
use serde::Deserialize;

use crate::{Bounds, Brokers, Error, client};

/// The topic that carries the changes of all three tables.
pub const CHANGES: &str = "likewise.changes";

const DEFINITION: &str = include_str!("../../../kafka/topics.json");
const DEADLINE: Duration = Duration::from_secs(20);

/// How the topics are spread.
#[derive(Clone, Copy, Debug)]
pub struct TopicSettings {
    /// Partitions of the change log. Fixed for its life: choose it high.
    pub partitions: u32,
    /// Copies of every partition.
    pub replication_factor: u16,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Topic {
    pub(crate) name: String,
    partitions: Partitions,
    pub(crate) config: BTreeMap<String, String>,
}

impl Topic {
    /// How many it is to have.
    pub(crate) fn partitions(&self, settings: TopicSettings) -> u32 {
        match self.partitions {
            Partitions::Number(number) => number,
            Partitions::Changes(ChangesWord::Changes) => settings.partitions,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Partitions {
    Number(u32),
    /// The number that the settings give to the change log.
    Changes(ChangesWord),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ChangesWord {
    Changes,
}

/// The topics that the system needs.
pub struct Topics {
    pub(crate) brokers: Brokers,
    pub(crate) bounds: Bounds,
    pub(crate) admin: AdminClient<DefaultClientContext>,
    pub(crate) topics: Vec<Topic>,
}

impl Topics {
    /// Reads the definition. Waits for no server.
    pub fn new(brokers: impl Into<Brokers>) -> Result<Self, Error> {
        let brokers = brokers.into();
        let topics = serde_json::from_str(DEFINITION).map_err(Error::Definition)?;
        let admin = client::config(&brokers, "likewise-topics").create()?;
        let bounds = Bounds::new(brokers.clone(), CHANGES)?;
        Ok(Self { brokers, bounds, admin, topics })
    }

    /// Makes what is missing and answers with its names. A topic that is there with another number
    /// of partitions or another configuration is an error, never changed.
    pub async fn create(&self, settings: TopicSettings) -> Result<Vec<&str>, Error> {
        let mut created = Vec::new();
        for topic in &self.topics {
            let partitions = topic.partitions(settings);
            if self.create_one(topic, partitions, settings.replication_factor).await? {
                created.push(topic.name.as_str());
            } else {
                self.compare(topic, partitions).await?;
            }
        }
        Ok(created)
    }

    /// Whether the topic was made; it was there otherwise.
    async fn create_one(
        &self,
        topic: &Topic,
        partitions: u32,
        replicas: u16,
    ) -> Result<bool, Error> {
        let replication = TopicReplication::Fixed(i32::from(replicas));
        let mut new = NewTopic::new(&topic.name, partitions.cast_signed(), replication);
        for (key, value) in &topic.config {
            new = new.set(key, value);
        }
        let results = self.admin.create_topics([&new], &options()).await?;
        match results.into_iter().next() {
            Some(Ok(_)) => Ok(true),
            Some(Err((_, RDKafkaErrorCode::TopicAlreadyExists))) => Ok(false),
            Some(Err((topic, code))) => Err(Error::TopicRefused { topic, code }),
            None => Err(Error::NoTopic(topic.name.clone())),
        }
    }

    async fn compare(&self, topic: &Topic, partitions: u32) -> Result<(), Error> {
        let differs = |setting: &str, found: String, expected: String| {
            let (topic, setting) = (topic.name.clone(), setting.to_owned());
            Err(Error::TopicDiffers { topic, setting, found, expected })
        };
        let found = self.bounds.about(&topic.name).partitions().await?;
        if found != partitions {
            return differs("partitions", found.to_string(), partitions.to_string());
        }
        let resource = ResourceSpecifier::Topic(&topic.name);
        let described = self.admin.describe_configs([&resource], &options()).await?;
        for config in described {
            let refused = |code| Error::TopicRefused { topic: topic.name.clone(), code };
            let config = config.map_err(refused)?;
            for (setting, expected) in &topic.config {
                let found = config.get(setting).and_then(|entry| entry.value.clone());
                if found.as_ref() != Some(expected) {
                    return differs(setting, found.unwrap_or_default(), expected.clone());
                }
            }
        }
        Ok(())
    }
}

fn options() -> AdminOptions {
    AdminOptions::new().operation_timeout(Some(DEADLINE)).request_timeout(Some(DEADLINE))
}
