//! A lock on a row, by which a call can be held up for as long as a test wants.

use std::time::Duration;

use likewise_tests::{eventually, setting};
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;

const LIMIT: Duration = Duration::from_secs(20);

/// Holds an edge's row, so that a write of it waits.
pub(crate) struct Lock {
    holder: Conn,
}

impl Lock {
    pub(crate) async fn of(user: &str, post: &str) -> Self {
        let mut holder = Conn::from_url(setting("MYSQL_URL")).await.expect("it connects");
        holder.query_drop("START TRANSACTION").await.expect("it begins");
        let locking = "UPDATE post_likes SET liked = NOT liked WHERE user_id = ? AND post_id = ?";
        holder.exec_drop(locking, (user, post)).await.expect("it is locked");
        assert_eq!(holder.affected_rows(), 1);
        Self { holder }
    }

    pub(crate) async fn is_waited_for(&self) {
        let mut admin = Conn::from_url(setting("MYSQL_ADMIN_URL")).await.expect("it connects");
        eventually("a write waits", LIMIT, async || {
            let waiting = "SELECT COUNT(*) FROM performance_schema.data_lock_waits WHERE BLOCKING_THREAD_ID = PS_THREAD_ID(?)";
            let waiting = admin.exec_first(waiting, (self.holder.id(),)).await;
            (waiting.expect("it answers") > Some(0_u64)).then_some(())
        })
        .await;
    }

    pub(crate) async fn release(mut self) {
        self.holder.query_drop("ROLLBACK").await.expect("it ends");
    }
}
