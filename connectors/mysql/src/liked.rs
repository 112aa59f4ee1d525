//! Which of many posts a user likes.

use std::collections::HashSet;

use likewise_core::{PostId, UserId};
use mysql_async::Params;
use mysql_async::prelude::Queryable as _;

use crate::{Error, Mysql};

/// How many posts one statement asks for. Fewer repeat one of theirs, so that a connection keeps one
/// prepared statement and not one for each number.
const AT_ONCE: usize = 50;

impl Mysql {
    /// Those of the posts that the user likes. One query for up to 50 posts.
    pub async fn liked_among(
        &self,
        user: &UserId,
        posts: &[PostId],
    ) -> Result<HashSet<PostId>, Error> {
        let places = vec!["?"; AT_ONCE].join(", ");
        let statement = format!(
            "SELECT post_id FROM post_likes WHERE user_id = ? AND liked AND post_id IN ({places})"
        );
        self.within(async {
            let mut conn = self.conn().await?;
            let mut liked = HashSet::new();
            for posts in posts.chunks(AT_ONCE) {
                let last = posts.last().expect("a chunk is not empty");
                let repeated = std::iter::repeat_n(last, AT_ONCE - posts.len());
                let ids = posts.iter().chain(repeated).map(PostId::as_str);
                let values = std::iter::once(user.as_str()).chain(ids).map(Into::into).collect();
                let found: Vec<String> =
                    conn.exec(statement.as_str(), Params::Positional(values)).await?;
                liked.extend(found.iter().map(|post| PostId::from_log(post)));
            }
            Ok(liked)
        })
        .await
    }
}
