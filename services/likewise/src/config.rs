//! Settings: defaults, over them a file, over it the environment.

mod problems;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use likewise_serving::{HttpSettings, LogFormat};
use serde::{Deserialize, Serialize};

use crate::connections::{KafkaSecurity, Mechanism};

pub(crate) const PREFIX: &str = "LIKEWISE_";
/// Names that belong to the scripts and to the command line, which share the prefix.
const NOT_SETTINGS: [&str; 5] = ["config", "home", "port_offset", "stack", "profile"];
/// How the secrets of the development stack begin.
const DEVELOPMENT: &str = "dev-only-";

/// A setting that is never printed.
#[derive(Clone, Deserialize)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("***")
    }
}

/// Every setting of every role and command; each checks what it uses.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// The application's account.
    pub(crate) mysql_url: Option<Secret>,
    /// An account that may change the schema.
    pub(crate) mysql_admin_url: Option<Secret>,
    pub(crate) mysql_max_connections: usize,
    /// A PEM file: who may vouch for MySQL. TLS is asked for by `require_ssl=true` in the URL, whose host
    /// must then be a name of the server's certificate.
    pub(crate) mysql_tls_ca: Option<PathBuf>,
    pub(crate) kafka_brokers: Option<String>,
    pub(crate) kafka_security: KafkaSecurity,
    /// A PEM file: who may vouch for a broker; otherwise the system's.
    pub(crate) kafka_tls_ca: Option<PathBuf>,
    pub(crate) kafka_sasl_mechanism: Mechanism,
    pub(crate) kafka_user: Option<String>,
    pub(crate) kafka_password: Option<Secret>,
    pub(crate) mongodb_uri: Option<Secret>,
    pub(crate) mongodb_max_connections: u32,
    pub(crate) connect_url: Option<String>,
    /// Whether servers may be talked to in clear text over a network.
    pub(crate) allow_cleartext: bool,

    pub(crate) write_api_url: Option<String>,
    pub(crate) read_api_url: Option<String>,
    pub(crate) aggregator_url: Option<String>,
    pub(crate) reconciler_url: Option<String>,
    pub(crate) write_api_listen: SocketAddr,
    pub(crate) read_api_listen: SocketAddr,
    pub(crate) aggregator_listen: SocketAddr,
    pub(crate) reconciler_listen: SocketAddr,

    /// The MySQL account of the connector.
    pub(crate) connector_mysql_user: String,
    /// Whether the connector needs Kafka Connect's exactly-once support. Counts are exact without it
    /// too, and so it can be switched off to test them alone.
    pub(crate) connector_exactly_once: bool,

    pub(crate) service_token: Option<Secret>,
    pub(crate) operator_token: Option<Secret>,
    pub(crate) jwt_secret: Option<Secret>,
    /// Public keys of users' tokens: an address or a file.
    pub(crate) jwks: Option<String>,
    pub(crate) jwt_issuer: String,
    pub(crate) jwt_audience: String,
    pub(crate) cursor_key: Option<Secret>,
    /// Likes and unlikes of one user a minute, for each process; 0 is no limit.
    pub(crate) writes_per_minute: u32,
    /// Origins whose pages may call, with commas between; none unless some are named.
    pub(crate) cors_origins: String,
    /// Networks of proxies whose `X-Forwarded-For` is believed, with commas between.
    pub(crate) trusted_proxies: String,

    /// Partitions of the change log. Fixed for its life.
    pub(crate) partitions: u32,
    pub(crate) replication_factor: u16,

    /// How long a call may take.
    pub(crate) request_deadline_ms: u64,
    /// How long the headers of a request may take to arrive, and its content as long again.
    pub(crate) header_deadline_ms: u64,
    /// How long a connection may stay without a request.
    pub(crate) idle_deadline_ms: u64,
    /// How long a client may take nothing of an answer that waits for it.
    pub(crate) send_deadline_ms: u64,
    pub(crate) max_connections: usize,
    pub(crate) max_concurrent_requests: usize,
    /// How long requests in flight may take to end once a role was asked to stop.
    pub(crate) shutdown_grace_ms: u64,
    /// How long MySQL or MongoDB may take for one call.
    pub(crate) store_deadline_ms: u64,
    /// How long after a write its mark may be set.
    pub(crate) mark_interval_ms: u64,
    /// How often marks are set while nobody writes.
    pub(crate) idle_mark_interval_ms: u64,
    /// How long a row that is not liked remembers its `seq`: no request arrives later than that.
    pub(crate) seq_retention_s: u64,
    /// A count whose `as_of` is older is stale.
    pub(crate) stale_after_ms: u64,
    /// For how long a count that was read serves others who ask; 0 reads for each.
    pub(crate) count_cache_ms: u64,
    /// How many counts a process keeps at most.
    pub(crate) count_cache_entries: u64,
    /// How long a count waits for the `min_as_of` that its caller asks for.
    pub(crate) min_as_of_wait_ms: u64,
    /// How long the answer to a write waits for the post's count.
    pub(crate) own_count_wait_ms: u64,
    /// How many callers a process keeps told of counts at most.
    pub(crate) stream_listeners: usize,

    /// When a batch is full: records, bytes, and how long it may gather.
    pub(crate) batch_records: u64,
    pub(crate) batch_bytes: usize,
    pub(crate) batch_age_ms: u64,
    /// How long an unfilled batch waits for a next record.
    pub(crate) batch_linger_ms: u64,
    /// How many KiB of each partition are fetched ahead.
    pub(crate) prefetch_kib: u32,

    /// A filter as `tracing_subscriber::EnvFilter` reads it.
    pub(crate) log: String,
    pub(crate) log_format: LogFormat,
}

impl Default for Config {
    fn default() -> Self {
        // The reasons for its limits stand there.
        let http = HttpSettings::default();
        let millis = |limit: Duration| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Self {
            mysql_url: None,
            mysql_admin_url: None,
            // Group commit needs company: as many writers as one server turns into few fsyncs.
            mysql_max_connections: 64,
            mysql_tls_ca: None,
            kafka_brokers: None,
            kafka_security: KafkaSecurity::Plaintext,
            kafka_tls_ca: None,
            // The strongest that brokers offer without more servers.
            kafka_sasl_mechanism: Mechanism::ScramSha512,
            kafka_user: None,
            kafka_password: None,
            mongodb_uri: None,
            // One for each partition that commits, and as many for readers.
            mongodb_max_connections: 128,
            connect_url: None,
            // Passwords and users' ids pass by.
            allow_cleartext: false,
            write_api_url: None,
            read_api_url: None,
            aggregator_url: None,
            reconciler_url: None,
            write_api_listen: loopback(8080),
            read_api_listen: loopback(8081),
            aggregator_listen: loopback(8082),
            reconciler_listen: loopback(8084),
            connector_mysql_user: "debezium".to_owned(),
            // The first line: without it every restart of a worker makes the log repeat itself.
            connector_exactly_once: true,
            service_token: None,
            operator_token: None,
            jwt_secret: None,
            jwks: None,
            jwt_issuer: "likewise".to_owned(),
            jwt_audience: "likewise".to_owned(),
            cursor_key: None,
            // Five a second: nobody taps faster, and a script that does is none of ours.
            writes_per_minute: 300,
            cors_origins: String::new(),
            trusted_proxies: String::new(),
            // It can never be raised without a rebuild, and a partition costs little.
            partitions: 64,
            // With two in sync, an acknowledged change outlives a broker.
            replication_factor: 3,
            request_deadline_ms: millis(http.request_deadline),
            header_deadline_ms: millis(http.header_deadline),
            idle_deadline_ms: millis(http.idle_deadline),
            send_deadline_ms: millis(http.send_deadline),
            max_connections: http.max_connections,
            max_concurrent_requests: http.max_concurrent_requests,
            shutdown_grace_ms: millis(http.shutdown_grace),
            // Below the request's deadline, so that the caller hears which part was away.
            store_deadline_ms: 3_000,
            // Half of the 200 ms within which a write is promised its mark.
            mark_interval_ms: 100,
            idle_mark_interval_ms: 5_000,
            // Longer than any queue of a client that was offline should hold a request.
            seq_retention_s: 7 * 24 * 3600,
            // Six idle marks missed: something stands still.
            stale_after_ms: 30_000,
            // A viral post costs one read a second and process, and nobody sees the second.
            count_cache_ms: 1_000,
            // About 100 bytes each: what is read now and then is read again.
            count_cache_entries: 200_000,
            // A like is counted within a fraction of it, unless something stands still.
            min_as_of_wait_ms: 1_000,
            // The heart must not wait for the number beside it.
            own_count_wait_ms: 200,
            // Half of the connections: calls must find some too.
            stream_listeners: 4_096,
            // One transaction: far below MongoDB's 16 MiB and 60 s.
            batch_records: 10_000,
            batch_bytes: 8 << 20,
            // A reader of a partition that is behind sees progress five times a second.
            batch_age_ms: 200,
            // Whatever arrives while a batch is committed is the next batch: waiting longer gains nothing.
            batch_linger_ms: 0,
            // Two batches ahead; 64 partitions in one process take 256 MiB at most.
            prefetch_kib: 4 << 10,
            // What librdkafka logs comes as events too, which are logged where they are handled.
            log: "info,rdkafka=off,librdkafka=off".to_owned(),
            log_format: LogFormat::Text,
        }
    }
}

impl Config {
    /// Reads the settings and checks everything that can be checked without a server. All problems
    /// are reported in one go.
    pub(crate) fn load(file: Option<&Path>) -> anyhow::Result<Self> {
        let known = known_names()?;
        let mut problems: Vec<String> = std::env::vars_os()
            .filter_map(|(name, _)| name.into_string().ok())
            .filter_map(|name| name.strip_prefix(PREFIX).map(str::to_lowercase))
            .filter(|name| !known.contains(name) && !NOT_SETTINGS.contains(&name.as_str()))
            .map(|name| format!("{PREFIX}{} is not a setting", name.to_uppercase()))
            .collect();
        let mut given: BTreeMap<String, Given> = BTreeMap::new();
        for (name, value) in file.map(read).transpose()?.unwrap_or_default() {
            if known.contains(&name) {
                given.insert(name.clone(), Given { called: name, value });
            } else {
                problems.push(format!("{name} is not a setting"));
            }
        }
        for name in &known {
            let called = format!("{PREFIX}{}", name.to_uppercase());
            match std::env::var_os(&called).map(OsString::into_string) {
                Some(Ok(text)) => {
                    let value = config::Value::from(text);
                    given.insert(name.clone(), Given { called, value });
                }
                Some(Err(_)) => problems.push(format!("{called} is not text")),
                None => {}
            }
        }
        let mut builder = config::Config::builder();
        for (name, Given { called, value }) in given {
            match unreadable(&name, value.clone()) {
                None => {
                    builder =
                        builder.set_override(&name, value).context("a setting's name is valid")?;
                }
                Some(error) => problems.push(format!("{called} cannot be read: {error}")),
            }
        }
        let built = builder.build().context("failed to read the settings")?;
        match built.try_deserialize::<Self>() {
            Ok(config) => {
                problems.extend(config.problems());
                if problems.is_empty() {
                    return Ok(config);
                }
            }
            Err(error) => problems.push(error.to_string()),
        }
        bail!("the settings are not valid:\n  {}", problems.join("\n  "))
    }

    /// Refuses the development stack's secrets on an address that others can reach.
    pub(crate) fn check_listener(&self, listen: SocketAddr) -> anyhow::Result<()> {
        if listen.ip().is_loopback() {
            return Ok(());
        }
        for (name, secret) in [
            ("MYSQL_URL", &self.mysql_url),
            ("SERVICE_TOKEN", &self.service_token),
            ("OPERATOR_TOKEN", &self.operator_token),
            ("JWT_SECRET", &self.jwt_secret),
            ("CURSOR_KEY", &self.cursor_key),
        ] {
            if secret.as_ref().is_some_and(|secret| secret.expose().contains(DEVELOPMENT)) {
                bail!(
                    "{PREFIX}{name} is the development stack's, and {listen} is not a loopback address: set a secret of your own"
                );
            }
        }
        Ok(())
    }

    pub(crate) fn store_deadline(&self) -> Duration {
        Duration::from_millis(self.store_deadline_ms)
    }
}

/// A setting that a role or command cannot do without.
pub(crate) fn need<'a, T>(name: &str, value: Option<&'a T>) -> anyhow::Result<&'a T> {
    value.with_context(|| format!("{PREFIX}{name} is not set"))
}

/// A setting as it was given, and by which name.
struct Given {
    called: String,
    value: config::Value,
}

/// The settings of a file.
fn read(file: &Path) -> anyhow::Result<BTreeMap<String, config::Value>> {
    let file = config::File::from(file).format(config::FileFormat::Toml);
    let built = config::Config::builder().add_source(file).build();
    let read = built.and_then(config::Config::try_deserialize);
    read.context("failed to read the file with the settings")
}

/// Why a setting cannot have this value: tried alone, so that every one that cannot is named.
fn unreadable(name: &str, value: config::Value) -> Option<String> {
    let alone = config::Config::builder().set_override(name, value.clone());
    let tried = alone.and_then(|one| one.build()?.try_deserialize::<Config>());
    // This one names what there is to choose from.
    let told = |text: String| {
        let alone = serde_json::Map::from_iter([(name.to_owned(), text.into())]);
        serde_json::from_value::<Config>(alone.into()).err().map(|error| error.to_string())
    };
    tried.err().map(|error| match value.into_string().ok().and_then(told) {
        Some(told) if name.ends_with("_listen") => format!("{told}, such as 127.0.0.1:8080"),
        Some(told) => told,
        None => error.to_string(),
    })
}

/// The names of all settings, from the structure itself.
fn known_names() -> anyhow::Result<BTreeSet<String>> {
    let defaults =
        serde_json::to_value(Config::default()).context("failed to list the settings")?;
    let names = defaults.as_object().context("settings are a map")?.keys();
    Ok(names.cloned().collect())
}

#[cfg(test)]
#[path = "config/tests.rs"]
mod tests;
