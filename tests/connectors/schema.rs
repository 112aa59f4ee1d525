//! A schema for one test.

use std::time::Duration;

use likewise_mysql::{Mysql, PoolSettings, migrate};
use likewise_tests::{fresh, setting};
use mysql_async::prelude::Queryable as _;

pub(crate) const PARTITIONS: u32 = 4;

/// A schema of its own, dropped at the end of the test.
pub(crate) struct Schema {
    pub(crate) name: String,
    admin: mysql_async::Pool,
}

impl Schema {
    pub(crate) async fn new() -> Self {
        let admin = mysql_async::Pool::new(setting("MYSQL_ADMIN_URL").as_str());
        let name = fresh("likewise_test").replace('-', "_");
        let sql = format!("CREATE DATABASE {name} CHARACTER SET utf8mb4");
        admin.get_conn().await.expect("MySQL answers").query_drop(sql).await.expect("it creates");
        Self { name, admin }
    }

    pub(crate) fn mysql(&self, url: &str) -> Mysql {
        let url = setting(url);
        let (server, _) = url.rsplit_once('/').expect("a database");
        let url = format!("{server}/{}", self.name);
        let deadline = Duration::from_secs(10);
        Mysql::new(&PoolSettings { url, max_connections: 4, tls_ca: None, deadline })
            .expect("settings")
    }

    /// With its tables, and the application's connections to it.
    pub(crate) async fn migrated() -> (Self, Mysql) {
        let schema = Self::new().await;
        migrate(&schema.mysql("MYSQL_ADMIN_URL"), PARTITIONS).await.expect("it migrates");
        let mysql = schema.mysql("MYSQL_URL");
        (schema, mysql)
    }

    /// A connection past the code under test.
    pub(crate) async fn conn(&self) -> mysql_async::Conn {
        let mut conn = self.admin.get_conn().await.expect("MySQL answers");
        conn.query_drop(format!("USE {}", self.name)).await.expect("it is there");
        conn
    }

    pub(crate) async fn query<T: mysql_async::prelude::FromRow + Send + 'static>(
        &self,
        sql: &str,
    ) -> Vec<T> {
        let mut conn = self.conn().await;
        conn.query(sql).await.expect("a valid query")
    }

    pub(crate) async fn drop(self) {
        self.query::<u8>(&format!("DROP DATABASE {}", self.name)).await;
    }
}
