//! The count of a post.

use axum::Json;
use axum::extract::State;
use likewise_core::partition_of;
use likewise_mongodb::Error;
use likewise_serving::{AnyCaller, Id, Kind, NoQuery, PostPath, Problem, now, rfc3339};
use serde::Serialize;
use utoipa::ToSchema;

use crate::ReadApi;
use crate::live::{self, Readable};

/// A post's count. Every like that was committed before `as_of` is in it; later ones may be.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CountAnswer {
    post_id: String,
    count: u64,
    as_of: Option<String>,
    /// The count is in doubt, or old.
    stale: bool,
}

/// The count of a post.
#[utoipa::path(
    get, path = "/v1/posts/{post_id}/count", tag = "counts",
    params(("post_id" = Id, Path)),
    responses((status = 200, body = CountAnswer)), security(("bearer" = [])),
)]
pub(crate) async fn count(
    State(api): State<ReadApi>,
    _: AnyCaller,
    PostPath(post): PostPath,
    _: NoQuery,
) -> Result<Json<CountAnswer>, Problem> {
    let readable = *api.live.borrow();
    let readable = readable.ok_or_else(|| Problem::new(Kind::Unavailable, live::NO_GENERATION))?;
    let Readable { live, in_doubt } = readable;
    let partition = partition_of(post.as_str(), live.partitions);
    // In this order: the count is never older than the `as_of` beside it.
    let as_of = api.store.as_of(live.generation, &api.topic, partition).await.map_err(problem)?;
    let counted = api.store.count(live.generation, &post).await.map_err(problem)?;
    Ok(Json(CountAnswer {
        post_id: post.to_string(),
        // Below zero only for a moment, between an unlike and its like that come from two servers.
        count: u64::try_from(counted.sum).unwrap_or(0),
        as_of: as_of.map(rfc3339),
        stale: in_doubt || counted.repair || api.is_old(as_of, now()),
    }))
}

fn problem(error: Error) -> Problem {
    if error.is_transient() {
        tracing::warn!(error = &error as &dyn std::error::Error, "MongoDB is away");
        Problem::new(Kind::Unavailable, "the count store is not available; repeat the call later")
    } else {
        tracing::error!(error = &error as &dyn std::error::Error, "MongoDB refused a command");
        Problem::new(Kind::Internal, "the call failed; it may be repeated")
    }
}
