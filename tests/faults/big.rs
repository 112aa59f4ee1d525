//! Large transactions by plain SQL, past the write API: what imports and clean-ups do.

use likewise_tests::setting;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Opts};
use rand::RngExt as _;
use tokio::task::JoinHandle;

use crate::scene::Scene;

/// How many posts the rows of a transaction are about.
const POSTS: u64 = 50;

const LIKES: &str = "INSERT INTO post_likes (user_id, post_id, liked, liked_at)
     WITH RECURSIVE rows_of_it AS
       (SELECT 0 AS n UNION ALL SELECT n + 1 FROM rows_of_it WHERE n + 1 < ?)
     SELECT CONCAT('import-', n), CONCAT(?, n % ?), TRUE, UTC_TIMESTAMP(6) FROM rows_of_it";

const NO_LIKES: &str = "DELETE FROM post_likes WHERE post_id BETWEEN ? AND ?";

/// Rows that one transaction writes, on posts of the scene's load that are its own.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    posts: String,
    pub(crate) rows: u64,
}

impl Rows {
    /// So many, that nobody has written yet.
    pub(crate) fn new(scene: &mut Scene, rows: u64) -> Self {
        let number: u32 = scene.rng.random();
        Self { posts: format!("{}-import-{number}-", scene.load.prefix()), rows }
    }

    /// Likes all of them, in a task of its own. An error may come after the commit.
    pub(crate) fn insert(&self) -> JoinHandle<Result<(), Error>> {
        let Self { posts, rows } = self.clone();
        tokio::spawn(async move {
            let mut conn = connection().await?;
            conn.query_drop("SET SESSION cte_max_recursion_depth = 10000000").await?;
            conn.exec_drop(LIKES, (rows, posts, POSTS)).await
        })
    }

    /// Deletes all of them, in a task of its own. An error may come after the commit.
    pub(crate) fn delete(&self) -> JoinHandle<Result<(), Error>> {
        let posts = self.posts.clone();
        tokio::spawn(async move {
            let mut conn = connection().await?;
            conn.exec_drop(NO_LIKES, (&posts, format!("{posts}~"))).await
        })
    }
}

/// The application's own account.
async fn connection() -> Result<Conn, Error> {
    Conn::new(Opts::from_url(&setting("MYSQL_URL")).expect("an address")).await
}

/// Waits until the log has grown by `rows` since it had `before`, for as long as the oracle waits for a
/// drain: what readers of committed records see stands still while a transaction is open. How much it has
/// grown.
pub(crate) async fn grown(scene: &Scene, before: u64, rows: u64) -> u64 {
    likewise_tests::eventually("the log grows", std::time::Duration::from_secs(240), async || {
        let grown = scene.progress.length().await?.saturating_sub(before);
        (grown >= rows).then_some(grown)
    })
    .await
}
