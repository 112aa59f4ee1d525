//! Errors as callers see them: `application/problem+json` (RFC 9457).

use std::borrow::Cow;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// The kinds of problems. The `type` of each is stable: callers may decide by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An id that cannot be one.
    InvalidId,
    /// A query parameter that is unknown, repeated or malformed.
    InvalidQuery,
    /// A cursor that this list did not make.
    InvalidCursor,
    /// A call that needs a user, without `X-User-Id`.
    MissingUser,
    /// No token, or none that is known.
    Unauthorized,
    /// A caller that is known, and may not do this.
    Forbidden,
    /// No such address.
    NotFound,
    /// The address does not know the method.
    MethodNotAllowed,
    /// What the call needs cannot be reached; it may be repeated.
    Unavailable,
    /// The call took too long; it may or may not have taken effect, and may be repeated.
    Timeout,
    /// A mistake of ours.
    Internal,
}

/// An error as it is sent.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// What kind of problem it is: stable, callers may decide by it.
    #[schema(examples("urn:likewise:problem:invalid-id"))]
    r#type: String,
    title: &'static str,
    /// The status of the answer.
    status: u16,
    /// What was wrong with this call, for people.
    detail: Cow<'static, str>,
}

impl Kind {
    pub(crate) fn status(self) -> StatusCode {
        self.parts().0
    }

    pub(crate) fn title(self) -> &'static str {
        self.parts().2
    }

    fn parts(self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as S;
        match self {
            Self::InvalidId => (S::BAD_REQUEST, "invalid-id", "The id is not valid"),
            Self::InvalidQuery => (S::BAD_REQUEST, "invalid-query", "The query is not valid"),
            Self::InvalidCursor => (S::BAD_REQUEST, "invalid-cursor", "The cursor is not valid"),
            Self::MissingUser => (S::BAD_REQUEST, "missing-user", "The call needs a user"),
            Self::Unauthorized => (S::UNAUTHORIZED, "unauthorized", "The caller is not known"),
            Self::Forbidden => (S::FORBIDDEN, "forbidden", "The caller may not do this"),
            Self::NotFound => (S::NOT_FOUND, "not-found", "There is nothing at this address"),
            Self::MethodNotAllowed => {
                (S::METHOD_NOT_ALLOWED, "method-not-allowed", "The method is not known here")
            }
            Self::Unavailable => {
                (S::SERVICE_UNAVAILABLE, "unavailable", "Something the call needs is away")
            }
            Self::Timeout => (S::SERVICE_UNAVAILABLE, "timeout", "The call took too long"),
            Self::Internal => (S::INTERNAL_SERVER_ERROR, "internal", "The service failed"),
        }
    }
}

/// An error that answers a call. `detail` is written for the caller: never a driver's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    kind: Kind,
    detail: Cow<'static, str>,
}

const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
/// After how many seconds a call may be repeated that met something away.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

impl Problem {
    /// A problem with a sentence that helps.
    pub fn new(kind: Kind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// What kind it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, slug, title) = self.kind.parts();
        let body = ProblemBody {
            r#type: format!("urn:likewise:problem:{slug}"),
            title,
            status: status.as_u16(),
            detail: self.detail,
        };
        let mut response = (status, Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
        match status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, RETRY_AFTER);
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }
}
