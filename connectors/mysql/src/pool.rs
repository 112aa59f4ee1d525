//! The connections, and the deadline that every call has.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error as Driver, Opts, OptsBuilder, Pool, PoolConstraints, PoolOpts};

use crate::Error;
use crate::committed::TellsGtids;

/// How to reach MySQL.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// `mysql://user:password@host:port/database`.
    pub url: String,
    /// How many connections at most.
    pub max_connections: usize,
    /// A PEM file: who may vouch for the server, beside those that are known to everybody. TLS itself is
    /// asked for by `require_ssl=true` in the address.
    pub tls_ca: Option<PathBuf>,
    /// How long a call may take, waiting for a connection included.
    pub deadline: Duration,
}

/// A handle to MySQL; clones share the connections, which are opened when they are needed.
#[derive(Clone, Debug)]
pub struct Mysql {
    opts: Opts,
    pool: Pool,
    deadline: Duration,
    /// Whether the account may know the names of its transactions, as far as was tried.
    pub(crate) tells_gtids: Arc<TellsGtids>,
}

/// How old a connection may become.
const CONNECTION_AGE: Duration = Duration::from_secs(300);
/// `ER_NO_SUCH_TABLE`.
const NO_SUCH_TABLE: u16 = 1146;

/// READ COMMITTED takes no gap locks, so that likes of new, adjacent ids do not deadlock.
const SETUP: [&str; 3] = [
    "SET SESSION transaction_isolation = 'READ-COMMITTED'",
    "SET SESSION innodb_lock_wait_timeout = 2",
    "SET SESSION time_zone = '+00:00'",
];

/// Fails where the newest table is missing.
const MIGRATED: &str = "SELECT COUNT(*) FROM partition_marks
     WHERE NOT EXISTS (SELECT 1 FROM deletions WHERE FALSE)";

impl Mysql {
    /// Checks the settings. Opens no connection.
    pub fn new(settings: &PoolSettings) -> Result<Self, Error> {
        let opts = Opts::from_url(&settings.url).map_err(Error::Settings)?;
        let constraints = PoolConstraints::new(0, settings.max_connections.max(1))
            .expect("the minimum of 0 is never above the maximum");
        let pool_opts = PoolOpts::new()
            .with_constraints(constraints)
            // A reset costs a round trip and the prepared statements; nothing here leaves session state.
            .with_reset_connection(false)
            // After a failover the address may lead to another server.
            .with_abs_conn_ttl(Some(CONNECTION_AGE));
        let tls = opts.ssl_opts().cloned().map(|tls| match &settings.tls_ca {
            Some(ca) => tls.with_root_certs(vec![ca.clone().into()]),
            None => tls,
        });
        let opts = OptsBuilder::from_opts(opts)
            .ssl_opts(tls)
            .prefer_socket(false)
            .tcp_nodelay(true)
            .client_found_rows(false)
            .setup(SETUP.map(String::from).to_vec())
            .pool_opts(pool_opts);
        let opts = Opts::from(opts);
        let (pool, tells_gtids) = (Pool::new(opts.clone()), Arc::default());
        Ok(Self { pool, opts, deadline: settings.deadline, tells_gtids })
    }

    /// Checks that MySQL answers and that the migrations have run.
    pub async fn ready(&self) -> Result<(), Error> {
        let count = async {
            let mut conn = self.conn().await?;
            conn.query_first(MIGRATED).await
        };
        match self.within::<Option<u64>>(count).await {
            Ok(Some(1..)) => Ok(()),
            Ok(_) => Err(Error::NotMigrated),
            Err(Error::Refused(Driver::Server(error))) if error.code == NO_SUCH_TABLE => {
                Err(Error::NotMigrated)
            }
            Err(error) => Err(error),
        }
    }

    /// By which cipher MySQL is talked to; none where it is in clear text.
    pub async fn cipher(&self) -> Result<Option<String>, Error> {
        let asked = async {
            let mut conn = self.conn().await?;
            conn.query_first("SHOW SESSION STATUS LIKE 'Ssl_cipher'").await
        };
        let answer = self.within::<Option<(String, String)>>(asked).await?;
        Ok(answer.map(|(_, cipher)| cipher).filter(|cipher| !cipher.is_empty()))
    }

    /// Closes every connection.
    pub async fn close(self) {
        if let Err(error) = self.pool.disconnect().await {
            tracing::debug!(%error, "closing the MySQL connections failed");
        }
    }

    /// A connection. Its wait is bounded by the deadline of the call that asks for it.
    pub(crate) async fn conn(&self) -> Result<Conn, Driver> {
        self.pool.get_conn().await
    }

    /// Runs a call within the deadline.
    pub(crate) async fn within<T>(
        &self,
        call: impl Future<Output = Result<T, Driver>>,
    ) -> Result<T, Error> {
        within(self.deadline, call).await
    }

    /// A connection for long reading, which has no deadline.
    pub(crate) async fn connection(&self) -> Result<Conn, Error> {
        self.within(self.conn()).await
    }

    /// A connection outside the pool, without a deadline: whatever state it takes on ends with it.
    pub(crate) async fn own_connection(&self) -> Result<Conn, Error> {
        Ok(self.unpooled().await?)
    }

    /// The same, for a call that has a deadline.
    pub(crate) async fn unpooled(&self) -> Result<Conn, Driver> {
        Conn::new(self.opts.clone()).await
    }

    /// How long a call may take.
    pub(crate) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// The pool itself, for the migration library.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }
}

/// Runs a call within a deadline of its own.
pub(crate) async fn within<T>(
    deadline: Duration,
    call: impl Future<Output = Result<T, Driver>>,
) -> Result<T, Error> {
    tokio::time::timeout(deadline, call)
        .await
        .map_err(|_| Error::Timeout(deadline.as_millis()))?
        .map_err(Error::from)
}
