//! Removing what was kept for a while only.

use std::time::Duration;

use mysql_async::prelude::Queryable as _;

use crate::retry::Attempts;
use crate::{Error, Mysql};

/// A like is never touched. The index is named: statistics of a table that has hardly such rows mislead.
const EDGES: &str = "DELETE /*+ INDEX(post_likes oldest_by_state) */ FROM post_likes
     WHERE liked = FALSE AND liked_at < UTC_TIMESTAMP(6) - INTERVAL ? SECOND
     ORDER BY liked_at LIMIT ?";

const RECEIPTS: &str = "DELETE FROM deletions
     WHERE done_at < UTC_TIMESTAMP(6) - INTERVAL ? SECOND ORDER BY done_at LIMIT ?";

const ATTEMPTS: u32 = 8;

impl Mysql {
    /// Removes up to `limit` rows that are not liked and have heard of no request for `retention`: a request
    /// with a lower `seq` that arrives later than that is taken for the first. Answers with how many.
    pub async fn sweep_edges(&self, retention: Duration, limit: u32) -> Result<u64, Error> {
        self.sweep(EDGES, retention, limit).await
    }

    /// Removes up to `limit` receipts of deletions that were done before `retention`.
    pub async fn sweep_receipts(&self, retention: Duration, limit: u32) -> Result<u64, Error> {
        self.sweep(RECEIPTS, retention, limit).await
    }

    async fn sweep(&self, what: &str, retention: Duration, limit: u32) -> Result<u64, Error> {
        self.within(async {
            let mut conn = self.conn().await?;
            let mut attempts = Attempts::new(ATTEMPTS);
            loop {
                match conn.exec_drop(what, (retention.as_secs(), limit)).await {
                    Err(error) if attempts.again(&error) => {}
                    swept => return swept.map(|()| conn.affected_rows()),
                }
            }
        })
        .await
    }
}
