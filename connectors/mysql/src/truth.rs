//! The truth about every post, for comparison with the counts.

use likewise_core::PostId;
use mysql_async::prelude::Queryable;

use crate::{Error, Mysql};

const LIKES_BY_POST: &str =
    "SELECT post_id, COUNT(*) FROM post_likes FORCE INDEX (newest_likers_of_post)
     WHERE liked GROUP BY post_id ORDER BY post_id";

impl Mysql {
    /// Hands every post that has likes, with their number, to `each`, ordered by the bytes of the
    /// id, from one consistent view. Holds one row in memory at a time.
    pub async fn each_post(&self, mut each: impl AsyncFnMut(PostId, i64)) -> Result<(), Error> {
        let mut conn = self.connection().await?;
        let mut rows = conn.query_iter(LIKES_BY_POST).await?;
        while let Some(row) = rows.next().await? {
            let (post, likes): (String, i64) = mysql_async::from_row_opt(row).map_err(|error| {
                mysql_async::Error::from(mysql_async::DriverError::FromRow { row: error.0 })
            })?;
            each(PostId::from_log(&post), likes).await;
        }
        Ok(())
    }
}
