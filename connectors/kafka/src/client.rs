//! What every client of Kafka is configured with.

use std::fmt;

use rdkafka::ClientConfig;

/// A broker that wakes from a freeze is unknown to its cluster for a moment and lists no broker, itself
/// included: a client that asks it then has none left, and would ask the bootstrap servers again only after
/// the default of five minutes.
const REBOOTSTRAP_AFTER_MS: &str = "5000";

/// Where the brokers are, and how they are talked to.
#[derive(Clone)]
pub struct Brokers {
    addresses: String,
    security: Option<Security>,
}

/// TLS, and who the client is.
#[derive(Clone, Default)]
pub struct Security {
    /// The certificates of whoever may vouch for a broker, as a PEM file; otherwise the system's.
    pub ca: Option<String>,
    /// Who the client is; otherwise nobody is asked.
    pub account: Option<Account>,
}

/// A user of SASL.
#[derive(Clone)]
pub struct Account {
    /// `PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`.
    pub mechanism: String,
    /// Its name.
    pub user: String,
    /// Its password.
    pub password: String,
}

impl Brokers {
    pub(crate) fn addresses(&self) -> &str {
        &self.addresses
    }

    /// Brokers that are talked to by TLS.
    #[must_use]
    pub fn secured(self, security: Security) -> Self {
        Self { security: Some(security), ..self }
    }
}

impl From<String> for Brokers {
    /// Brokers by their addresses, in clear text.
    fn from(addresses: String) -> Self {
        Self { addresses, security: None }
    }
}

impl From<&str> for Brokers {
    fn from(addresses: &str) -> Self {
        addresses.to_owned().into()
    }
}

impl fmt::Debug for Brokers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.addresses)
    }
}

/// The configuration to begin with.
pub(crate) fn config(brokers: &Brokers, client_id: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &brokers.addresses)
        .set("client.id", client_id)
        .set("allow.auto.create.topics", "false")
        .set("metadata.recovery.rebootstrap.trigger.ms", REBOOTSTRAP_AFTER_MS);
    if let Some(security) = &brokers.security {
        secure(&mut config, security);
    }
    config
}

fn secure(config: &mut ClientConfig, security: &Security) {
    config.set("security.protocol", "ssl").set("ssl.endpoint.identification.algorithm", "https");
    if let Some(ca) = &security.ca {
        config.set("ssl.ca.location", ca);
    }
    if let Some(account) = &security.account {
        config
            .set("security.protocol", "sasl_ssl")
            .set("sasl.mechanism", &account.mechanism)
            .set("sasl.username", &account.user)
            .set("sasl.password", &account.password);
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::consumer::BaseConsumer;

    use super::*;

    /// The password is no part of what is printed.
    #[test]
    fn the_library_takes_every_way_to_be_secure() {
        let account = |mechanism: &str| Account {
            mechanism: mechanism.to_owned(),
            user: "likewise".to_owned(),
            password: "hush".to_owned(),
        };
        let ways = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"].map(account).map(Some);
        for account in ways.into_iter().chain([None]) {
            let protocol = if account.is_some() { "sasl_ssl" } else { "ssl" };
            let brokers = Brokers::from("127.0.0.1:1").secured(Security { ca: None, account });
            assert!(!format!("{brokers:?}").contains("hush"));
            let config = config(&brokers, "test");
            assert_eq!(config.get("security.protocol"), Some(protocol));
            config.create::<BaseConsumer>().expect("the library takes it");
        }
    }
}
