//! `likewise topics`

use std::process::ExitCode;

use anyhow::Context as _;
use likewise_kafka::{TopicSettings, Topics};

use crate::config::Config;

pub(crate) async fn run(config: &Config) -> anyhow::Result<ExitCode> {
    let brokers = config.brokers()?;
    let topics = Topics::new(brokers)?;
    let settings = TopicSettings {
        partitions: config.partitions,
        replication_factor: config.replication_factor,
    };
    let created = topics.create(settings).await.context("failed to make the topics")?;
    if created.is_empty() {
        println!("every topic is there");
    } else {
        println!("created {}", created.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}
