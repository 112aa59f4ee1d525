//! Lists of likes, a page at a time, each from an index that holds all of it in order.

use likewise_core::{Micros, Place, PostId, UserId};
use mysql_async::prelude::Queryable as _;

use crate::{Error, Mysql};

/// One of the two lists: its index has (of, liked, liked_at, id).
#[derive(Clone, Copy)]
struct List {
    of: &'static str,
    id: &'static str,
    index: &'static str,
}

const LIKES_OF_USER: List = List { of: "user_id", id: "post_id", index: "newest_likes_of_user" };
const LIKERS_OF_POST: List = List { of: "post_id", id: "user_id", index: "newest_likers_of_post" };

impl Mysql {
    /// Up to `limit` posts that the user likes, newest first, from the one behind `after` on.
    pub async fn likes_of_user(
        &self,
        user: &UserId,
        after: Option<&Place>,
        limit: u32,
    ) -> Result<Vec<Place>, Error> {
        self.page(LIKES_OF_USER, user.as_str(), after, limit).await
    }

    /// Up to `limit` users who like the post, newest first, from the one behind `after` on.
    pub async fn likers_of_post(
        &self,
        post: &PostId,
        after: Option<&Place>,
        limit: u32,
    ) -> Result<Vec<Place>, Error> {
        self.page(LIKERS_OF_POST, post.as_str(), after, limit).await
    }

    async fn page(
        &self,
        list: List,
        of: &str,
        after: Option<&Place>,
        limit: u32,
    ) -> Result<Vec<Place>, Error> {
        let place = |(id, at): (String, i64)| Place { liked_at: Micros(at), id: id.into() };
        self.within(async {
            let mut conn = self.conn().await?;
            let statement = self.statement(list, after.is_some());
            match after {
                None => conn.exec_map(statement, (of, limit), place).await,
                Some(Place { liked_at, id }) => {
                    let from = (of, liked_at.0, liked_at.0, id.as_str(), limit);
                    conn.exec_map(statement, from, place).await
                }
            }
        })
        .await
    }

    /// Written so that the server reads the page and nothing else: of `(liked_at, id) < (?, ?)` it would use
    /// no part of the index, and of `liked_at <= ?` it would read every earlier entry of the same time. The
    /// server stops by itself at the deadline, as nothing else ends a query that nobody waits for any more.
    fn statement(&self, List { of, id, index }: List, after: bool) -> String {
        const AT: &str = "'1970-01-01' + INTERVAL ? MICROSECOND";
        let from = if after {
            format!("AND (liked_at < {AT} OR (liked_at = {AT} AND {id} < ?))")
        } else {
            String::new()
        };
        format!(
            "SELECT /*+ MAX_EXECUTION_TIME({}) */ {id}, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', liked_at)
             FROM post_likes FORCE INDEX ({index}) WHERE {of} = ? AND liked = TRUE {from}
             ORDER BY liked_at DESC, {id} DESC LIMIT ?",
            self.deadline().as_millis().max(1)
        )
    }
}
