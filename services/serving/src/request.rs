//! What a request's target may hold.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use likewise_core::{InvalidId, PostId, UserId};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Kind, Problem};

/// The one post that a path names, `{post_id}`, checked.
#[derive(Clone, Debug)]
pub struct PostPath(pub PostId);

/// The one user that a path names, `{user_id}`, checked.
#[derive(Clone, Debug)]
pub struct UserPath(pub UserId);

async fn id<T, S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    what: &str,
    parse: impl Fn(&str) -> Result<T, InvalidId>,
) -> Result<T, Problem> {
    let invalid = |why: &str| Problem::new(Kind::InvalidId, format!("the {what} id {why}"));
    let Path(text) = Path::<String>::from_request_parts(parts, state)
        .await
        .map_err(|_| invalid("may hold only letters, digits and -._~:@+="))?;
    parse(&text).map_err(|error| invalid(&error.to_string()))
}

impl<S: Send + Sync> FromRequestParts<S> for PostPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        id(parts, state, "post", PostId::parse).await.map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for UserPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        id(parts, state, "user", UserId::parse).await.map(Self)
    }
}

/// The query of a call, read as `T`, which denies unknown fields. A parameter that is unknown, repeated
/// or malformed is refused.
#[derive(Clone, Copy, Debug)]
pub struct Parameters<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(parameters)) => Ok(Self(parameters)),
            Err(refused) => Err(Problem::new(Kind::InvalidQuery, refused.body_text())),
        }
    }
}

/// A call that takes no query parameter.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Refuses every query parameter.
#[derive(Clone, Copy, Debug)]
pub struct NoQuery;

impl<S: Send + Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::<Nothing>::from_request_parts(parts, state).await {
            Ok(_) => Ok(Self),
            Err(_) => Err(Problem::new(Kind::InvalidQuery, "this call takes no query parameter")),
        }
    }
}
