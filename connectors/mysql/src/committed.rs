//! What a connection asks after a write was committed: MySQL's clock, and the name of the transaction.
//!
//! MySQL would tell the name with the commit itself (`session_track_gtids`), to a client that asks for it at
//! the start of the connection; the driver does not. `performance_schema` keeps the last transactions of
//! each connection with their names.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use likewise_core::Micros;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error as Driver, ServerError};

use crate::{Gtid, Mysql};

/// Never before a mark that was committed earlier, also when the clock was set back.
const WRITTEN_AT: &str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01',
       GREATEST(UTC_TIMESTAMP(6), COALESCE(MAX(at) + INTERVAL 1 MICROSECOND, UTC_TIMESTAMP(6))))";

/// Of the last transaction of this connection that wrote: others have no name of their own.
const OWN_GTID: &str = "(SELECT GTID FROM performance_schema.events_transactions_history
       WHERE THREAD_ID = PS_CURRENT_THREAD_ID() AND GTID LIKE '%:%' ORDER BY EVENT_ID DESC LIMIT 1)";

/// How long an account that lacked the right is taken to lack it.
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// `ER_TABLEACCESS_DENIED_ERROR`, `ER_COLUMNACCESS_DENIED_ERROR`, `ER_NO_SUCH_TABLE`,
/// `ER_SPECIFIC_ACCESS_DENIED_ERROR`, `ER_SP_DOES_NOT_EXIST`: another try would end the same way.
const NOT_TOLD: [u16; 5] = [1142, 1143, 1146, 1227, 1305];

/// Whether the account may know the names of its transactions, as far as was tried.
#[derive(Debug, Default)]
pub(crate) struct TellsGtids {
    refused: Mutex<Option<Instant>>,
}

impl TellsGtids {
    /// Whether it may, or is worth a try.
    fn may(&self, now: Instant) -> bool {
        let refused = self.refused.lock().expect("no holder of the lock panics");
        refused.is_none_or(|refused| now.duration_since(refused) >= ASK_AGAIN)
    }

    /// The server gave an error instead. One that says nothing of the account is of this call alone.
    fn failed(&self, error: &ServerError, now: Instant) {
        if !NOT_TOLD.contains(&error.code) {
            tracing::warn!(%error, "MySQL did not tell the name of a transaction");
            return;
        }
        *self.refused.lock().expect("no holder of the lock panics") = Some(now);
        tracing::warn!(
            %error,
            "the account may not read performance_schema.events_transactions_history: \
             the counts in the answers to writes are often stale"
        );
    }
}

/// What is known after a write was committed.
pub(crate) struct Committed {
    /// MySQL's clock.
    pub(crate) at: Micros,
    /// The transaction, where there was one and the account may know it.
    pub(crate) transaction: Option<Gtid>,
    /// What the last statement that called `LAST_INSERT_ID(…)` carried out.
    pub(crate) told: u64,
}

impl Mysql {
    /// MySQL's clock, and the transaction that this connection committed last, if it `wrote` just now.
    pub(crate) async fn committed(
        &self,
        conn: &mut Conn,
        wrote: bool,
    ) -> Result<Committed, Driver> {
        const ONE_ROW: &str = "an aggregate has one row";
        if wrote && self.tells_gtids.may(Instant::now()) {
            let all =
                format!("SELECT {WRITTEN_AT}, LAST_INSERT_ID(), {OWN_GTID} FROM partition_marks");
            match conn.query_first::<(i64, u64, Option<String>), _>(all).await {
                Ok(row) => {
                    let (at, told, gtid) = row.expect(ONE_ROW);
                    let transaction = gtid.and_then(|gtid| Gtid::parse(&gtid));
                    return Ok(Committed { at: Micros(at), transaction, told });
                }
                Err(Driver::Server(error)) => self.tells_gtids.failed(&error, Instant::now()),
                Err(error) => return Err(error),
            }
        }
        let both = format!("SELECT {WRITTEN_AT}, LAST_INSERT_ID() FROM partition_marks");
        let (at, told) = conn.query_first::<(i64, u64), _>(both).await?.expect(ONE_ROW);
        Ok(Committed { at: Micros(at), transaction: None, told })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(tells: &TellsGtids, code: u16, now: Instant) {
        let error = ServerError { code, message: String::new(), state: String::new() };
        tells.failed(&error, now);
    }

    #[test]
    fn only_a_missing_right_stops_the_question_and_only_for_a_while() {
        let (tells, now) = (TellsGtids::default(), Instant::now());
        for code in [1053, 1205, 1317, 3024] {
            failed(&tells, code, now);
            assert!(tells.may(now), "{code} says nothing of the account");
        }
        for code in NOT_TOLD {
            failed(&tells, code, now);
            assert!(!tells.may(now) && !tells.may(now + ASK_AGAIN / 2), "{code}");
            assert!(tells.may(now + ASK_AGAIN), "{code}: the right may have been granted");
        }
    }
}
