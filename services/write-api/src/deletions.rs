//! Deleting all likes of a user or of a post: asked for here, worked off in the background.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderName, StatusCode, header};
use likewise_core::Micros;
use likewise_mysql::{Receipt, Subject};
use likewise_serving::{
    Caller, Id, Kind, NoQuery, PostPath, Problem, ProblemBody, UserPath, rfc3339,
};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::WriteApi;

/// How long a receipt waits for the count store: what it tells of the truth is worth more.
const PATIENCE: Duration = Duration::from_millis(500);

/// How far a deletion has come.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum DeletionState {
    /// Likes are still being deleted.
    Open,
    /// None is left of those that existed when it was asked for.
    Done,
}

/// The receipt of a deletion. Exactly one of `user_id` and `post_id` is not null.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Deletion {
    #[schema(format = "uuid", examples("0f8e4c1c-6d0b-4b3e-9a57-0a3c4b9d2e61"))]
    id: String,
    /// Whose likes are deleted.
    #[schema(max_length = 64, examples("u1"))]
    user_id: Option<String>,
    /// Which post's likes are deleted.
    #[schema(max_length = 64)]
    post_id: Option<String>,
    state: DeletionState,
    /// How many likes were deleted so far.
    #[schema(examples(500))]
    edges: u64,
    /// RFC 3339 in UTC, on MySQL's clock.
    #[schema(format = DateTime, examples("2026-11-30T07:52:12.000001Z"))]
    requested_at: String,
    /// When it was done; null while it is open.
    #[schema(format = DateTime, examples("2026-11-30T07:52:13.000001Z"))]
    done_at: Option<String>,
    /// Whether every count is without the deleted likes; null while the count store is away.
    counted: Option<bool>,
    /// Every count includes what was committed before; null while the count store is away, or there is none
    /// yet.
    #[schema(format = DateTime, examples("2026-11-30T07:52:14.000001Z"))]
    as_of: Option<String>,
}

/// A receipt, where to look it up again, and 202.
type Accepted = (StatusCode, [(HeaderName, String); 1], Json<Deletion>);

/// Delete everything a user likes, as for an account that is gone. The answer is a receipt; the likes go in
/// the background. While such a deletion is open a repeat answers with it, and later with a new one that
/// finds nothing. Rows that only remember a `seq` go too, so a numbered request that comes after the
/// deletion is taken for a first one. For that user, for app servers and for operators.
#[utoipa::path(
    delete, path = "/v1/users/{user_id}/likes", tag = "deletions",
    params(("user_id" = Id, Path)),
    responses(
        (status = 202, body = Deletion, headers(("Location" = String, description = "Where the receipt is"))),
        (status = 403, description = "Another user's likes", body = ProblemBody,
            content_type = "application/problem+json"),
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn of_user(
    State(api): State<WriteApi>,
    caller: Caller,
    UserPath(user): UserPath,
    _: NoQuery,
) -> Result<Accepted, Problem> {
    ask(&api, &caller, Subject::User(user)).await
}

/// Delete every like of a post that is gone; otherwise as for a user. For app servers and for operators.
#[utoipa::path(
    delete, path = "/v1/posts/{post_id}/likes", tag = "deletions",
    params(("post_id" = Id, Path)),
    responses(
        (status = 202, body = Deletion, headers(("Location" = String, description = "Where the receipt is"))),
        (status = 403, description = "A user", body = ProblemBody,
            content_type = "application/problem+json"),
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn of_post(
    State(api): State<WriteApi>,
    caller: Caller,
    PostPath(post): PostPath,
    _: NoQuery,
) -> Result<Accepted, Problem> {
    ask(&api, &caller, Subject::Post(post)).await
}

/// A deletion's receipt, for whoever may ask for such a deletion. It is kept for 30 days after it was done.
#[utoipa::path(
    get, path = "/v1/deletions/{id}", tag = "deletions",
    params(("id" = String, Path, format = "uuid", example = "0f8e4c1c-6d0b-4b3e-9a57-0a3c4b9d2e61")),
    responses(
        (status = 200, body = Deletion),
        (status = 404, description = "No such deletion, or another caller's", body = ProblemBody,
            content_type = "application/problem+json"),
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn deletion(
    State(api): State<WriteApi>,
    caller: Caller,
    id: Result<Path<String>, axum::extract::rejection::PathRejection>,
    _: NoQuery,
) -> Result<Json<Deletion>, Problem> {
    let unknown = || Problem::new(Kind::NotFound, "there is no deletion with this id for you");
    // What is no UUID is no id of ours, and may be longer than anything MySQL should be asked.
    let id = id.ok().and_then(|Path(id)| Uuid::try_parse(&id).ok()).ok_or_else(unknown)?;
    let receipt = api.mysql.deletion(&id.to_string()).await?;
    let receipt = receipt.filter(|receipt| may(&caller, &receipt.subject)).ok_or_else(unknown)?;
    Ok(Json(describe(&api, receipt).await))
}

/// Who may ask for a deletion, and look at its receipt.
fn may(caller: &Caller, subject: &Subject) -> bool {
    match (caller, subject) {
        (Caller::Service | Caller::Operator, _) => true,
        (Caller::User(own), Subject::User(user)) => own == user,
        (Caller::User(_), Subject::Post(_)) => false,
    }
}

async fn ask(api: &WriteApi, caller: &Caller, subject: Subject) -> Result<Accepted, Problem> {
    if !may(caller, &subject) {
        return Err(Problem::new(
            Kind::Forbidden,
            match subject {
                Subject::User(_) => "a user may delete their own likes alone",
                Subject::Post(_) => "a post's likes may be deleted by app servers and operators",
            },
        ));
    }
    let asked = api.mysql.ask_deletion(&Uuid::new_v4().to_string(), &subject).await;
    // One whose outcome is unknown may be there.
    api.deletions.notify_one();
    let receipt = asked?;
    let location = format!("/v1/deletions/{}", receipt.id);
    let body = describe(api, receipt).await;
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(body)))
}

async fn describe(api: &WriteApi, receipt: Receipt) -> Deletion {
    let Receipt { id, subject, edges, requested_at, done_at } = receipt;
    let (user_id, post_id) = match subject {
        Subject::User(user) => (Some(user.to_string()), None),
        Subject::Post(post) => (None, Some(post.to_string())),
    };
    let as_of = counted_up_to(api).await;
    let counted = as_of.map(|as_of| done_at.is_some_and(|done_at| as_of >= Some(done_at)));
    Deletion {
        id,
        user_id,
        post_id,
        state: if done_at.is_some() { DeletionState::Done } else { DeletionState::Open },
        edges,
        requested_at: rfc3339(requested_at),
        done_at: done_at.map(rfc3339),
        counted,
        as_of: as_of.flatten().map(rfc3339),
    }
}

/// What every partition's counts include: the oldest `as_of`, or none while one has no mark yet. None at all
/// where the count store is away, or nothing is counted: a receipt is never refused for that.
async fn counted_up_to(api: &WriteApi) -> Option<Option<Micros>> {
    let partitions = async {
        let Some(live) = api.store.live().await? else { return Ok(None) };
        let partitions = api.store.partitions(live.generation).await?;
        Ok(Some((live.partitions, partitions)))
    };
    let partitions = match tokio::time::timeout(PATIENCE, partitions).await {
        Ok(Ok(partitions)) => partitions,
        Ok(Err(error)) => {
            let error: likewise_mongodb::Error = error;
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "how far is counted could not be read");
            None
        }
        Err(_) => {
            tracing::warn!("MongoDB did not answer in time how far is counted");
            None
        }
    };
    let (expected, partitions) = partitions?;
    let all = u32::try_from(partitions.len()) == Ok(expected);
    Some(partitions.iter().map(|one| one.as_of).min().flatten().filter(|_| all))
}

#[cfg(test)]
mod tests {
    use likewise_core::{PostId, UserId};

    use super::*;

    #[test]
    fn a_user_may_delete_their_own_likes_and_no_post_s() {
        let (ann, ben) = (UserId::from_log("ann"), UserId::from_log("ben"));
        let (of_ann, of_post) =
            (Subject::User(ann.clone()), Subject::Post(PostId::from_log("ann")));
        for (caller, may_user, may_post) in [
            (Caller::Service, true, true),
            (Caller::Operator, true, true),
            (Caller::User(ann), true, false),
            (Caller::User(ben), false, false),
        ] {
            assert_eq!((may(&caller, &of_ann), may(&caller, &of_post)), (may_user, may_post));
        }
    }
}
