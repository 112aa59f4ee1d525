//! The truth, asked from MySQL: after a drain every count equals it.

use mysql_async::prelude::Queryable as _;
use mysql_async::{Pool, params};

use crate::{Api, drain, setting};

/// Knows the truth about every post.
pub struct Oracle {
    mysql: Pool,
    api: Api,
}

impl Oracle {
    /// Outside of the application: with its account, and no code of its own.
    pub fn new() -> Self {
        Self { mysql: Pool::new(setting("MYSQL_URL").as_str()), api: Api::new() }
    }

    /// A connection to the truth.
    pub async fn mysql(&self) -> mysql_async::Conn {
        self.mysql.get_conn().await.expect("MySQL answers")
    }

    /// How many users like the post.
    pub async fn likes(&self, post: &str) -> u64 {
        let mut conn = self.mysql().await;
        let likes: Option<u64> = conn
            .exec_first(
                "SELECT COUNT(*) FROM post_likes WHERE post_id = :post AND liked",
                params! { "post" => post },
            )
            .await
            .expect("MySQL counts");
        likes.expect("an aggregate has one row")
    }

    /// Drains, and compares the count of each post with the truth. Answers with the counts.
    pub async fn agrees(&self, posts: &[&str]) -> Vec<u64> {
        let mark = drain().await;
        let mut counts = Vec::new();
        for post in posts {
            let answer = self.api.count_since(post, &mark).await;
            let count = answer.json["count"].as_u64();
            let count = count.unwrap_or_else(|| panic!("no count of {post}: {answer:?}"));
            assert_eq!(count, self.likes(post).await, "count of {post}");
            assert_eq!(answer.json["stale"], false, "{answer:?}");
            counts.push(count);
        }
        counts
    }
}

impl Default for Oracle {
    fn default() -> Self {
        Self::new()
    }
}
