//! Liking and unliking.

use axum::Json;
use axum::extract::State;
use likewise_core::{PostId, Seq, UserId};
use likewise_serving::{Id, NoQuery, Parameters, PostPath, Problem, User, rfc3339};
use serde::Serialize;
use utoipa::ToSchema;

use crate::WriteApi;
use crate::own_count::OwnCount;
use crate::seq::Numbered;

/// The answer to a like or an unlike.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WriteAnswer {
    post_id: String,
    /// The state after the call.
    liked: bool,
    /// Whether this call flipped it.
    changed: bool,
    /// The post's count, which includes this call and every like that was committed before `as_of`; null
    /// where it could not be read.
    #[schema(examples(42))]
    count: Option<u64>,
    /// That of the count.
    #[schema(format = DateTime, examples("2026-11-30T07:52:12.000001Z"))]
    as_of: Option<String>,
    /// The count is old, in doubt, or may not include this call.
    stale: bool,
    /// MySQL's clock after the commit.
    written_at: String,
}

/// Whether a user likes a post.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LikedAnswer {
    post_id: String,
    liked: bool,
}

/// Like a post. A repeat changes nothing, nor does a request that arrives after one with a higher `seq`.
#[utoipa::path(
    put, path = "/v1/posts/{post_id}/like", tag = "likes",
    params(("post_id" = Id, Path), ("X-User-Id" = Option<Id>, Header), Numbered),
    responses((status = 200, body = WriteAnswer)), security(("bearer" = [])),
)]
pub(crate) async fn like(
    State(api): State<WriteApi>,
    User(user): User,
    PostPath(post): PostPath,
    Parameters(Numbered { seq }): Parameters<Numbered>,
) -> Result<Json<WriteAnswer>, Problem> {
    write(api, user, post, true, seq).await
}

/// Take a like back. A repeat changes nothing, nor does a request that arrives after one with a higher `seq`.
#[utoipa::path(
    delete, path = "/v1/posts/{post_id}/like", tag = "likes",
    params(("post_id" = Id, Path), ("X-User-Id" = Option<Id>, Header), Numbered),
    responses((status = 200, body = WriteAnswer)), security(("bearer" = [])),
)]
pub(crate) async fn unlike(
    State(api): State<WriteApi>,
    User(user): User,
    PostPath(post): PostPath,
    Parameters(Numbered { seq }): Parameters<Numbered>,
) -> Result<Json<WriteAnswer>, Problem> {
    write(api, user, post, false, seq).await
}

/// Whether the user likes the post, from the truth.
#[utoipa::path(
    get, path = "/v1/posts/{post_id}/like", tag = "likes",
    params(("post_id" = Id, Path), ("X-User-Id" = Option<Id>, Header)),
    responses((status = 200, body = LikedAnswer)), security(("bearer" = [])),
)]
pub(crate) async fn liked(
    State(api): State<WriteApi>,
    User(user): User,
    PostPath(post): PostPath,
    _: NoQuery,
) -> Result<Json<LikedAnswer>, Problem> {
    let liked = api.mysql.liked(&user, &post).await?;
    Ok(Json(LikedAnswer { post_id: post.to_string(), liked }))
}

/// In a task of its own: a caller that hangs up takes neither the write nor what is known of it along.
async fn write(
    api: WriteApi,
    user: UserId,
    post: PostId,
    like: bool,
    seq: Option<Seq>,
) -> Result<Json<WriteAnswer>, Problem> {
    let written = tokio::spawn(async move { answer(&api, &user, &post, like, seq).await });
    let failed = |_| Problem::failed();
    written.await.map_err(failed)?
}

async fn answer(
    api: &WriteApi,
    user: &UserId,
    post: &PostId,
    like: bool,
    seq: Option<Seq>,
) -> Result<Json<WriteAnswer>, Problem> {
    let writing = api.counts.begin(user, post);
    let written = match like {
        true => api.mysql.like(user, post, seq).await,
        false => api.mysql.unlike(user, post, seq).await,
    };
    // A write whose outcome is unknown may have taken effect: it needs a mark as well.
    api.written.notify_one();
    let written = match written {
        Ok(written) => written,
        Err(error) => {
            writing.outcome_unknown();
            return Err(error.into());
        }
    };
    metrics::counter!("likewise_writes_total", "changed" => if written.changed { "true" } else { "false" })
        .increment(1);
    let OwnCount { count, as_of, stale } = api.counts.of(writing, &written).await;
    Ok(Json(WriteAnswer {
        post_id: post.to_string(),
        liked: written.liked,
        changed: written.changed,
        count,
        as_of: as_of.map(rfc3339),
        stale,
        written_at: rfc3339(written.written_at),
    }))
}
