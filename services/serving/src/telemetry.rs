//! Logs and metrics.

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::Context as _;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

/// Bucket borders of every histogram, in seconds or in events.
const BUCKETS: [f64; 17] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0, 1_000.0,
    10_000.0, 100_000.0,
];

/// Bucket borders of how long a call takes, in seconds: finer, since most take a few milliseconds.
const CALL_BUCKETS: [f64; 14] =
    [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
pub(crate) const CALL_SECONDS: &str = "likewise_http_request_seconds";

const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The process's metrics; clones render the same.
#[derive(Clone)]
pub struct Telemetry {
    handle: PrometheusHandle,
}

impl Telemetry {
    /// Starts logging to stderr and collecting metrics. Once per process, within its runtime.
    pub fn start(filter: &str, format: LogFormat) -> anyhow::Result<Self> {
        let filter = EnvFilter::try_new(filter).context("the log filter is not valid")?;
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr);
        let started = match format {
            LogFormat::Text => subscriber.try_init(),
            LogFormat::Json => subscriber.json().try_init(),
        };
        started.map_err(|error| anyhow::anyhow!(error)).context("failed to start logging")?;
        let handle = PrometheusBuilder::new()
            .set_buckets(&BUCKETS)
            .context("the histogram's buckets are not valid")?
            .set_buckets_for_metric(Matcher::Full(CALL_SECONDS.to_owned()), &CALL_BUCKETS)
            .context("the buckets of calls are not valid")?
            .install_recorder()
            .context("failed to start metrics")?;
        // Histograms keep every sample until they are drained, whether anybody scrapes or not.
        let upkeep = handle.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(UPKEEP_EVERY).await;
                upkeep.run_upkeep();
            }
        });
        Ok(Self { handle })
    }

    /// The metrics in Prometheus' text format.
    pub(crate) fn render(&self) -> String {
        self.handle.render()
    }
}
