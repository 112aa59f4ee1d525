//! Edges: who likes what.

use likewise_core::{Micros, PostId, UserId};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error as Driver};

use crate::error::is_conflict;
use crate::{Error, Mysql};

/// The outcome of a like or an unlike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Whether the user likes the post after the call.
    pub liked: bool,
    /// Whether this call flipped it. Exact under concurrency: of many equal calls one has it.
    pub changed: bool,
    /// MySQL's clock after the commit: a count whose `as_of` is not before it includes the edge.
    pub written_at: Micros,
}

/// How often a statement is run that meets deadlocks.
const ATTEMPTS: u32 = 8;

/// The alias `new` needs MySQL 8.0.19; a repeat changes no row and writes no binlog event.
const LIKE: &str = "INSERT INTO post_likes (user_id, post_id, liked, liked_at)
     VALUES (?, ?, TRUE, UTC_TIMESTAMP(6)) AS new
     ON DUPLICATE KEY UPDATE
       liked_at = IF(post_likes.liked, post_likes.liked_at, new.liked_at), liked = TRUE";

const UNLIKE: &str =
    "DELETE FROM post_likes WHERE user_id = ? AND post_id = ? AND liked AND seq IS NULL";

/// A row that carries a `seq` stays, so that an older request that arrives late cannot win.
const UNLIKE_NUMBERED: &str = "UPDATE post_likes SET liked = FALSE
     WHERE user_id = ? AND post_id = ? AND liked AND seq IS NOT NULL";

/// Never before a mark that was committed earlier, also when the clock was set back.
const WRITTEN_AT: &str = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01',
       GREATEST(UTC_TIMESTAMP(6), COALESCE(MAX(at) + INTERVAL 1 MICROSECOND, UTC_TIMESTAMP(6))))
     FROM partition_marks";

const LIKED: &str = "SELECT liked FROM post_likes WHERE user_id = ? AND post_id = ?";

impl Mysql {
    /// Makes the user like the post. A repeat changes nothing.
    pub async fn like(&self, user: &UserId, post: &PostId) -> Result<Written, Error> {
        self.write(Wish::Like, user, post).await
    }

    /// Makes the user not like the post. A repeat changes nothing.
    pub async fn unlike(&self, user: &UserId, post: &PostId) -> Result<Written, Error> {
        self.write(Wish::Unlike, user, post).await
    }

    /// Whether the user likes the post.
    pub async fn liked(&self, user: &UserId, post: &PostId) -> Result<bool, Error> {
        self.within(async {
            let mut conn = self.conn().await?;
            let liked = conn.exec_first(LIKED, (user.as_str(), post.as_str())).await?;
            Ok(liked.unwrap_or(false))
        })
        .await
    }

    /// Decides in one statement, and reads the clock after its commit.
    async fn write(&self, wish: Wish, user: &UserId, post: &PostId) -> Result<Written, Error> {
        self.within(async {
            let mut conn = self.conn().await?;
            let changed = decide(&mut conn, wish, (user.as_str(), post.as_str())).await?;
            let written_at: Option<i64> = conn.query_first(WRITTEN_AT).await?;
            let written_at = Micros(written_at.expect("an aggregate has one row"));
            Ok(Written { liked: wish == Wish::Like, changed, written_at })
        })
        .await
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Like,
    Unlike,
}

/// Runs the deciding statement, again where it was chosen as a deadlock's victim.
async fn decide(conn: &mut Conn, wish: Wish, edge: (&str, &str)) -> Result<bool, Driver> {
    let mut attempt = 1;
    loop {
        let decided = match wish {
            Wish::Like => change(conn, LIKE, edge).await,
            Wish::Unlike => match change(conn, UNLIKE, edge).await {
                Ok(false) => change(conn, UNLIKE_NUMBERED, edge).await,
                decided => decided,
            },
        };
        match decided {
            Err(error) if attempt < ATTEMPTS && is_conflict(&error) => {
                tracing::debug!(%error, attempt, "a statement met a deadlock and is run again");
                attempt += 1;
            }
            decided => return decided,
        }
    }
}

/// Whether the statement changed a row.
async fn change(conn: &mut Conn, statement: &str, edge: (&str, &str)) -> Result<bool, Driver> {
    conn.exec_drop(statement, edge).await?;
    Ok(conn.affected_rows() > 0)
}
