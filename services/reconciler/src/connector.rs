//! Watching the connector: looking, and starting it again where it is silent.

use std::time::{Duration, Instant};

use likewise_connect::{Connect, ConnectorStatus, Error};
use likewise_kafka::Bounds;
use likewise_mysql::Mysql;
use metrics::{counter, describe_counter, describe_gauge, gauge};
use tokio_util::sync::CancellationToken;

use crate::silence::{Action, Says, Seen, Silence};

const RESTARTS: &str = "likewise_connector_restarts_total";
const RUNNING: &str = "likewise_connector_running";
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Who is watched, and who is asked about it.
pub(crate) struct Watched {
    pub(crate) connect: Connect,
    pub(crate) name: String,
    pub(crate) mysql: Mysql,
    pub(crate) user: String,
    pub(crate) log: Bounds,
}

/// Watches until `shutdown`.
pub(crate) async fn watch(watched: Watched, shutdown: CancellationToken) -> anyhow::Result<()> {
    describe_counter!(RESTARTS, "Starts of a connector that had failed or was silent");
    describe_gauge!(RUNNING, "1 while the connector and its task say RUNNING");
    counter!(RESTARTS).absolute(0);
    let mut silence = Silence::new(Instant::now());
    while !shutdown.is_cancelled() {
        let status = watched.connect.status(&watched.name).await;
        let says = says(&status);
        gauge!(RUNNING).set(if says == Says::Running { 1.0 } else { 0.0 });
        if says != Says::Running {
            watched.mark().await;
        }
        let seen = watched.look().await;
        if let Some(action) = silence.look(Instant::now(), says, seen) {
            let failure =
                status.ok().flatten().and_then(|status| status.failure().map(str::to_owned));
            watched.act(action, failure).await;
        }
        shutdown.run_until_cancelled(tokio::time::sleep(LOOK_EVERY)).await;
    }
    Ok(())
}

fn says(status: &Result<Option<ConnectorStatus>, Error>) -> Says {
    match status {
        Ok(Some(status)) if status.is_stopped() => Says::Other,
        Ok(Some(status)) if status.failure().is_some() => Says::Failed,
        Ok(Some(status)) if status.is_running() => Says::Running,
        _ => Says::Other,
    }
}

impl Watched {
    /// None when MySQL or Kafka does not answer.
    async fn look(&self) -> Option<Seen> {
        let is_read = self.mysql.sends_binlog_to(&self.user).await.ok()?;
        let mark = self.mysql.newest_mark().await.ok()??;
        let ends = self.log.ends().await.ok()?;
        Some(Seen { is_read, mark, ends })
    }

    /// Sets marks while nothing is read: if the connector loses its place now, they are missing in the log,
    /// and the chain shows the gap however short it is.
    async fn mark(&self) {
        if let Err(error) = self.mysql.set_all_marks().await {
            tracing::debug!("no marks are set while the connector does not run: {error}");
        }
    }

    async fn act(&self, action: Action, failure: Option<String>) {
        counter!(RESTARTS).increment(1);
        let name = &self.name;
        let started = match action {
            Action::StartFailed => {
                let failure = failure.unwrap_or_default();
                tracing::error!(
                    connector = name,
                    failure,
                    "the connector failed and is started again"
                );
                self.connect.restart_failed(name).await
            }
            Action::Start(reason) => {
                tracing::error!(
                    connector = name,
                    reason,
                    "the connector is silent and is started again"
                );
                self.connect.restart_all(name).await
            }
        };
        if let Err(error) = started {
            tracing::error!(connector = name, "the connector could not be started: {error}");
        }
    }
}
