//! Edges: who likes what.

use likewise_core::{Micros, PostId, Seq, UserId};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error as Driver};

use crate::committed::Committed;
use crate::retry::Attempts;
use crate::{Error, Gtid, Mysql};

/// The outcome of a like or an unlike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Whether the user likes the post after the call.
    pub liked: bool,
    /// Whether this call flipped it. Exact under concurrency: of many equal calls one has it.
    pub changed: bool,
    /// MySQL's clock after the commit: a count whose `as_of` is not before it includes the edge.
    pub written_at: Micros,
    /// The transaction that flipped it, where this call did and MySQL tells.
    pub transaction: Option<Gtid>,
    /// Since when the edge was as the call found it, as its row said. None where there was no row, or the
    /// call was an unlike without a `seq` that changed nothing.
    pub found_since: Option<Micros>,
}

/// How often a statement is run that meets deadlocks.
const ATTEMPTS: u32 = 8;

/// Sets the edge, where the request's `seq` or the row's is missing or the request's is the higher.
/// `LAST_INSERT_ID(…)` carries out what the row was when its lock was taken: 4, +2 where the request
/// applies, +1 where it was liked, [`decided`] reads it; and above these three bits since when. Assignments run from left to right and `seq` is the
/// last, so each sees the row as it was. What changes nothing writes no row and no binlog event. The time of
/// a row that is not liked is that of the last request it heard of: by it the row is kept. The alias `new`
/// needs MySQL 8.0.19.
const SET: &str = "INSERT INTO post_likes (user_id, post_id, liked, seq, liked_at)
     VALUES (?, ?, ?, ?, UTC_TIMESTAMP(6)) AS new
     ON DUPLICATE KEY UPDATE
       liked_at = CASE LAST_INSERT_ID(
           8 * GREATEST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', post_likes.liked_at), 0)
           + 4 + 2 * COALESCE(new.seq > post_likes.seq, TRUE) + (post_likes.liked <> FALSE)) & 7
         WHEN 6 THEN new.liked_at
         WHEN 7 THEN IF(new.liked, post_likes.liked_at, new.liked_at)
         ELSE post_likes.liked_at END,
       liked = IF(COALESCE(new.seq > post_likes.seq, TRUE), new.liked, post_likes.liked),
       seq = COALESCE(GREATEST(new.seq, post_likes.seq), new.seq, post_likes.seq)";

/// Without a `seq` on either side there is nothing to remember. The last condition always holds, and carries
/// out since when the row was liked.
const UNLIKE: &str = "DELETE FROM post_likes
     WHERE user_id = ? AND post_id = ? AND liked AND seq IS NULL AND LAST_INSERT_ID(
       8 * GREATEST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', liked_at), 0) + 7) > 0";

/// A row that carries a `seq` stays, so that an older request that arrives late cannot win.
const UNLIKE_NUMBERED: &str = "UPDATE post_likes SET liked = FALSE, liked_at = UTC_TIMESTAMP(6)
     WHERE user_id = ? AND post_id = ? AND liked AND seq IS NOT NULL AND LAST_INSERT_ID(
       8 * GREATEST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', liked_at), 0) + 7) > 0";

const LIKED: &str = "SELECT liked FROM post_likes WHERE user_id = ? AND post_id = ?";

impl Mysql {
    /// Makes the user like the post. A repeat changes nothing, nor does a `seq` that is not above the
    /// highest that the edge has seen. Without one the last to arrive wins.
    pub async fn like(
        &self,
        user: &UserId,
        post: &PostId,
        seq: Option<Seq>,
    ) -> Result<Written, Error> {
        self.write(true, user, post, seq).await
    }

    /// Makes the user not like the post; the rules are those of [`Mysql::like`]. The edge's `seq` is
    /// remembered until the row is swept.
    pub async fn unlike(
        &self,
        user: &UserId,
        post: &PostId,
        seq: Option<Seq>,
    ) -> Result<Written, Error> {
        self.write(false, user, post, seq).await
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
    async fn write(
        &self,
        like: bool,
        user: &UserId,
        post: &PostId,
        seq: Option<Seq>,
    ) -> Result<Written, Error> {
        let edge = (user.as_str(), post.as_str());
        self.within(async {
            let mut conn = self.conn().await?;
            let mut attempts = Attempts::new(ATTEMPTS);
            let Decided { liked, changed, had_row } = loop {
                match decide(&mut conn, edge, like, seq).await {
                    Err(error) if attempts.again(&error) => {}
                    decided => break decided?,
                }
            };
            let Committed { at, transaction, told } = self.committed(&mut conn, changed).await?;
            let since = || Micros(i64::try_from(told >> 3).unwrap_or(i64::MAX));
            let found_since = had_row.then(since);
            Ok(Written { liked, changed, written_at: at, transaction, found_since })
        })
        .await
    }
}

/// What a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decided {
    /// Whether the edge is liked now.
    liked: bool,
    /// Whether this call flipped it.
    changed: bool,
    /// Whether the edge had a row before, which `LAST_INSERT_ID()` tells of.
    had_row: bool,
}

async fn decide(
    conn: &mut Conn,
    (user, post): (&str, &str),
    like: bool,
    seq: Option<Seq>,
) -> Result<Decided, Driver> {
    if !like && seq.is_none() {
        return unlike(conn, (user, post)).await;
    }
    conn.exec_drop(SET, (user, post, like, seq.map(Seq::get))).await?;
    Ok(decided(like, conn.affected_rows(), conn.last_insert_id().unwrap_or_default()))
}

/// Reads what [`SET`] came to. One affected row is a new one, whatever else the session remembers.
fn decided(like: bool, affected_rows: u64, told: u64) -> Decided {
    if affected_rows == 1 {
        return Decided { liked: like, changed: like, had_row: false };
    }
    let (applied, was) = (told & 2 != 0, told & 1 != 0);
    let liked = if applied { like } else { was };
    Decided { liked, changed: liked != was, had_row: true }
}

/// Where neither statement finds a row there was a moment between them at which the edge was not liked: only
/// a deletion makes a numbered row one without a number.
async fn unlike(conn: &mut Conn, edge: (&str, &str)) -> Result<Decided, Driver> {
    let mut changed = false;
    for statement in [UNLIKE, UNLIKE_NUMBERED] {
        if !changed {
            conn.exec_drop(statement, edge).await?;
            changed = conn.affected_rows() > 0;
        }
    }
    Ok(Decided { liked: false, changed, had_row: changed })
}
