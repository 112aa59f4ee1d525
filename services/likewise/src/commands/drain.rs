//! `likewise drain`

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use likewise_core::Micros;
use likewise_kafka::{Bounds, CHANGES};
use likewise_mongodb::Store;
use likewise_serving::rfc3339;
use serde::Serialize;

use super::{halted, live, print_json};
use crate::config::{Config, need};
use crate::roles;
use likewise_connect::{Connect, Definition};

/// How often the checkpoints are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

#[derive(Debug, Serialize)]
struct Drained {
    drained: bool,
    /// Every like committed before this time, on MySQL's clock, is counted.
    mark: String,
    waited_ms: u128,
    /// What is missing, where it was not drained in time.
    waiting_for: Option<String>,
}

pub(crate) async fn run(config: &Config, timeout_s: u64, json: bool) -> anyhow::Result<ExitCode> {
    let mysql = roles::mysql(config)?;
    let store = roles::store(config).await?;
    let log = Bounds::new(config.brokers()?, CHANGES)?;
    let started = Instant::now();
    let until = started + Duration::from_secs(timeout_s);

    let mark = mysql.set_all_marks().await.context("failed to set the marks")?;
    let mark = mark.context("there are no marks: run `likewise migrate`")?;
    mysql.close().await;
    let waiting_for = loop {
        // A store that is away for a moment is one more thing to wait for.
        let missing =
            missing(&store, &log, mark).await.unwrap_or_else(|error| Some(format!("{error:#}")));
        if missing.is_none() || Instant::now() >= until {
            break missing;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    };
    let waiting_for = match waiting_for {
        Some(missing) => Some(format!("{missing}; {}", connector(config).await)),
        None => None,
    };
    let drained = Drained {
        drained: waiting_for.is_none(),
        mark: rfc3339(mark),
        waited_ms: started.elapsed().as_millis(),
        waiting_for,
    };
    match &drained.waiting_for {
        _ if json => print_json(&drained)?,
        None => {
            println!("every like before {} is counted ({} ms)", drained.mark, drained.waited_ms)
        }
        Some(missing) => println!("not drained within {timeout_s} s: {missing}"),
    }
    Ok(if drained.drained { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The usual suspect, for whoever waits in vain.
async fn connector(config: &Config) -> String {
    let state = async {
        let connect = Connect::new(need("CONNECT_URL", config.connect_url.as_ref())?)?;
        let name = Definition::of_project().name;
        let status = connect.status(&name).await?;
        anyhow::Ok(status.map_or_else(|| "not registered".to_owned(), |status| status.summary()))
    };
    match state.await {
        Ok(state) => format!("the connector is {state}"),
        Err(error) => format!("{error:#}"),
    }
}

/// What keeps the live generation from being drained up to `mark`; none when it is.
async fn missing(store: &Store, log: &Bounds, mark: Micros) -> anyhow::Result<Option<String>> {
    let live = live(store).await?;
    let partitions = log.partitions().await?;
    if partitions != live.partitions {
        return Ok(Some(format!(
            "the topic has {partitions} partitions, and generation {} counts {}",
            live.generation, live.partitions
        )));
    }
    if let Some(reason) = halted(store, live.generation).await? {
        return Ok(Some(format!("generation {} is halted: {reason}", live.generation)));
    }
    let counted =
        store.partitions(live.generation).await.context("failed to read the checkpoints")?;
    for partition in 0..live.partitions {
        let known = counted.iter().find(|known| known.partition == partition);
        let as_of = known.and_then(|known| known.as_of);
        if as_of.is_none_or(|as_of| as_of < mark) {
            let at = as_of.map_or_else(|| "its beginning".to_owned(), rfc3339);
            let stands = known.is_some_and(|known| known.stands_since.is_some());
            let stands =
                if stands { ", where it stands: run `likewise recount --all`" } else { "" };
            return Ok(Some(format!("partition {partition} is counted up to {at}{stands}")));
        }
    }
    let repairs =
        store.open_repairs(live.generation).await.context("failed to read the repairs")?;
    Ok((repairs > 0).then(|| format!("{repairs} posts wait for a recount")))
}
