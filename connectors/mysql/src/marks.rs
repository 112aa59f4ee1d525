//! Time marks: one row per Kafka partition, set to MySQL's clock and delivered in log order.

use std::time::Duration;

use likewise_core::Micros;
use mysql_async::prelude::Queryable;

use crate::{Error, Mysql};

/// One statement moves all marks. None goes back, each moves, and none stays below what any had
/// before: so whoever has passed the oldest of them has passed this statement in every partition.
const SET_MARKS: &str = "UPDATE partition_marks
     SET at = GREATEST(UTC_TIMESTAMP(6), at + INTERVAL 1 MICROSECOND,
       (SELECT at + INTERVAL 1 MICROSECOND FROM (SELECT MAX(at) AS at FROM partition_marks) AS newest))";

/// Also a mark that is ahead of a clock that was set back.
const IF_DUE: &str =
    "WHERE at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND OR at > UTC_TIMESTAMP(6)";

const OLDEST: &str =
    "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', MIN(at)) FROM partition_marks";

const NEWEST: &str =
    "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', MAX(at)) FROM partition_marks";

const BINLOG_READERS: &str = "SELECT COUNT(*) FROM performance_schema.processlist
     WHERE COMMAND LIKE 'Binlog Dump%' AND USER = ?";

impl Mysql {
    /// The newest mark; none when there are no marks.
    pub async fn newest_mark(&self) -> Result<Option<Micros>, Error> {
        self.within(async {
            let mut conn = self.conn().await?;
            let newest: Option<Option<i64>> = conn.query_first(NEWEST).await?;
            Ok(newest.flatten().map(Micros))
        })
        .await
    }

    /// Whether MySQL has a thread that sends its binlog to this account. Needs an account that sees
    /// other accounts' threads (PROCESS).
    pub async fn sends_binlog_to(&self, user: &str) -> Result<bool, Error> {
        self.within(async {
            let mut conn = self.conn().await?;
            let threads: Option<u64> = conn.exec_first(BINLOG_READERS, (user,)).await?;
            Ok(threads.is_some_and(|threads| threads > 0))
        })
        .await
    }

    /// Sets the marks that are older than `interval`, so that many callers do the work of one.
    /// Tells whether any was set.
    pub async fn set_due_marks(&self, interval: Duration) -> Result<bool, Error> {
        let interval = i64::try_from(interval.as_micros()).unwrap_or(i64::MAX);
        self.within(async {
            let mut conn = self.conn().await?;
            conn.exec_drop(format!("{SET_MARKS} {IF_DUE}"), (interval,)).await?;
            Ok(conn.affected_rows() > 0)
        })
        .await
    }

    /// Sets every mark now. Every like committed before the call is counted where a partition's
    /// `as_of` has reached the answer. None when there are no marks: the migrations have not run.
    pub async fn set_all_marks(&self) -> Result<Option<Micros>, Error> {
        self.within(async {
            let mut conn = self.conn().await?;
            conn.query_drop(SET_MARKS).await?;
            let oldest: Option<Option<i64>> = conn.query_first(OLDEST).await?;
            Ok(oldest.flatten().map(Micros))
        })
        .await
    }
}
