//! What a connection asks after a write was committed: MySQL's clock, and the name of the transaction.
//!
//! MySQL would tell the name with the commit itself (`session_track_gtids`), to a client that asks for it at
//! the start of the connection; the driver does not. `performance_schema` keeps the last transactions of
//! each connection with their names.

use std::sync::atomic::Ordering;

use likewise_core::Micros;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error as Driver};

use crate::{Gtid, Mysql};

/// Never before a mark that was committed earlier, also when the clock was set back.
const WRITTEN_AT: &str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01',
       GREATEST(UTC_TIMESTAMP(6), COALESCE(MAX(at) + INTERVAL 1 MICROSECOND, UTC_TIMESTAMP(6))))";

/// Of the last transaction of this connection that wrote: others have no name of their own.
const OWN_GTID: &str = "(SELECT GTID FROM performance_schema.events_transactions_history
       WHERE THREAD_ID = PS_CURRENT_THREAD_ID() AND GTID LIKE '%:%' ORDER BY EVENT_ID DESC LIMIT 1)";

impl Mysql {
    /// MySQL's clock, and the transaction that this connection committed last, if it `wrote` just now. An
    /// account that may not know it does without.
    pub(crate) async fn committed(
        &self,
        conn: &mut Conn,
        wrote: bool,
    ) -> Result<(Micros, Option<Gtid>), Driver> {
        if wrote && self.tells_gtids.load(Ordering::Relaxed) {
            let both = format!("SELECT {WRITTEN_AT}, {OWN_GTID} FROM partition_marks");
            match conn.query_first::<(i64, Option<String>), _>(both).await {
                Ok(row) => {
                    let (at, gtid) = row.expect("an aggregate has one row");
                    return Ok((Micros(at), gtid.and_then(|gtid| Gtid::parse(&gtid))));
                }
                Err(Driver::Server(error)) => {
                    self.tells_gtids.store(false, Ordering::Relaxed);
                    tracing::warn!(
                        %error,
                        "the account may not read performance_schema.events_transactions_history: \
                         the counts in the answers to writes are often stale"
                    );
                }
                Err(error) => return Err(error),
            }
        }
        let at = conn.query_first(format!("SELECT {WRITTEN_AT} FROM partition_marks")).await?;
        Ok((Micros(at.expect("an aggregate has one row")), None))
    }
}
