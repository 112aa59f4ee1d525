//! `likewise connector apply`

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use likewise_core::Offset;
use likewise_kafka::{Bounds, CHANGES};
use likewise_mysql::Mysql;

use crate::cli::ConnectorCommand;
use crate::config::{Config, need};
use crate::roles;
use likewise_connect::{Connect, Definition};

/// How often Kafka Connect and the log are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(crate) async fn run(config: &Config, command: ConnectorCommand) -> anyhow::Result<ExitCode> {
    let ConnectorCommand::Apply { timeout_s } = command;
    let connect = Connect::new(need("CONNECT_URL", config.connect_url.as_ref())?)?;
    let brokers = config.brokers()?;
    let mysql = roles::mysql(config)?;
    let mut definition = Definition::of_project();
    if !config.connector_exactly_once {
        eprintln!(
            "the connector is to do without exactly-once support, as LIKEWISE_CONNECTOR_EXACTLY_ONCE says"
        );
        definition = definition.without_exactly_once();
    }
    let log = Bounds::new(brokers, CHANGES)?;
    let until = Instant::now() + Duration::from_secs(timeout_s);

    register(&connect, &mysql, &definition, until).await?;
    wait_running(&connect, &definition.name, until).await?;
    wait_flowing(&mysql, &log, until).await?;
    mysql.close().await;
    println!("connector {} is running, and changes flow", definition.name);
    Ok(ExitCode::SUCCESS)
}

/// A connector that has these settings already is left alone: new ones would restart it. While the
/// workers agree on who runs what, they refuse; so it is tried again.
///
/// One that is new here may have lost its place, and then begins at the binlog's end. Marks that are set
/// before it begins show the gap that this leaves: the next ones do not follow the last ones that were read.
async fn register(
    connect: &Connect,
    mysql: &Mysql,
    definition: &Definition,
    until: Instant,
) -> anyhow::Result<()> {
    loop {
        let registered = async {
            match connect.config(&definition.name).await? {
                Some(config) if definition.equals(&config) => return anyhow::Ok(()),
                Some(_) => {}
                None => drop(mysql.set_all_marks().await.context("failed to set the marks")?),
            }
            Ok(connect.put(definition).await?)
        };
        match registered.await {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() >= until => {
                bail!("failed to register the connector: {error:#}");
            }
            Err(error) => {
                eprintln!("connector {} is not registered yet: {error:#}", definition.name);
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    }
}

async fn wait_running(connect: &Connect, name: &str, until: Instant) -> anyhow::Result<()> {
    let mut restarted = false;
    loop {
        let status = connect.status(name).await;
        match &status {
            Ok(Some(status)) if status.is_running() => return Ok(()),
            Ok(Some(status)) if status.is_stopped() => {
                bail!(
                    "connector {name} is {}: somebody has stopped it, and no like is counted; \
                     `curl -X PUT {}/connectors/{name}/resume` starts it again",
                    status.connector.state,
                    connect.url()
                );
            }
            Ok(Some(status)) => {
                if let Some(failure) = status.failure() {
                    if restarted {
                        bail!("connector {name} failed: {failure}");
                    }
                    connect
                        .restart_failed(name)
                        .await
                        .context("failed to restart the connector")?;
                    restarted = true;
                }
            }
            Ok(None) | Err(_) => {}
        }
        if Instant::now() >= until {
            let state = match status {
                Ok(Some(status)) => status.connector.state,
                Ok(None) => "not registered".to_owned(),
                Err(error) => error.to_string(),
            };
            bail!("connector {name} is not running in time: {state}");
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A task says RUNNING before it reads the binlog. A mark that arrives in every partition shows
/// that whatever is written from now on will arrive too.
async fn wait_flowing(mysql: &Mysql, log: &Bounds, until: Instant) -> anyhow::Result<()> {
    let before = ends(log).await?;
    loop {
        // A server that is slow for a moment is one more thing to wait for.
        let problem = match mark_and_look(mysql, log, &before).await {
            Ok(true) => return Ok(()),
            Ok(false) => format!("no change arrives in {CHANGES}: look at its log"),
            Err(error) => format!("{error:#}"),
        };
        if Instant::now() >= until {
            bail!("the connector is running, but {problem}");
        }
    }
}

/// Whether the log has grown in every partition.
async fn mark_and_look(mysql: &Mysql, log: &Bounds, before: &[Offset]) -> anyhow::Result<bool> {
    let marked = mysql.set_all_marks().await;
    tokio::time::sleep(LOOK_EVERY).await;
    marked
        .context("failed to set the marks")?
        .context("there are no marks: run `likewise migrate`")?;
    let now = ends(log).await?;
    Ok(before.iter().zip(&now).all(|(before, now)| now > before))
}

async fn ends(log: &Bounds) -> anyhow::Result<Vec<Offset>> {
    log.ends().await.context("failed to look at the change log")
}
