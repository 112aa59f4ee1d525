//! Who calls: a trusted app server with the service token, which names the user where one is needed.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use likewise_core::UserId;
use subtle::ConstantTimeEq as _;

use crate::{Kind, Problem};

const USER_HEADER: &str = "x-user-id";

/// The callers that are known.
#[derive(Clone)]
pub struct Callers {
    service_token: Arc<str>,
    operator_token: Option<Arc<str>>,
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A trusted app server, which may name a user in `X-User-Id`.
    Service,
    /// An operator.
    Operator,
    /// A user, by a token of their own.
    User(UserId),
}

/// A state that knows its callers.
pub trait HasCallers {
    /// The callers that are known.
    fn callers(&self) -> &Callers;
}

/// Any known caller.
#[derive(Clone, Copy, Debug)]
pub struct AnyCaller;

/// A known caller, on behalf of a user.
#[derive(Clone, Debug)]
pub struct User(pub UserId);

impl Callers {
    /// Knows the service token of the app servers, and the operators' token if there is one.
    pub fn new(service_token: &str, operator_token: Option<&str>) -> Self {
        Self { service_token: service_token.into(), operator_token: operator_token.map(Arc::from) }
    }

    fn admit(&self, headers: &HeaderMap) -> Result<Caller, Problem> {
        let unauthorized = |detail| Err(Problem::new(Kind::Unauthorized, detail));
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return unauthorized("send one header `Authorization: Bearer <token>`");
        };
        let token = value
            .as_bytes()
            .split_at_checked(7)
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
        let Some((_, token)) = token else {
            return unauthorized("the Authorization header must be `Bearer <token>`");
        };
        if bool::from(token.ct_eq(self.service_token.as_bytes())) {
            return Ok(Caller::Service);
        }
        if let Some(operator_token) = &self.operator_token
            && bool::from(token.ct_eq(operator_token.as_bytes()))
        {
            return Ok(Caller::Operator);
        }
        unauthorized("the token is not known here")
    }
}

fn user(headers: &HeaderMap) -> Result<UserId, Problem> {
    let mut values = headers.get_all(USER_HEADER).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(Problem::new(
            Kind::MissingUser,
            "send one header `X-User-Id` with the id of the user on whose behalf you call",
        ));
    };
    let invalid = |why: &str| Problem::new(Kind::InvalidId, format!("the id in X-User-Id {why}"));
    let text = value.to_str().map_err(|_| invalid("may hold only letters, digits and -._~:@+="))?;
    UserId::parse(text).map_err(|error| invalid(&error.to_string()))
}

impl<S: HasCallers + Sync> FromRequestParts<S> for AnyCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        state.callers().admit(&parts.headers).map(|_| Self)
    }
}

impl<S: HasCallers + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        state.callers().admit(&parts.headers)
    }
}

impl<S: HasCallers + Sync> FromRequestParts<S> for User {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match state.callers().admit(&parts.headers)? {
            Caller::Service => user(&parts.headers).map(Self),
            Caller::User(user) => Ok(Self(user)),
            Caller::Operator => Err(Problem::new(Kind::Forbidden, "an operator calls for no user")),
        }
    }
}
