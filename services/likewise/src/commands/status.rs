//! `likewise status`

use std::process::ExitCode;

use anyhow::Context as _;
use comfy_table::{Table, presets};
use likewise_core::Offset;
use likewise_kafka::{Bounds, CHANGES};
use likewise_serving::rfc3339;
use serde::Serialize;

use super::{halted, live, print_json};
use crate::config::Config;
use crate::roles;
use likewise_connect::{Connect, ConnectorStatus, Definition};

#[derive(Debug, Serialize)]
struct Status {
    generation: i64,
    /// Why nothing of the generation may be counted.
    halted: Option<String>,
    partitions: Vec<Partition>,
    open_repairs: u64,
    /// None when Kafka Connect cannot be reached, or does not know the connector.
    connector: Option<ConnectorStatus>,
}

#[derive(Debug, Serialize)]
struct Partition {
    partition: u32,
    /// Where counting goes on; none before the partition was first claimed.
    next_offset: Option<Offset>,
    end_offset: Offset,
    /// Offsets between the two: markers of producers' transactions are among them.
    lag: Option<i64>,
    as_of: Option<String>,
    /// Where a table was truncated, or the log has a gap: `as_of` stands still until everything was recounted.
    stands_since: Option<Offset>,
    epoch: Option<i64>,
    owner: Option<String>,
}

pub(crate) async fn run(config: &Config, json: bool) -> anyhow::Result<ExitCode> {
    let brokers = config.brokers()?;
    let store = roles::store(config).await?;
    let log = Bounds::new(brokers, CHANGES)?;

    let live = live(&store).await?;
    let counted =
        store.partitions(live.generation).await.context("failed to read the checkpoints")?;
    let open_repairs =
        store.open_repairs(live.generation).await.context("failed to read the repairs")?;
    let mut partitions = Vec::new();
    for partition in 0..live.partitions {
        let end_offset = log.of(partition).await.context("failed to look at the change log")?.high;
        let known = counted.iter().find(|known| known.partition == partition);
        partitions.push(Partition {
            partition,
            next_offset: known.map(|known| known.next_offset),
            end_offset,
            lag: known.map(|known| end_offset - known.next_offset),
            as_of: known.and_then(|known| known.as_of).map(rfc3339),
            stands_since: known.and_then(|known| known.stands_since),
            epoch: known.map(|known| known.epoch),
            owner: known.map(|known| known.owner.clone()),
        });
    }
    let connector = connector(config).await;
    let halted = halted(&store, live.generation).await?;
    let status =
        Status { generation: live.generation, halted, partitions, open_repairs, connector };
    if json {
        print_json(&status)?;
    } else {
        print(&status);
    }
    Ok(ExitCode::SUCCESS)
}

async fn connector(config: &Config) -> Option<ConnectorStatus> {
    let connect = Connect::new(config.connect_url.as_deref()?).ok()?;
    let name = Definition::of_project().name;
    match connect.status(&name).await {
        Ok(status) => status,
        Err(error) => {
            eprintln!("{error:#}");
            None
        }
    }
}

fn print(status: &Status) {
    println!("live generation  {}", status.generation);
    if let Some(reason) = &status.halted {
        println!("halted           {reason}");
    }
    println!("open repairs     {}", status.open_repairs);
    match &status.connector {
        Some(connector) => println!("connector        {}", connector.summary()),
        None => println!("connector        unknown"),
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["partition", "offset", "end", "lag", "as of", "epoch", "owner"]);
    let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    for partition in &status.partitions {
        table.add_row([
            partition.partition.to_string(),
            text(partition.next_offset.map(|offset| offset.to_string())),
            partition.end_offset.to_string(),
            text(partition.lag.map(|lag| lag.to_string())),
            text(partition.as_of.clone())
                + if partition.stands_since.is_some() { " (stands)" } else { "" },
            text(partition.epoch.map(|epoch| epoch.to_string())),
            text(partition.owner.clone()),
        ]);
    }
    println!("{table}");
}
