//! What a call asks for in its query.

use std::time::{Duration, Instant};

use likewise_core::PostId;
use likewise_mongodb::Asked;
use likewise_serving::{Kind, Problem, parse_rfc3339};
use serde::Deserialize;
use utoipa::IntoParams;

/// How fresh a count must be.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Fresh {
    /// Every like committed before this time must be in the count: the `written_at` that a write answered
    /// with. The answer waits for it a moment; if it does not come, the answer is `stale`.
    #[param(format = DateTime, example = "2026-11-30T07:52:12.000001Z")]
    min_as_of: Option<String>,
}

/// Which posts, and how fresh their counts must be.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Batch {
    /// 1 to 100 post ids, with commas between them. A `+` in an id is written `%2B` here.
    #[param(
        min_length = 1,
        max_length = 6_499,
        example = "p1,p2",
        pattern = r"^(?!\.{1,2}(,|$))[A-Za-z0-9\-._~:@+=]{1,64}(,(?!\.{1,2}(,|$))[A-Za-z0-9\-._~:@+=]{1,64}){0,99}$"
    )]
    ids: String,
    /// Every like committed before this time must be in the counts, as for one count.
    #[param(format = DateTime, example = "2026-11-30T07:52:12.000001Z")]
    min_as_of: Option<String>,
}

/// Which posts of a feed page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FeedIds {
    /// 1 to 50 post ids, with commas between them. A `+` in an id is written `%2B` here.
    #[param(
        min_length = 1,
        max_length = 3_249,
        example = "p1,p2",
        pattern = r"^(?!\.{1,2}(,|$))[A-Za-z0-9\-._~:@+=]{1,64}(,(?!\.{1,2}(,|$))[A-Za-z0-9\-._~:@+=]{1,64}){0,49}$"
    )]
    ids: String,
    /// Every like committed before this time must be in the counts, as for one count.
    #[param(format = DateTime, example = "2026-11-30T07:52:12.000001Z")]
    min_as_of: Option<String>,
}

/// Most ids of a batch.
const BATCH: usize = 100;
/// Most ids of a feed page: each is looked up in MySQL too.
const PAGE: usize = 50;

impl Fresh {
    pub(crate) fn asked(&self, recent: Asked, wait: Duration) -> Result<Asked, Problem> {
        asked(self.min_as_of.as_deref(), recent, wait)
    }
}

impl Batch {
    pub(crate) fn asked(&self, recent: Asked, wait: Duration) -> Result<Asked, Problem> {
        asked(self.min_as_of.as_deref(), recent, wait)
    }

    pub(crate) fn posts(&self) -> Result<Vec<PostId>, Problem> {
        distinct(&self.ids, BATCH)
    }
}

impl FeedIds {
    pub(crate) fn asked(&self, recent: Asked, wait: Duration) -> Result<Asked, Problem> {
        asked(self.min_as_of.as_deref(), recent, wait)
    }

    pub(crate) fn posts(&self) -> Result<Vec<PostId>, Problem> {
        distinct(&self.ids, PAGE)
    }
}

fn asked(min_as_of: Option<&str>, recent: Asked, wait: Duration) -> Result<Asked, Problem> {
    let Some(text) = min_as_of else { return Ok(recent) };
    let malformed = || {
        let detail = "min_as_of must be a time of RFC 3339, as the `written_at` of a write";
        Problem::new(Kind::InvalidQuery, detail)
    };
    let min = parse_rfc3339(text).ok_or_else(malformed)?;
    Ok(recent.including(min, Instant::now() + wait))
}

/// The posts in the order in which they were first named. The limit is one of the elements, so that a
/// caller may know it without looking for repeats.
fn distinct(ids: &str, most: usize) -> Result<Vec<PostId>, Problem> {
    let named = ids.split(',').count();
    if named > most {
        let detail = format!("ids names {named} posts, and may name {most} at most");
        return Err(Problem::new(Kind::InvalidQuery, detail));
    }
    let mut posts = Vec::with_capacity(named);
    for (at, text) in ids.split(',').enumerate() {
        let post = PostId::parse(text).map_err(|error| {
            let detail = format!("element {} of ids, {text:?}, {error}", at + 1);
            Problem::new(Kind::InvalidId, detail)
        })?;
        if !posts.contains(&post) {
            posts.push(post);
        }
    }
    Ok(posts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(ids: &str) -> Result<Vec<String>, String> {
        let posts = distinct(ids, 3).map_err(|problem| format!("{problem:?}"))?;
        Ok(posts.iter().map(ToString::to_string).collect())
    }

    /// P3
    #[test]
    fn each_post_is_named_once_in_the_order_asked_and_a_bad_one_by_its_place() {
        assert_eq!(named("7,82,7").expect("ids"), ["7", "82"]);
        assert!(named("1,1,1,1").expect_err("too many").contains("4 posts"));
        assert!(named("").expect_err("empty").contains("element 1"));
        assert!(named("1,,2").expect_err("empty").contains("element 2 of ids"));
        assert!(named("1,2,").expect_err("empty").contains("element 3 of ids"));
        assert!(named("1,a b").expect_err("a space").contains("a b"));
    }
}
