//! Starting a role: settings, then logs and metrics, then the listener, then the role itself.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use likewise_aggregator::BatchLimits;
use likewise_connect::Connect;
use likewise_kafka::{Bounds, CHANGES, ChangeLogSettings};
use likewise_mongodb::{CountReader, ReaderSettings, Store, StoreSettings};
use likewise_mysql::{Mysql, PoolSettings};
use likewise_serving::{Telemetry, shutdown_on_signal};
use tokio::net::TcpListener;

use crate::config::{Config, need};

/// The generation that the aggregator counts.
const FIRST_GENERATION: i64 = 1;
/// The consumer group of the first generation.
const GROUP: &str = "likewise-aggregator";
/// Files that are open beside connections: logs, libraries, Kafka.
const OTHER_FILES: u64 = 256;
const MONGODB_DATABASE: &str = "likewise";
/// How long a reader of counts waits for MongoDB: it answers in a few milliseconds, or is away.
const COUNT_PATIENCE: Duration = Duration::from_secs(1);

pub(crate) async fn write_api(config: &Config) -> anyhow::Result<ExitCode> {
    let settings = likewise_write_api::Settings {
        callers: config.callers()?,
        write_limit: config.write_limit(),
        http: config.http()?,
        cursor_key: need("CURSOR_KEY", config.cursor_key.as_ref())?.expose().to_owned(),
        seq_retention: Duration::from_secs(config.seq_retention_s),
        mark_interval: Duration::from_millis(config.mark_interval_ms),
        idle_mark_interval: Duration::from_millis(config.idle_mark_interval_ms),
        own_count_wait: Duration::from_millis(config.own_count_wait_ms),
    };
    let mysql = mysql(config)?;
    let store = store(config).await?;
    let reader = reader(config, &store);
    let (telemetry, listener) = start(config, config.write_api_listen).await?;
    let shutdown = shutdown_on_signal()?;
    likewise_write_api::run(settings, mysql, store, reader, listener, &telemetry, shutdown).await?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn read_api(config: &Config) -> anyhow::Result<ExitCode> {
    let settings = likewise_read_api::Settings {
        callers: config.callers()?,
        http: config.http()?,
        cursor_key: need("CURSOR_KEY", config.cursor_key.as_ref())?.expose().to_owned(),
        min_as_of_wait: Duration::from_millis(config.min_as_of_wait_ms),
        stream_listeners: config.stream_listeners,
    };
    let store = store(config).await?;
    let reader = reader(config, &store);
    let mysql = mysql(config)?;
    let (telemetry, listener) = start(config, config.read_api_listen).await?;
    let shutdown = shutdown_on_signal()?;
    likewise_read_api::run(settings, store, reader, mysql, listener, &telemetry, shutdown).await?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn aggregator(config: &Config) -> anyhow::Result<ExitCode> {
    let settings = likewise_aggregator::Settings {
        log: ChangeLogSettings {
            brokers: config.brokers()?,
            topic: CHANGES.to_owned(),
            group: GROUP.to_owned(),
            prefetch_kib: config.prefetch_kib,
        },
        generation: FIRST_GENERATION,
        limits: BatchLimits {
            records: config.batch_records,
            bytes: config.batch_bytes,
            age: Duration::from_millis(config.batch_age_ms),
            linger: Duration::from_millis(config.batch_linger_ms),
        },
        owner: format!("{}/{}", config.aggregator_listen, std::process::id()),
        http: config.http()?,
    };
    let store = store(config).await?;
    let (telemetry, listener) = start(config, config.aggregator_listen).await?;
    let shutdown = shutdown_on_signal()?;
    likewise_aggregator::run(settings, store, listener, &telemetry, shutdown).await?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn reconciler(config: &Config) -> anyhow::Result<ExitCode> {
    let settings = likewise_reconciler::Settings {
        http: config.http()?,
        connector_user: config.connector_mysql_user.clone(),
    };
    let brokers = config.brokers()?;
    let servers = likewise_reconciler::Servers {
        mysql: mysql(config)?,
        mysql_admin: mysql_admin(config)?,
        store: store(config).await?,
        log: Bounds::new(brokers, CHANGES)?,
        connect: Connect::new(need("CONNECT_URL", config.connect_url.as_ref())?)?,
    };
    let (telemetry, listener) = start(config, config.reconciler_listen).await?;
    let shutdown = shutdown_on_signal()?;
    likewise_reconciler::run(settings, servers, listener, &telemetry, shutdown).await?;
    Ok(ExitCode::SUCCESS)
}

/// MySQL, through the application's account.
pub(crate) fn mysql(config: &Config) -> anyhow::Result<Mysql> {
    let url = need("MYSQL_URL", config.mysql_url.as_ref())?.expose().to_owned();
    pool(config, url)
}

/// MySQL, through the account that may change the schema.
pub(crate) fn mysql_admin(config: &Config) -> anyhow::Result<Mysql> {
    let url = need("MYSQL_ADMIN_URL", config.mysql_admin_url.as_ref())?.expose().to_owned();
    pool(config, url)
}

fn pool(config: &Config, url: String) -> anyhow::Result<Mysql> {
    let settings = PoolSettings {
        url,
        max_connections: config.mysql_max_connections,
        tls_ca: config.mysql_tls_ca.clone(),
        deadline: config.store_deadline(),
    };
    Mysql::new(&settings).context("LIKEWISE_MYSQL_URL or LIKEWISE_MYSQL_ADMIN_URL cannot be used")
}

pub(crate) async fn store(config: &Config) -> anyhow::Result<Store> {
    let settings = StoreSettings {
        uri: need("MONGODB_URI", config.mongodb_uri.as_ref())?.expose().to_owned(),
        database: MONGODB_DATABASE.to_owned(),
        max_connections: config.mongodb_max_connections,
        deadline: config.store_deadline(),
    };
    Store::new(&settings).await.context("LIKEWISE_MONGODB_URI cannot be used")
}

/// Counts, for APIs.
fn reader(config: &Config, store: &Store) -> CountReader {
    let settings = ReaderSettings {
        topic: CHANGES.to_owned(),
        fresh_for: Duration::from_millis(config.count_cache_ms),
        entries: config.count_cache_entries,
        patience: COUNT_PATIENCE,
        stale_after: Duration::from_millis(config.stale_after_ms),
    };
    CountReader::new(store.clone(), settings)
}

async fn start(config: &Config, listen: SocketAddr) -> anyhow::Result<(Telemetry, TcpListener)> {
    config.check_listener(listen)?;
    let telemetry = Telemetry::start(&config.log, config.log_format)?;
    let listener =
        TcpListener::bind(listen).await.with_context(|| format!("failed to listen on {listen}"))?;
    allow_files(config);
    tracing::info!("listening on {listen}");
    Ok((telemetry, listener))
}

/// Each connection is an open file, and many systems allow a process 1,024 unless it asks for more.
fn allow_files(config: &Config) {
    let wanted = (config.max_connections + config.mysql_max_connections) as u64
        + u64::from(config.mongodb_max_connections)
        + OTHER_FILES;
    match rlimit::increase_nofile_limit(wanted) {
        Ok(allowed) if allowed < wanted => tracing::warn!(
            "this process may open {allowed} files, and LIKEWISE_MAX_CONNECTIONS asks for {wanted}: raise the limit (ulimit -Hn)"
        ),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "the limit of open files is not known"),
    }
}
