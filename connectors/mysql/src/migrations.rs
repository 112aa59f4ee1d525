//! The schema: numbered SQL files, applied in order, each once.

use likewise_core::mark_key;
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;

use crate::{Error, Mysql};

mod embedded {
    refinery::embed_migrations!("migrations");
}

/// Taken while migrations run: the library itself takes no lock.
const LOCK: &str = "likewise.migrate";
/// How long a migration waits for another one.
const LOCK_WAIT_S: u64 = 60;

/// Brings the schema up to date and makes a mark for each of the topic's partitions. Safe to run
/// twice and from two places at once. Needs a user that may change the schema. Has no deadline but
/// for its lock. Answers with the names of the migrations that this call applied.
pub async fn migrate(admin: &Mysql, partitions: u32) -> Result<Vec<String>, Error> {
    let mut conn = admin.own_connection().await?;
    let taken: Option<Option<u8>> =
        conn.exec_first("SELECT GET_LOCK(?, ?)", (LOCK, LOCK_WAIT_S)).await?;
    if taken.flatten() != Some(1) {
        return Err(Error::MigrationRunning(LOCK_WAIT_S));
    }
    let applied = apply(admin, &mut conn, partitions).await;
    // The lock ends with the connection.
    conn.disconnect().await?;
    applied
}

async fn apply(admin: &Mysql, conn: &mut Conn, partitions: u32) -> Result<Vec<String>, Error> {
    let mut pool = admin.pool().clone();
    let runner = embedded::migrations::runner();
    let report = runner.run_async(&mut pool).await.map_err(Error::Migration)?;
    for partition in 0..partitions {
        let insert =
            "INSERT IGNORE INTO partition_marks (mark_key, at) VALUES (?, UTC_TIMESTAMP(6))";
        conn.exec_drop(insert, (mark_key(partition, partitions),)).await?;
    }
    Ok(report.applied_migrations().iter().map(ToString::to_string).collect())
}
