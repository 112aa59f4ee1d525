//! Deleting all likes of a user or of a post, in chunks, with a receipt.
//!
//! The row of a receipt is the claim on its work: a chunk is one transaction that locks it, deletes, and adds
//! to its number. Whoever dies in it leaves nothing half done, and the lock ends with the connection.

use std::time::Duration;

use likewise_core::{Micros, PostId, UserId};
use mysql_async::prelude::{FromRow, Queryable};
use mysql_async::{Conn, Error as Driver, FromRowError, Row, TxOpts};

use crate::pool::within;
use crate::retry::Attempts;
use crate::{Error, Mysql};

/// Whose likes are deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// All likes of a user, whose account is gone.
    User(UserId),
    /// All likes of a post that is gone.
    Post(PostId),
}

/// What is known of a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Its name, given by whoever asked first.
    pub id: String,
    /// Whose likes.
    pub subject: Subject,
    /// How many were deleted so far.
    pub edges: u64,
    /// MySQL's clock when it was asked for.
    pub requested_at: Micros,
    /// MySQL's clock after the last chunk's commit: a count whose `as_of` is not before it is without them.
    /// None while it is open.
    pub done_at: Option<Micros>,
}

/// One chunk of one deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// How many likes it deleted.
    pub edges: u64,
    /// Whether it found nothing more, which ends the deletion.
    pub done: bool,
}

/// A connection of its own for the work: nobody else waits behind a chunk.
pub struct Deleting {
    conn: Conn,
    deadline: Duration,
}

const ATTEMPTS: u32 = 8;

/// Of a process that stands still in the middle of a chunk the server ends the connection, and its locks.
const LEASE: &str = "SET SESSION wait_timeout = ?";

/// While one is open, whoever asks again gets it: every edge that exists now is deleted by a chunk to come,
/// for the last one finds none, under the lock that this statement waits for.
const ASK: &str = "INSERT INTO deletions (id, kind, subject, requested_at, worked_at)
     VALUES (?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
     ON DUPLICATE KEY UPDATE requested_at = deletions.requested_at";

const RECEIPT: &str = "SELECT id, kind, subject, edges,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', requested_at) AS requested_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', done_at) AS done_at
     FROM deletions";

const OPEN: &str = "SELECT EXISTS (SELECT 1 FROM deletions WHERE still_open = TRUE)";

/// The one that was worked on least lately, of those that nobody works on.
const CLAIM: &str = "SELECT id, kind, subject FROM deletions WHERE still_open = TRUE
     ORDER BY worked_at LIMIT 1 FOR UPDATE SKIP LOCKED";

/// Likes first, as their number is told; then rows that only remember a `seq`.
const LIKES_OF_USER: &str = "DELETE /*+ INDEX(post_likes newest_likes_of_user) */ FROM post_likes
     WHERE user_id = ? AND liked <> FALSE ORDER BY liked, liked_at, post_id LIMIT ?";
const REST_OF_USER: &str = "DELETE /*+ INDEX(post_likes newest_likes_of_user) */ FROM post_likes
     WHERE user_id = ? AND liked = FALSE ORDER BY liked_at, post_id LIMIT ?";
const LIKES_OF_POST: &str = "DELETE /*+ INDEX(post_likes newest_likers_of_post) */ FROM post_likes
     WHERE post_id = ? AND liked <> FALSE ORDER BY liked, liked_at, user_id LIMIT ?";
const REST_OF_POST: &str = "DELETE /*+ INDEX(post_likes newest_likers_of_post) */ FROM post_likes
     WHERE post_id = ? AND liked = FALSE ORDER BY liked_at, user_id LIMIT ?";

/// What was deleted was committed by earlier chunks, so the clock is read after it, and never before a mark
/// that was committed earlier.
const DONE: &str = "UPDATE deletions SET worked_at = UTC_TIMESTAMP(6), done_at = (
       SELECT GREATEST(UTC_TIMESTAMP(6), COALESCE(MAX(at) + INTERVAL 1 MICROSECOND, UTC_TIMESTAMP(6)))
       FROM partition_marks)
     WHERE id = ?";

const ADD: &str =
    "UPDATE deletions SET worked_at = UTC_TIMESTAMP(6), edges = edges + ? WHERE id = ?";

impl Subject {
    fn kind(&self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Post(_) => "post",
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::User(user) => user.as_str(),
            Self::Post(post) => post.as_str(),
        }
    }

    fn read(kind: &str, text: &str) -> Self {
        if kind == "user" {
            Self::User(UserId::from_log(text))
        } else {
            Self::Post(PostId::from_log(text))
        }
    }
}

impl FromRow for Receipt {
    fn from_row_opt(row: Row) -> Result<Self, FromRowError> {
        type Columns = (String, String, String, u64, i64, Option<i64>);
        let (id, kind, subject, edges, requested_at, done_at) = Columns::from_row_opt(row)?;
        Ok(Self {
            id,
            subject: Subject::read(&kind, &subject),
            edges,
            requested_at: Micros(requested_at),
            done_at: done_at.map(Micros),
        })
    }
}

impl Mysql {
    /// Asks for a deletion under a new id. While one of the same subject is open, that one is the answer.
    /// Every edge that exists now is covered; one that is made later is deleted or stands.
    pub async fn ask_deletion(&self, id: &str, subject: &Subject) -> Result<Receipt, Error> {
        let (kind, text) = (subject.kind(), subject.as_str());
        let newest = format!(
            "{RECEIPT} WHERE kind = ? AND subject = ? ORDER BY id = ? DESC, requested_at DESC LIMIT 1"
        );
        let found: Option<Receipt> = self
            .within(async {
                let mut conn = self.conn().await?;
                let mut attempts = Attempts::new(ATTEMPTS);
                loop {
                    match conn.exec_drop(ASK, (id, kind, text)).await {
                        Err(error) if attempts.again(&error) => {}
                        asked => break asked?,
                    }
                }
                conn.exec_first(&newest, (kind, text, id)).await
            })
            .await?;
        Ok(found.expect("the row was inserted, or is the one that was in the way"))
    }

    /// A deletion by its id; none where there was none, or its receipt was swept.
    pub async fn deletion(&self, id: &str) -> Result<Option<Receipt>, Error> {
        self.within(async {
            let mut conn = self.conn().await?;
            conn.exec_first(format!("{RECEIPT} WHERE id = ?"), (id,)).await
        })
        .await
    }

    /// Whether any deletion is open, worked on or not.
    pub async fn has_open_deletion(&self) -> Result<bool, Error> {
        self.within(async {
            let mut conn = self.conn().await?;
            Ok(conn.query_first(OPEN).await?.unwrap_or(false))
        })
        .await
    }

    /// A connection to work deletions off with. The server ends it where it hears nothing for `lease`, of
    /// whole seconds and at least one: whoever stands still so long has lost its claim.
    pub async fn deleting(&self, lease: Duration) -> Result<Deleting, Error> {
        let deadline = self.deadline();
        let open = async {
            let mut conn = self.unpooled().await?;
            conn.exec_drop(LEASE, (lease.as_secs().max(1),)).await?;
            Ok(conn)
        };
        Ok(Deleting { conn: self.within(open).await?, deadline })
    }
}

impl Deleting {
    /// Deletes up to `size` likes, or the rest of the rows, of one open deletion that nobody else works on;
    /// none where there is none. After an error the connection is of no more use.
    pub async fn chunk(&mut self, size: u32) -> Result<Option<Chunk>, Error> {
        within(self.deadline, async {
            let mut attempts = Attempts::new(ATTEMPTS);
            loop {
                // What was left of a transaction is rolled back before the next one begins.
                match chunk(&mut self.conn, size).await {
                    Err(error) if attempts.again(&error) => {}
                    outcome => return outcome,
                }
            }
        })
        .await
    }
}

async fn chunk(conn: &mut Conn, size: u32) -> Result<Option<Chunk>, Driver> {
    let mut transaction = conn.start_transaction(TxOpts::default()).await?;
    let claimed: Option<(String, String, String)> = transaction.query_first(CLAIM).await?;
    let Some((id, kind, subject)) = claimed else {
        transaction.commit().await?;
        return Ok(None);
    };
    let (likes, rest) = match kind.as_str() {
        "user" => (LIKES_OF_USER, REST_OF_USER),
        _ => (LIKES_OF_POST, REST_OF_POST),
    };
    transaction.exec_drop(likes, (&subject, size)).await?;
    let edges = transaction.affected_rows();
    let mut done = false;
    if edges == 0 {
        transaction.exec_drop(rest, (&subject, size)).await?;
        done = transaction.affected_rows() == 0;
    }
    if done {
        transaction.exec_drop(DONE, (&id,)).await?;
    } else {
        transaction.exec_drop(ADD, (edges, &id)).await?;
    }
    transaction.commit().await?;
    Ok(Some(Chunk { edges, done }))
}
