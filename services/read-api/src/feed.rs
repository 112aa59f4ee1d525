//! Everything that a page of a feed shows of likes, in one call.

use std::collections::HashSet;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use likewise_core::{PostId, UserId};
use likewise_serving::{Id, Parameters, Problem, User, rfc3339};
use serde::Serialize;
use utoipa::ToSchema;

use crate::ReadApi;
use crate::counts::{likes, problem};
use crate::query::FeedIds;

/// How long a page waits for MySQL: its counts are worth more than its hearts.
const PATIENCE: Duration = Duration::from_millis(500);

/// A post of the page.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FeedItem {
    #[schema(examples("p1"))]
    post_id: String,
    #[schema(examples(42))]
    count: u64,
    /// From the truth, so it may be ahead of the count; null while the database is away.
    liked_by_me: Option<bool>,
}

/// The posts of a page. Every like that was committed before `as_of` is in each count.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FeedAnswer {
    /// One for each distinct post, in the order asked.
    items: Vec<FeedItem>,
    /// The least of all of them.
    #[schema(format = DateTime, examples("2026-11-30T07:52:12.000001Z"))]
    as_of: Option<String>,
    /// Any count is in doubt, old, or the last known one while the count store is away.
    stale: bool,
}

/// The counts of up to 50 posts, and whether the user likes each. A post that is named more than once is
/// answered once.
#[utoipa::path(
    get, path = "/v1/posts/likes", tag = "counts",
    params(FeedIds, ("X-User-Id" = Option<Id>, Header)),
    responses((status = 200, body = FeedAnswer)), security(("bearer" = [])),
)]
pub(crate) async fn feed(
    State(api): State<ReadApi>,
    User(user): User,
    Parameters(ids): Parameters<FeedIds>,
) -> Result<Json<FeedAnswer>, Problem> {
    let posts = ids.posts()?;
    let asked = ids.asked(api.reader.recent(), api.min_as_of_wait)?;
    let (reading, liked) = tokio::join!(api.reader.read(&posts, asked), liked(&api, &user, &posts));
    let reading = reading.map_err(problem)?;
    let items = posts.iter().zip(&reading.counts).map(|(post, known)| FeedItem {
        post_id: post.to_string(),
        count: likes(known),
        liked_by_me: liked.as_ref().map(|liked| liked.contains(post)),
    });
    Ok(Json(FeedAnswer {
        items: items.collect(),
        as_of: reading.as_of.map(rfc3339),
        stale: reading.stale,
    }))
}

/// None while MySQL is away.
async fn liked(api: &ReadApi, user: &UserId, posts: &[PostId]) -> Option<HashSet<PostId>> {
    let asked = tokio::time::timeout(PATIENCE, api.mysql.liked_among(user, posts));
    let Ok(answered) = asked.await else {
        tracing::warn!("MySQL did not answer in time for a page");
        return None;
    };
    let warn = |error: &likewise_mysql::Error| {
        let error = error as &dyn std::error::Error;
        tracing::warn!(error, "MySQL did not answer for a page");
    };
    answered.inspect_err(warn).ok()
}
