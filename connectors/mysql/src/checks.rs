//! Looking at what the server is set to, for whoever would lose or double likes with it.

mod grants;
mod tables;
mod variables;

use std::collections::BTreeMap;

use likewise_core::Finding;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error as Driver, Row};

use crate::checks::tables::{ForeignKey, IdColumn, Table};
use crate::{Error, Mysql};

/// How findings name the server.
const MYSQL: &str = "MySQL";

const TABLES: &str = "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES
     WHERE TABLE_SCHEMA = DATABASE()
       AND TABLE_NAME IN ('post_likes', 'post_recounts', 'partition_marks')";

const ID_COLUMNS: &str = "SELECT TABLE_NAME, COLUMN_NAME, COLLATION_NAME
     FROM information_schema.COLUMNS
     WHERE TABLE_SCHEMA = DATABASE()
       AND (TABLE_NAME, COLUMN_NAME) IN (('post_likes', 'user_id'), ('post_likes', 'post_id'),
         ('post_recounts', 'post_id'), ('partition_marks', 'mark_key'))";

/// A key of one of our tables: what another table's key does to its own rows is not counted.
const FOREIGN_KEYS: &str = "SELECT TABLE_NAME, CONSTRAINT_NAME, DELETE_RULE, UPDATE_RULE
     FROM information_schema.REFERENTIAL_CONSTRAINTS
     WHERE CONSTRAINT_SCHEMA = DATABASE()
       AND TABLE_NAME IN ('post_likes', 'post_recounts', 'partition_marks')";

/// What is asked after a write.
const OWN_TRANSACTIONS: &str =
    "SELECT GTID FROM performance_schema.events_transactions_history LIMIT 0";

impl Mysql {
    /// Which server answers. After a failover the same address leads to another one.
    pub async fn server(&self) -> Result<String, Error> {
        self.within(async {
            let mut conn = self.conn().await?;
            let uuid: Option<String> = conn.query_first("SELECT @@GLOBAL.server_uuid").await?;
            Ok(uuid.unwrap_or_default())
        })
        .await
    }

    /// What is not as it must be in the server's variables, in those of our tables that are there,
    /// and in the rights of the account, which needs its rows and the names of its own transactions.
    pub async fn check(&self) -> Result<Vec<Finding>, Error> {
        self.within(async {
            let mut conn = self.conn().await?;
            let variables: Vec<(String, String)> = conn.query(variables::query()).await?;
            let variables = BTreeMap::from_iter(variables);
            let mut findings = variables::check(&variables);
            let Some(database) = database(&mut conn).await? else { return Ok(findings) };
            findings.extend(tables::check(
                &database,
                &conn.query_map(TABLES, |(name, engine)| Table { name, engine }).await?,
                &conn
                    .query_map(ID_COLUMNS, |(table, name, collation)| IdColumn {
                        table,
                        name,
                        collation,
                    })
                    .await?,
                &conn
                    .query_map(FOREIGN_KEYS, |(table, name, on_delete, on_update)| ForeignKey {
                        table,
                        name,
                        on_delete,
                        on_update,
                    })
                    .await?,
            ));
            let grants: Vec<String> = conn.query("SHOW GRANTS").await?;
            findings.extend(grants::check(&database, &grants));
            if let Err(Driver::Server(_)) = conn.query_drop(OWN_TRANSACTIONS).await {
                let account: Option<String> = conn.query_first("SELECT CURRENT_USER()").await?;
                let account = account.unwrap_or_default();
                findings.push(grants::without_own_transactions(&account));
            }
            Ok(findings)
        })
        .await
    }

    /// Whether the binlog leaves our database out. Needs an account that sees where the binlog stands
    /// (REPLICATION CLIENT).
    pub async fn check_binlog_filters(&self) -> Result<Vec<Finding>, Error> {
        self.within(async {
            let mut conn = self.conn().await?;
            let Some(database) = database(&mut conn).await? else { return Ok(Vec::new()) };
            let status: Option<Row> = conn.query_first("SHOW BINARY LOG STATUS").await?;
            let list = |name| status.as_ref()?.get_opt::<String, _>(name)?.ok();
            let (only, never) = (list("Binlog_Do_DB"), list("Binlog_Ignore_DB"));
            Ok(tables::check_filters(
                &database,
                &only.unwrap_or_default(),
                &never.unwrap_or_default(),
            ))
        })
        .await
    }
}

/// The database of the address.
async fn database(conn: &mut Conn) -> Result<Option<String>, Driver> {
    let database: Option<Option<String>> = conn.query_first("SELECT DATABASE()").await?;
    Ok(database.flatten())
}
