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

impl Mysql {
    /// MySQL's clock, and the transaction that this connection committed last, if it `wrote` just now. An
    /// account that may not know it does without.
    pub(crate) async fn committed(
        &self,
        conn: &mut Conn,
        wrote: bool,
    ) -> Result<(Micros, Option<Gtid>), Driver> {
        if wrote && self.tells_gtids.may(Instant::now()) {
            let both = format!("SELECT {WRITTEN_AT}, {OWN_GTID} FROM partition_marks");
            match conn.query_first::<(i64, Option<String>), _>(both).await {
                Ok(row) => {
                    let (at, gtid) = row.expect("an aggregate has one row");
                    return Ok((Micros(at), gtid.and_then(|gtid| Gtid::parse(&gtid))));
                }
                Err(Driver::Server(error)) => self.tells_gtids.failed(&error, Instant::now()),
                Err(error) => return Err(error),
            }
        }
        let at = conn.query_first(format!("SELECT {WRITTEN_AT} FROM partition_marks")).await?;
        Ok((Micros(at.expect("an aggregate has one row")), None))
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
