//! What a user likes.

use axum::Json;
use axum::extract::State;
use likewise_core::{Place, UserId};
use likewise_serving::{
    Caller, Id, Kind, List, Page, Parameters, Problem, ProblemBody, UserPath, rfc3339,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::WriteApi;

/// A page of the posts that a user likes, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LikesPage {
    #[schema(max_items = 100)]
    items: Vec<Like>,
    /// For the next page; null where nothing follows.
    #[schema(examples("AQAGRvEvzLtncDHqHk3o0RMnZPSqU2a4O1P1yNwRWbCSkQ9jZGVmZ2hpamtsbW5vcA"))]
    next_cursor: Option<String>,
}

/// A post that the user likes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Like {
    #[schema(max_length = 64, examples("p1"))]
    post_id: String,
    /// RFC 3339 in UTC, on MySQL's clock.
    #[schema(format = DateTime, examples("2026-11-30T07:52:12.000001Z"))]
    liked_at: String,
}

impl From<Place> for Like {
    fn from(Place { liked_at, id }: Place) -> Self {
        Self { post_id: id.into(), liked_at: rfc3339(liked_at) }
    }
}

/// The posts that a user likes, newest first, from the truth. A walk through the pages shows no post twice
/// and misses none that stays liked, whatever is liked and taken back meanwhile; a post that is liked after
/// the first page is not among the later ones. For that user and for app servers.
#[utoipa::path(
    get, path = "/v1/users/{user_id}/likes", tag = "likes",
    params(("user_id" = Id, Path), Page),
    responses(
        (status = 200, body = LikesPage),
        (status = 403, description = "Another user's likes, or an operator",
            body = ProblemBody, content_type = "application/problem+json"),
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn likes(
    State(api): State<WriteApi>,
    caller: Caller,
    UserPath(user): UserPath,
    Parameters(page): Parameters<Page>,
) -> Result<Json<LikesPage>, Problem> {
    if !may(&caller, &user) {
        return Err(Problem::new(
            Kind::Forbidden,
            "a user's likes are for that user and for app servers",
        ));
    }
    let list = List::LikesOfUser(user.as_str());
    let read = async |after: Option<Place>, limit| {
        api.mysql.likes_of_user(&user, after.as_ref(), limit).await
    };
    let (found, next_cursor) = page.of(&api.cursors, list, read).await?;
    Ok(Json(LikesPage { items: found.into_iter().map(Like::from).collect(), next_cursor }))
}

fn may(caller: &Caller, user: &UserId) -> bool {
    match caller {
        Caller::Service => true,
        Caller::User(own) => own == user,
        Caller::Operator => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likes_of_a_user_are_for_that_user_and_for_app_servers() {
        let (ann, ben) = (UserId::from_log("ann"), UserId::from_log("ben"));
        assert!(may(&Caller::Service, &ann) && may(&Caller::User(ann.clone()), &ann));
        assert!(!may(&Caller::Operator, &ann) && !may(&Caller::User(ben), &ann));
    }
}
