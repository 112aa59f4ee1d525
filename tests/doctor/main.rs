//! Settings with which likes could be lost or counted twice: `likewise doctor` names each with what puts
//! it right and ends with 1, and no role starts with one.
//!
//! Servers that would be broken for others too are started a second time; topics and the connector are
//! broken for a moment and put right again, so these tests follow one another.

mod connector;
mod diagnosis;
mod kafka;
mod mongod;
mod mongodb;
mod mysql;
mod mysqld;
mod roles;

use std::future::Future;
use std::panic::{AssertUnwindSafe, resume_unwind};

use futures_util::FutureExt as _;
use tokio::sync::{Mutex, MutexGuard};

use crate::diagnosis::diagnose;

/// The stack is one test's at a time.
async fn alone() -> MutexGuard<'static, ()> {
    static STACK: Mutex<()> = Mutex::const_new(());
    STACK.lock().await
}

/// Runs the part of a test that breaks what all share, then what puts it right, and only then fails.
async fn then_put_right(test: impl Future<Output = ()>, put_right: impl Future<Output = ()>) {
    let outcome = AssertUnwindSafe(test).catch_unwind().await;
    put_right.await;
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}

/// A port that nobody listens on.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    listener.local_addr().expect("it has an address").port()
}

#[tokio::test]
async fn the_development_stack_is_fit() {
    let _alone = alone().await;
    let diagnosis = diagnose(&[]).await;
    diagnosis.is_fit();
    for server in ["MySQL", "MySQL's binlog", "MongoDB", "Kafka Connect"] {
        diagnosis.says(&format!("ok       {server}"));
    }
    diagnosis.warns("replication factor is 1", "kafka-reassign-partitions.sh");

    let json = likewise_tests::likewise(&["doctor", "--json"]).await;
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json["fit"], true, "{json}");
    assert_eq!(json["servers"][2]["findings"][0]["found"], "1", "{json}");
}

#[tokio::test]
async fn a_server_that_is_away_is_told_and_the_others_are_asked_all_the_same() {
    let _alone = alone().await;
    let nobody = format!("127.0.0.1:{}", free_port());
    let mysql = format!("mysql://u:p@{nobody}/likewise");
    let mongodb = format!("mongodb://{nobody}/?replicaSet=rs0");
    let connect = format!("http://{nobody}");
    for (name, address, server) in [
        ("LIKEWISE_MYSQL_URL", &mysql, "MySQL"),
        ("LIKEWISE_MYSQL_ADMIN_URL", &mysql, "MySQL's binlog"),
        ("LIKEWISE_KAFKA_BROKERS", &nobody, "Kafka"),
        ("LIKEWISE_MONGODB_URI", &mongodb, "MongoDB"),
        ("LIKEWISE_CONNECT_URL", &connect, "Kafka Connect"),
    ] {
        let diagnosis = diagnose(&[(name, address)]).await;
        assert_eq!(diagnosis.code, Some(1), "{}", diagnosis.text);
        diagnosis.says(&format!("away     {server}: "));
        let away = diagnosis.text.lines().filter(|line| line.starts_with("away"));
        assert_eq!(away.count(), 1, "{}", diagnosis.text);
    }
}
