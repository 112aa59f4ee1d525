//! Recounts: the absolute truth about one post, written so that it stands in the binlog exactly
//! where it is true.

use std::time::Duration;

use likewise_core::PostId;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error as Driver};

use crate::pool::within;
use crate::retry::Attempts;
use crate::{Error, Mysql};

/// For the next transaction alone. In this level `INSERT … SELECT` takes shared next-key locks on the
/// post's range of the index: no like of it commits between the count and the recount row.
const LOCKING: &str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";

/// A fresh nonce makes every recount a row change; 0 is a truth too.
const RECOUNT: &str = "INSERT INTO post_recounts (post_id, likes, nonce, requested_at)
     SELECT * FROM (
       SELECT ? AS post_id, COUNT(*) AS likes, UUID_TO_BIN(UUID()) AS nonce, UTC_TIMESTAMP(6) AS requested_at
       FROM post_likes FORCE INDEX (newest_likers_of_post) WHERE post_id = ? AND liked
     ) AS new
     ON DUPLICATE KEY UPDATE
       likes = new.likes, nonce = UUID_TO_BIN(UUID()), requested_at = new.requested_at";

/// A post of some million likes takes seconds to count.
const DEADLINE: Duration = Duration::from_secs(60);

/// How often a recount is run that meets deadlocks with likes.
const ATTEMPTS: u32 = 20;

const POSTS: &str = "SELECT DISTINCT post_id FROM post_likes FORCE INDEX (newest_likers_of_post)
     ORDER BY post_id";

impl Mysql {
    /// Writes a recount of the post. Likes of the post wait while it counts. Takes a minute at most.
    pub async fn recount(&self, post: &PostId) -> Result<(), Error> {
        within(DEADLINE, async {
            let mut conn = self.conn().await?;
            let mut attempts = Attempts::new(ATTEMPTS);
            loop {
                match recount(&mut conn, post).await {
                    Err(error) if attempts.again(&error) => {}
                    outcome => return outcome,
                }
            }
        })
        .await
    }

    /// Hands every post that has a row to `each`, ordered by the bytes of the id. Holds one row in memory
    /// at a time.
    pub async fn each_known_post(&self, mut each: impl AsyncFnMut(PostId)) -> Result<(), Error> {
        let mut conn = self.connection().await?;
        let mut rows = conn.query_iter(POSTS).await?;
        while let Some(row) = rows.next().await? {
            let post: String = mysql_async::from_row(row);
            each(PostId::from_log(&post)).await;
        }
        Ok(())
    }
}

async fn recount(conn: &mut Conn, post: &PostId) -> Result<(), Driver> {
    conn.query_drop(LOCKING).await?;
    conn.exec_drop(RECOUNT, (post.as_str(), post.as_str())).await
}
