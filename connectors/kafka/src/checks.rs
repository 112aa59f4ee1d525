//! Looking at what the topics are set to, for whoever would lose likes, or their order, with it.

mod rules;

use std::collections::BTreeMap;
use std::time::Duration;

use likewise_core::Finding;
use rdkafka::admin::{AdminOptions, ResourceSpecifier};

use crate::checks::rules::Seen;
use crate::topics::Topic;
use crate::{CHANGES, Error, TopicSettings, Topics};

/// How long Kafka has for an answer: a role waits for it before it starts.
const DEADLINE: Duration = Duration::from_secs(3);

impl Topics {
    /// Asks Kafka for an answer about the topic that carries the changes.
    pub async fn ping(&self) -> Result<(), Error> {
        self.bounds.partitions().await.map(drop)
    }

    /// What is not as it must be in the topic that carries the changes, for whoever reads it.
    pub async fn check_changes(&self) -> Result<Vec<Finding>, Error> {
        let Some(topic) = self.topics.iter().find(|topic| topic.name == CHANGES) else {
            return Err(Error::NoTopic(CHANGES.to_owned()));
        };
        let seen = self.see(topic).await?;
        Ok(rules::check_changes(&seen, self.brokers.addresses()))
    }

    /// What is missing, or not as it must be, in any topic.
    pub async fn check(&self, settings: TopicSettings) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        for topic in &self.topics {
            match self.see(topic).await {
                Ok(seen) => {
                    let partitions = topic.partitions(settings);
                    findings.extend(rules::check(
                        topic,
                        partitions,
                        &seen,
                        self.brokers.addresses(),
                    ));
                }
                Err(Error::NoTopic(name)) => findings.push(rules::missing(&name)),
                Err(error) => return Err(error),
            }
        }
        Ok(findings)
    }

    async fn see(&self, topic: &Topic) -> Result<Seen, Error> {
        let (partitions, replicas) = self.bounds.about(&topic.name).shape().await?;
        let options =
            AdminOptions::new().operation_timeout(Some(DEADLINE)).request_timeout(Some(DEADLINE));
        let resource = ResourceSpecifier::Topic(&topic.name);
        let mut config = BTreeMap::new();
        for described in self.admin.describe_configs([&resource], &options).await? {
            let refused = |code| Error::TopicRefused { topic: topic.name.clone(), code };
            let entries = described.map_err(refused)?.entries;
            let values = entries.into_iter().filter_map(|entry| Some((entry.name, entry.value?)));
            config.extend(values);
        }
        Ok(Seen { name: topic.name.clone(), partitions, replicas, config })
    }
}
