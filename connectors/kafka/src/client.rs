//! What every client of Kafka is configured with.

use rdkafka::ClientConfig;

/// A broker that wakes from a freeze is unknown to its cluster for a moment and lists no broker, itself
/// included: a client that asks it then has none left, and would ask the bootstrap servers again only after
/// the default of five minutes.
const REBOOTSTRAP_AFTER_MS: &str = "5000";

/// The configuration to begin with.
pub(crate) fn config(brokers: &str, client_id: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", brokers)
        .set("client.id", client_id)
        .set("allow.auto.create.topics", "false")
        .set("metadata.recovery.rebootstrap.trigger.ms", REBOOTSTRAP_AFTER_MS);
    config
}
