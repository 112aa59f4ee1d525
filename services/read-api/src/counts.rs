//! The counts of posts.

use axum::Json;
use axum::extract::State;
use likewise_core::PostId;
use likewise_mongodb::{Known, ReadError, Reading};
use likewise_serving::{AnyCaller, Id, Kind, Parameters, PostPath, Problem, rfc3339};
use serde::Serialize;
use utoipa::ToSchema;

use crate::ReadApi;
use crate::query::{Batch, Fresh};

/// A post's count. Every like that was committed before `as_of` is in it; later ones may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct CountAnswer {
    #[schema(examples("p1"))]
    pub(crate) post_id: String,
    #[schema(examples(42))]
    pub(crate) count: u64,
    /// On MySQL's clock; null before the first mark.
    #[schema(format = DateTime, examples("2026-11-30T07:52:12.000001Z"))]
    pub(crate) as_of: Option<String>,
    /// The count is in doubt, old, or the last known one while the count store is away.
    pub(crate) stale: bool,
}

/// One of several counts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CountItem {
    #[schema(examples("p1"))]
    post_id: String,
    #[schema(examples(42))]
    count: u64,
}

/// The counts of several posts. Every like that was committed before `as_of` is in each of them.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CountsAnswer {
    /// One for each distinct post, in the order asked.
    items: Vec<CountItem>,
    /// The least of all of them.
    #[schema(format = DateTime, examples("2026-11-30T07:52:12.000001Z"))]
    as_of: Option<String>,
    /// Any of them is in doubt, old, or the last known one while the count store is away.
    stale: bool,
}

/// The count of a post; 0 for one that nobody ever liked.
#[utoipa::path(
    get, path = "/v1/posts/{post_id}/count", tag = "counts",
    params(("post_id" = Id, Path), Fresh),
    responses((status = 200, body = CountAnswer)), security(("bearer" = [])),
)]
pub(crate) async fn count(
    State(api): State<ReadApi>,
    _: AnyCaller,
    PostPath(post): PostPath,
    Parameters(fresh): Parameters<Fresh>,
) -> Result<Json<CountAnswer>, Problem> {
    let asked = fresh.asked(api.reader.recent(), api.min_as_of_wait)?;
    let reading = api.reader.read(std::slice::from_ref(&post), asked).await.map_err(problem)?;
    Ok(Json(answer(&post, &reading)))
}

/// The counts of up to 100 posts; 0 for one that nobody ever liked. A post that is named more than once is
/// answered once.
#[utoipa::path(
    get, path = "/v1/posts/counts", tag = "counts",
    params(Batch),
    responses((status = 200, body = CountsAnswer)), security(("bearer" = [])),
)]
pub(crate) async fn counts(
    State(api): State<ReadApi>,
    _: AnyCaller,
    Parameters(batch): Parameters<Batch>,
) -> Result<Json<CountsAnswer>, Problem> {
    let posts = batch.posts()?;
    let asked = batch.asked(api.reader.recent(), api.min_as_of_wait)?;
    let reading = api.reader.read(&posts, asked).await.map_err(problem)?;
    let item = |(post, known): (&PostId, &Known)| CountItem {
        post_id: post.to_string(),
        count: likes(known),
    };
    Ok(Json(CountsAnswer {
        items: posts.iter().zip(&reading.counts).map(item).collect(),
        as_of: reading.as_of.map(rfc3339),
        stale: reading.stale,
    }))
}

/// The answer about the one post of a reading.
pub(crate) fn answer(post: &PostId, reading: &Reading) -> CountAnswer {
    CountAnswer {
        post_id: post.to_string(),
        count: reading.counts.first().map_or(0, likes),
        as_of: reading.as_of.map(rfc3339),
        stale: reading.stale,
    }
}

pub(crate) fn likes(known: &Known) -> u64 {
    // Below zero only for a moment, between an unlike and its like that come from two servers.
    u64::try_from(known.counted.sum).unwrap_or(0)
}

pub(crate) fn problem(error: ReadError) -> Problem {
    match error {
        ReadError::NoGeneration => Problem::new(Kind::Unavailable, error.to_string()),
        ReadError::Away => Problem::new(
            Kind::Unavailable,
            "the count store is not available; repeat the call later",
        ),
        ReadError::Refused => Problem::failed(),
    }
}
