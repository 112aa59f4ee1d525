//! Who likes a post.

use axum::Json;
use axum::extract::State;
use likewise_core::Place;
use likewise_serving::{AnyCaller, Id, List, Page, Parameters, PostPath, Problem, rfc3339};
use serde::Serialize;
use utoipa::ToSchema;

use crate::ReadApi;

/// A page of the users who like a post, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LikersPage {
    #[schema(max_items = 100)]
    items: Vec<Liker>,
    /// For the next page; null where nothing follows.
    #[schema(examples("AQAGRvEvzLtncDHqHk3o0RMnZPSqU2a4O1P1yNwRWbCSkQ9jZGVmZ2hpamtsbW5vcA"))]
    next_cursor: Option<String>,
}

/// A user who likes the post.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Liker {
    #[schema(max_length = 64, examples("u1"))]
    user_id: String,
    /// RFC 3339 in UTC, on MySQL's clock.
    #[schema(format = DateTime, examples("2026-11-30T07:52:12.000001Z"))]
    liked_at: String,
}

impl From<Place> for Liker {
    fn from(Place { liked_at, id }: Place) -> Self {
        Self { user_id: id.into(), liked_at: rfc3339(liked_at) }
    }
}

/// The users who like a post, newest first, from the truth. A walk through the pages shows no user twice and
/// misses none whose like stands, whatever is liked and taken back meanwhile; a user who likes the post after
/// the first page is not among the later ones.
#[utoipa::path(
    get, path = "/v1/posts/{post_id}/likers", tag = "likers",
    params(("post_id" = Id, Path), Page),
    responses((status = 200, body = LikersPage)), security(("bearer" = [])),
)]
pub(crate) async fn likers(
    State(api): State<ReadApi>,
    _: AnyCaller,
    PostPath(post): PostPath,
    Parameters(page): Parameters<Page>,
) -> Result<Json<LikersPage>, Problem> {
    let list = List::LikersOfPost(post.as_str());
    let read = async |after: Option<Place>, limit| {
        api.mysql.likers_of_post(&post, after.as_ref(), limit).await
    };
    let (found, next_cursor) = page.of(&api.cursors, list, read).await?;
    Ok(Json(LikersPage { items: found.into_iter().map(Liker::from).collect(), next_cursor }))
}
