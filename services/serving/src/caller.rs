//! Who calls: a trusted app server with the service token, which names the user where one is needed; an
//! operator; or a user with a token of their own.

mod jwks;
mod token;

use std::fmt;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use likewise_core::UserId;
use subtle::ConstantTimeEq as _;
use tokio_util::sync::CancellationToken;

use crate::layers::Seen;
use crate::{Kind, Problem};
use token::Tokens;

pub(crate) const USER_HEADER: &str = "x-user-id";

/// By what callers are known.
#[derive(Clone, Default)]
pub struct CallerSettings {
    /// The token of trusted app servers.
    pub service_token: String,
    /// The token of operators.
    pub operator_token: Option<String>,
    /// The key of users' tokens that are signed by HS256.
    pub jwt_secret: Option<String>,
    /// Where the public keys of users' tokens are that are signed by RS256 or ES256: an `https` or `http`
    /// address, or a file.
    pub jwks: Option<String>,
    /// Who must have made a user's token.
    pub jwt_issuer: String,
    /// Whom a user's token must be for.
    pub jwt_audience: String,
}

/// The callers that are known.
#[derive(Clone)]
pub struct Callers {
    service_token: Arc<str>,
    operator_token: Option<Arc<str>>,
    tokens: Arc<Tokens>,
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
    /// Checks the settings. Reads no key yet: see [`Callers::keep`].
    pub fn new(settings: &CallerSettings) -> anyhow::Result<Self> {
        Ok(Self {
            service_token: settings.service_token.as_str().into(),
            operator_token: settings.operator_token.as_deref().map(Arc::from),
            tokens: Arc::new(Tokens::new(settings)?),
        })
    }

    /// Keeps the public keys as they are at their source, until `shutdown`. While that is away the last
    /// ones stand.
    pub async fn keep(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        shutdown.run_until_cancelled(self.tokens.keep()).await;
        Ok(())
    }

    /// Who calls, once for each request however often it is asked.
    async fn admit(&self, parts: &mut Parts) -> Result<Caller, Problem> {
        if let Some(caller) = parts.extensions.get::<Caller>() {
            return Ok(caller.clone());
        }
        let caller = self.known(&parts.headers).await.map_err(|refused| {
            metrics::counter!("likewise_refused_calls_total", "reason" => refused.reason)
                .increment(1);
            refused.problem
        })?;
        if let Some(seen) = parts.extensions.get::<Seen>() {
            let _ = seen.caller.set(caller.kind());
        }
        parts.extensions.insert(caller.clone());
        Ok(caller)
    }

    async fn known(&self, headers: &HeaderMap) -> Result<Caller, Refused> {
        let token = bearer(headers)?;
        if bool::from(token.ct_eq(self.service_token.as_bytes())) {
            return Ok(Caller::Service);
        }
        if let Some(operator_token) = &self.operator_token
            && bool::from(token.ct_eq(operator_token.as_bytes()))
        {
            return Ok(Caller::Operator);
        }
        let user = self.tokens.user(token).await?;
        if headers.contains_key(USER_HEADER) {
            return Err(Refused {
                reason: "unexpected-user",
                problem: Problem::new(
                    Kind::UnexpectedUser,
                    "a user's own token names the user: send no X-User-Id beside it",
                ),
            });
        }
        Ok(Caller::User(user))
    }
}

impl fmt::Debug for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callers")
    }
}

impl Caller {
    fn kind(&self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Operator => "operator",
            Self::User(_) => "user",
        }
    }
}

/// Why a caller is not known.
struct Refused {
    /// For the metric.
    reason: &'static str,
    problem: Problem,
}

impl Refused {
    fn token(reason: &'static str, detail: &'static str) -> Self {
        Self { reason, problem: Problem::invalid_token(detail) }
    }
}

fn bearer(headers: &HeaderMap) -> Result<&[u8], Refused> {
    let missing =
        |detail| Refused { reason: "no-token", problem: Problem::new(Kind::Unauthorized, detail) };
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(missing("send one header `Authorization: Bearer <token>`"));
    };
    let value = value.as_bytes().split_at_checked(7);
    let token = value.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
    let Some((_, token)) = token.filter(|(_, token)| !token.is_empty()) else {
        return Err(missing("the Authorization header must be `Bearer <token>`"));
    };
    Ok(token)
}

fn named_user(headers: &HeaderMap) -> Result<UserId, Problem> {
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
        state.callers().admit(parts).await.map(|_| Self)
    }
}

impl<S: HasCallers + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        state.callers().admit(parts).await
    }
}

impl<S: HasCallers + Sync> FromRequestParts<S> for User {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match state.callers().admit(parts).await? {
            Caller::Service => named_user(&parts.headers).map(Self),
            Caller::User(user) => Ok(Self(user)),
            Caller::Operator => Err(Problem::new(Kind::Forbidden, "an operator calls for no user")),
        }
    }
}
