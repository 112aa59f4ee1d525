//! Topics, broken for a moment. Nothing is compacted or deleted that fast: the broker looks every some
//! seconds, and never at the part of a log that is being written.

use std::collections::BTreeMap;
use std::future::Future;

use likewise_tests::setting;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::mocking::MockCluster;
use serde_json::Value;

use crate::diagnosis::{diagnose, role_is_refused};
use crate::{alone, then_put_right};

const CHANGES: &str = "likewise.changes";
const HISTORY: &str = "likewise.schema-history";

/// The settings of `kafka/topics.json`.
fn defined(topic: &str) -> BTreeMap<String, String> {
    let topics: Vec<Value> =
        serde_json::from_str(include_str!("../../kafka/topics.json")).expect("it is valid");
    let topic = topics.into_iter().find(|known| known["name"] == topic).expect("it is defined");
    serde_json::from_value(topic["config"].clone()).expect("texts")
}

/// Gives a topic exactly these settings.
async fn set(topic: &str, config: &BTreeMap<String, String>) {
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new()
        .set("bootstrap.servers", setting("KAFKA_BROKERS"))
        .create()
        .expect("an admin client");
    let mut altered = AlterConfig::new(ResourceSpecifier::Topic(topic));
    for (key, value) in config {
        altered = altered.set(key, value);
    }
    let altered = admin.alter_configs([&altered], &AdminOptions::new()).await;
    assert!(altered.expect("Kafka answers")[0].is_ok());
}

/// Runs a test with one setting of a topic broken, and puts it right whatever comes of it.
async fn broken(topic: &str, key: &str, value: &str, test: impl Future<Output = ()>) {
    let mut config = defined(topic);
    config.insert(key.to_owned(), value.to_owned());
    set(topic, &config).await;
    then_put_right(test, async { set(topic, &defined(topic)).await }).await;
}

/// The command that puts a setting right.
fn fix(topic: &str, key: &str, value: &str) -> String {
    format!(
        "kafka-configs.sh --bootstrap-server {} --alter --entity-type topics --entity-name {topic} \
         --add-config {key}={value}",
        setting("KAFKA_BROKERS")
    )
}

/// L8
#[tokio::test]
async fn a_compacted_change_log_is_refused_by_doctor_and_aggregator() {
    let _alone = alone().await;
    let fix = fix(CHANGES, "cleanup.policy", "delete");
    broken(CHANGES, "cleanup.policy", "compact", async {
        let found = "cleanup.policy is compact";
        diagnose(&[]).await.refuses(found, &fix);
        role_is_refused("aggregator", &[], found, &fix).await;
    })
    .await;
    diagnose(&[]).await.is_fit();
}

#[tokio::test]
async fn each_other_setting_of_a_topic_is_refused_or_told_with_its_fix() {
    let _alone = alone().await;
    for (topic, key, value, needed, refused) in [
        (CHANGES, "cleanup.policy", "compact,delete", "delete", true),
        (CHANGES, "unclean.leader.election.enable", "true", "false", true),
        (CHANGES, "retention.ms", "604800000", "-1", false),
        (CHANGES, "retention.bytes", "1073741824", "-1", false),
        (CHANGES, "max.message.bytes", "2097152", "1048588", false),
        (HISTORY, "cleanup.policy", "compact", "delete", true),
        (HISTORY, "retention.ms", "604800000", "-1", true),
        (HISTORY, "retention.bytes", "1073741824", "-1", true),
    ] {
        let (found, fix) = (format!("{key} is {value}"), fix(topic, key, needed));
        broken(topic, key, value, async {
            let diagnosis = diagnose(&[]).await;
            if refused {
                diagnosis.refuses(&found, &fix);
            } else {
                diagnosis.warns(&found, &fix);
            }
        })
        .await;
    }
    diagnose(&[]).await.is_fit();
}

/// L11
#[tokio::test]
async fn settings_that_give_the_log_another_number_of_partitions_are_refused() {
    let _alone = alone().await;
    let partitions: u32 = setting("PARTITIONS").parse().expect("a number");
    let other = (partitions * 2).to_string();
    let diagnosis = diagnose(&[("LIKEWISE_PARTITIONS", &other)]).await;
    let fix = format!("set LIKEWISE_PARTITIONS={partitions}");
    diagnosis.refuses(&format!("partitions is {partitions}"), &fix);
}

/// A broker that has no topic at all.
#[tokio::test]
async fn topics_that_are_missing_are_refused() {
    let _alone = alone().await;
    let kafka = MockCluster::new(1).expect("a broker");
    let diagnosis = diagnose(&[("LIKEWISE_KAFKA_BROKERS", &kafka.bootstrap_servers())]).await;
    diagnosis.refuses("topic is missing", "likewise topics");
    let missing = diagnosis.text.lines().filter(|line| line.contains("topic is missing"));
    assert_eq!(missing.count(), 4, "{}", diagnosis.text);
}
