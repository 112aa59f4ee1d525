//! `likewise doctor`

use std::process::ExitCode;

use likewise_connect::{Connect, Definition};
use likewise_core::{Finding, Severity};
use likewise_kafka::{Bounds, CHANGES, TopicSettings, Topics};
use likewise_mongodb::{Live, Store};
use likewise_mysql::Error as MysqlError;
use serde::Serialize;

use super::{halted, print_json};
use crate::config::{Config, need};
use crate::roles;

/// What was found at one server.
#[derive(Debug, Serialize)]
struct Looked {
    server: &'static str,
    findings: Vec<Finding>,
    /// Why it could not be asked, or not to the end.
    away: Option<String>,
}

#[derive(Debug, Serialize)]
struct Diagnosis {
    /// Nothing is refused, and every server was asked.
    fit: bool,
    servers: [Looked; 5],
}

/// Asks every server, whatever the others answer.
pub(crate) async fn run(config: &Config, json: bool) -> anyhow::Result<ExitCode> {
    let (mysql, binlog, kafka, mongodb, connect) = tokio::join!(
        mysql(config),
        binlog(config),
        kafka(config),
        mongodb(config),
        connect(config)
    );
    let servers = [
        looked("MySQL", mysql),
        looked("MySQL's binlog", binlog),
        looked("Kafka", kafka),
        looked("MongoDB", mongodb),
        looked("Kafka Connect", connect),
    ];
    let fit =
        |looked: &Looked| looked.away.is_none() && !looked.findings.iter().any(Finding::is_refused);
    let diagnosis = Diagnosis { fit: servers.iter().all(fit), servers };
    if json {
        print_json(&diagnosis)?;
    } else {
        diagnosis.servers.iter().for_each(print);
    }
    Ok(if diagnosis.fit { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn looked(server: &'static str, looked: anyhow::Result<Vec<Finding>>) -> Looked {
    match looked {
        Ok(findings) => Looked { server, findings, away: None },
        Err(error) => Looked { server, findings: Vec::new(), away: Some(format!("{error:#}")) },
    }
}

fn print(looked: &Looked) {
    match &looked.away {
        Some(why) => println!("away     {}: {why}", looked.server),
        None if looked.findings.is_empty() => println!("ok       {}", looked.server),
        None => {}
    }
    for finding in &looked.findings {
        println!("{:8} {finding}", finding.severity.to_string());
    }
}

/// Through the roles' own account, whose rights are looked at too.
async fn mysql(config: &Config) -> anyhow::Result<Vec<Finding>> {
    let mysql = roles::mysql(config)?;
    let mut findings = mysql.check().await?;
    match mysql.ready().await {
        Ok(()) => {}
        Err(MysqlError::NotMigrated) => findings.push(missing(
            "MySQL",
            "schema",
            "there is nothing to write likes to, or to tell how fresh counts are",
            "likewise migrate",
        )),
        Err(error) => return Err(error.into()),
    }
    mysql.close().await;
    Ok(findings)
}

/// Through the account that sees where the binlog stands.
async fn binlog(config: &Config) -> anyhow::Result<Vec<Finding>> {
    let mysql = roles::mysql_admin(config)?;
    let findings = mysql.check_binlog_filters().await?;
    mysql.close().await;
    Ok(findings)
}

async fn kafka(config: &Config) -> anyhow::Result<Vec<Finding>> {
    let topics = Topics::new(config.brokers()?)?;
    let settings = TopicSettings {
        partitions: config.partitions,
        replication_factor: config.replication_factor,
    };
    Ok(topics.check(settings).await?)
}

/// The live generation too, and whether the log still has as many partitions as it counts.
async fn mongodb(config: &Config) -> anyhow::Result<Vec<Finding>> {
    let store = roles::store(config).await?;
    let mut findings = store.check().await?;
    if findings.iter().any(Finding::is_refused) {
        return Ok(findings);
    }
    let Some(live) = store.live().await? else {
        findings.push(missing(
            "MongoDB",
            "live generation",
            "without one no like is counted; after a loss of counts it is made by `likewise rebuild`",
            "likewise migrate",
        ));
        return Ok(findings);
    };
    findings.extend(doubts(&store, live).await?);
    // A topic that cannot be asked is told where Kafka is.
    let log = Bounds::new(config.brokers()?, CHANGES)?;
    let Ok(partitions) = log.partitions().await else { return Ok(findings) };
    if partitions != live.partitions {
        findings.push(Finding {
            severity: Severity::Refused,
            thing: format!("generation {}", live.generation),
            setting: format!("partitions of {CHANGES}"),
            found: partitions.to_string(),
            needed: live.partitions.to_string(),
            why: "posts have moved between partitions, and out of their order".to_owned(),
            fix: "likewise rebuild --from-here".to_owned(),
        });
    }
    Ok(findings)
}

/// What keeps the live generation from being counted, or from being trusted.
async fn doubts(store: &Store, live: Live) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let thing = format!("generation {}", live.generation);
    if let Some(reason) = halted(store, live.generation).await? {
        findings.push(Finding {
            severity: Severity::Refused,
            thing: thing.clone(),
            setting: "halted".to_owned(),
            found: reason,
            needed: "a log and a MySQL that are the ones that were counted".to_owned(),
            why: "nothing is counted meanwhile".to_owned(),
            fix: "the command that it names".to_owned(),
        });
    }
    if store.stands(live.generation).await? {
        findings.push(Finding {
            severity: Severity::Warning,
            thing,
            setting: "as_of".to_owned(),
            found: "standing still".to_owned(),
            needed: "a recount of every post".to_owned(),
            why: "a table was truncated, or the log has a gap: any count may be wrong".to_owned(),
            fix: "likewise recount --all".to_owned(),
        });
    }
    Ok(findings)
}

async fn connect(config: &Config) -> anyhow::Result<Vec<Finding>> {
    let connect = Connect::new(need("CONNECT_URL", config.connect_url.as_ref())?)?;
    let definition = Definition::of_project();
    let findings = connect.check(&definition).await?;
    Ok(findings.unwrap_or_else(|| {
        vec![missing(
            &format!("connector {}", definition.name),
            "registration",
            "without it no like reaches the log",
            "likewise connector apply",
        )]
    }))
}

/// A role waits for what is missing; an operator wants to hear of it.
fn missing(thing: &str, setting: &str, why: &str, fix: &str) -> Finding {
    Finding {
        severity: Severity::Refused,
        thing: thing.to_owned(),
        setting: setting.to_owned(),
        found: "missing".to_owned(),
        needed: "one".to_owned(),
        why: why.to_owned(),
        fix: fix.to_owned(),
    }
}
