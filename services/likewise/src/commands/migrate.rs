//! `likewise migrate`

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use likewise_core::Offset;
use likewise_kafka::{Bounds, CHANGES};
use likewise_mongodb::FirstGeneration;

use crate::config::Config;
use crate::roles;

/// The schema first, then the marks, whose keys depend on the topic, then the first generation.
pub(crate) async fn run(config: &Config) -> anyhow::Result<ExitCode> {
    let brokers = config.brokers()?;
    let admin = roles::mysql_admin(config)?;
    let store = roles::store(config).await?;
    let log = Bounds::new(brokers, CHANGES)?;

    let partitions = log.partitions().await.context("failed to look at the change log")?;
    let applied =
        likewise_mysql::migrate(&admin, partitions).await.context("failed to migrate MySQL")?;
    admin.close().await;
    for migration in &applied {
        println!("applied {migration}");
    }
    if applied.is_empty() {
        println!("MySQL's schema is up to date");
    }

    if let Some(live) = store.live().await.context("failed to look at MongoDB")? {
        store.create_indexes(live.generation).await.context("failed to make MongoDB's indexes")?;
        println!("there is a live generation of counts");
        return Ok(ExitCode::SUCCESS);
    }
    let starts = starts(&log, partitions).await?;
    match store
        .create_first_generation(CHANGES, &starts)
        .await
        .context("failed to make the first generation")?
    {
        FirstGeneration::Created => println!("created generation 1"),
        FirstGeneration::AlreadyThere => println!("there is a live generation of counts"),
    }
    Ok(ExitCode::SUCCESS)
}

/// The first generation counts the log from its beginning, which must still be there.
async fn starts(log: &Bounds, partitions: u32) -> anyhow::Result<Vec<Offset>> {
    let mut starts = Vec::new();
    for partition in 0..partitions {
        let low = log.of(partition).await.context("failed to look at the change log")?.low;
        if low > 0 {
            bail!(
                "partition {partition} of {CHANGES} begins at offset {low}: the beginning of the log is gone, \
                 and counts made from the rest would be wrong; run `likewise rebuild --recount`"
            );
        }
        starts.push(low);
    }
    Ok(starts)
}
