//! How servers are talked to: by TLS, unless they are here or somebody said that the network is safe.

use std::net::IpAddr;

use anyhow::Context as _;
use likewise_kafka::{Account, Brokers, Security};
use serde::{Deserialize, Serialize};

use crate::config::{Config, PREFIX, need};

/// How Kafka's brokers are talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KafkaSecurity {
    /// In clear text, and nobody is asked who they are.
    Plaintext,
    /// By TLS.
    Ssl,
    /// By TLS, with a user and a password.
    SaslSsl,
}

/// How a password is shown to a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum Mechanism {
    #[serde(rename = "PLAIN")]
    Plain,
    #[serde(rename = "SCRAM-SHA-256")]
    ScramSha256,
    #[serde(rename = "SCRAM-SHA-512")]
    ScramSha512,
}

impl Mechanism {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

impl Config {
    /// Kafka's brokers, and how they are talked to.
    pub(crate) fn brokers(&self) -> anyhow::Result<Brokers> {
        let brokers = Brokers::from(need("KAFKA_BROKERS", self.kafka_brokers.as_ref())?.clone());
        let account = match self.kafka_security {
            KafkaSecurity::Plaintext => return Ok(brokers),
            KafkaSecurity::Ssl => None,
            KafkaSecurity::SaslSsl => Some(Account {
                mechanism: self.kafka_sasl_mechanism.name().to_owned(),
                user: need("KAFKA_USER", self.kafka_user.as_ref())?.clone(),
                password: need("KAFKA_PASSWORD", self.kafka_password.as_ref())?.expose().to_owned(),
            }),
        };
        let ca = self.kafka_tls_ca.as_ref().map(|ca| {
            ca.to_str().map(str::to_owned).context("LIKEWISE_KAFKA_TLS_CA must be UTF-8")
        });
        Ok(brokers.secured(Security { ca: ca.transpose()?, account }))
    }
}

/// What would send passwords, tokens or users' ids over a network for everybody to read.
pub(crate) fn problems(config: &Config) -> Vec<String> {
    if config.allow_cleartext {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let mut refuse = |name: &str, fix: &str| {
        problems.push(format!(
            "{PREFIX}{name} leads to another machine in clear text: {fix}, or set {PREFIX}ALLOW_CLEARTEXT=true where the network is safe"
        ));
    };
    for (name, url) in
        [("MYSQL_URL", &config.mysql_url), ("MYSQL_ADMIN_URL", &config.mysql_admin_url)]
    {
        let url = url.as_ref().map(|url| Url::read(url.expose()));
        if url.is_some_and(|url| !url.is_local() && !url.says("require_ssl", "true")) {
            refuse(name, "add require_ssl=true to it");
        }
    }
    let mongodb = config.mongodb_uri.as_ref().map(|uri| Url::read(uri.expose()));
    if mongodb.is_some_and(|uri| !uri.is_local() && !uri.is_secure_mongodb()) {
        refuse("MONGODB_URI", "add tls=true to it");
    }
    let brokers = config.kafka_brokers.as_deref().unwrap_or_default().split(',');
    if config.kafka_security == KafkaSecurity::Plaintext
        && brokers.map(str::trim).any(|broker| !broker.is_empty() && !is_local(broker))
    {
        refuse("KAFKA_BROKERS", &format!("set {PREFIX}KAFKA_SECURITY to ssl or sasl_ssl"));
    }
    let jwks = config.jwks.as_deref().map(Url::read);
    if jwks.is_some_and(|jwks| jwks.scheme == "http" && !jwks.is_local()) {
        refuse("JWKS", "use https: whoever changes the keys on their way can be any user");
    }
    problems
}

/// As much of a connection string as is needed here. Each driver checks its own.
struct Url<'a> {
    scheme: &'a str,
    hosts: &'a str,
    query: &'a str,
}

impl<'a> Url<'a> {
    fn read(text: &'a str) -> Self {
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let authority = rest.split('/').next().unwrap_or_default();
        let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
        Self { scheme, hosts, query }
    }

    fn is_local(&self) -> bool {
        self.scheme != "mongodb+srv" && self.hosts.split(',').all(is_local)
    }

    /// Whether a parameter has this value, and no other beside it.
    fn says(&self, name: &str, value: &str) -> bool {
        let mut values = self.query.split('&').filter_map(|parameter| {
            let (key, value) = parameter.split_once('=')?;
            key.eq_ignore_ascii_case(name).then_some(value)
        });
        values.next() == Some(value) && values.next().is_none()
    }

    /// An address that is looked up in DNS is one of TLS unless it says otherwise.
    fn is_secure_mongodb(&self) -> bool {
        let by_lookup = self.scheme == "mongodb+srv";
        let is_off = self.says("tls", "false") || self.says("ssl", "false");
        self.says("tls", "true") || self.says("ssl", "true") || by_lookup && !is_off
    }
}

/// Whether `host:port` is this machine.
fn is_local(address: &str) -> bool {
    let host = match address.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => host,
        _ => address,
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
#[path = "connections/tests.rs"]
mod tests;
