//! Errors as callers see them: `application/problem+json` (RFC 9457).

use std::borrow::Cow;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// Makes the kinds and their list from one text, so that none is left out of the documents.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident,)*) => {
        /// The kinds of problems. The `type` of each is stable: callers may decide by it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($(#[doc = $doc])* $kind,)*
        }

        impl Kind {
            /// Every kind, for the documents, in their order.
            pub(crate) const ALL: &[Self] = &[$(Self::$kind,)*];
        }
    };
}

kinds! {
    /// The request could not be understood, and no other kind says more.
    BadRequest,
    /// An id that cannot be one.
    InvalidId,
    /// A query parameter that is unknown, repeated or malformed.
    InvalidQuery,
    /// A cursor that this list did not make.
    InvalidCursor,
    /// A call that needs a user, without `X-User-Id`.
    MissingUser,
    /// `X-User-Id` beside a user's own token, which names the user already.
    UnexpectedUser,
    /// No token, or none that is known.
    Unauthorized,
    /// A caller that is known, and may not do this.
    Forbidden,
    /// No such address.
    NotFound,
    /// The address does not know the method.
    MethodNotAllowed,
    /// The caller takes none of the media types that the call answers with.
    NotAcceptable,
    /// The request did not arrive whole in time; nothing was done.
    SlowRequest,
    /// The content of the request is larger than any call needs; nothing was done.
    ContentTooLarge,
    /// The target of the request is longer than any call needs.
    TargetTooLong,
    /// Too many writes for one user; nothing was done, and the call may be repeated after `Retry-After`.
    TooManyWrites,
    /// The headers of the request are larger than any call needs.
    HeadersTooLarge,
    /// A mistake of ours.
    Internal,
    /// More calls or connections than this process serves at once; nothing was done.
    Overloaded,
    /// What the call needs cannot be reached; it may be repeated.
    Unavailable,
    /// The call took too long; it may or may not have taken effect, and may be repeated.
    Timeout,
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
    pub(crate) fn slug(self) -> &'static str {
        self.parts().1
    }

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
            Self::UnexpectedUser => {
                (S::BAD_REQUEST, "unexpected-user", "The token names the user already")
            }
            Self::BadRequest => (S::BAD_REQUEST, "bad-request", "The request is not understood"),
            Self::Unauthorized => (S::UNAUTHORIZED, "unauthorized", "The caller is not known"),
            Self::Forbidden => (S::FORBIDDEN, "forbidden", "The caller may not do this"),
            Self::NotFound => (S::NOT_FOUND, "not-found", "There is nothing at this address"),
            Self::MethodNotAllowed => {
                (S::METHOD_NOT_ALLOWED, "method-not-allowed", "The method is not known here")
            }
            Self::NotAcceptable => (
                S::NOT_ACCEPTABLE,
                "not-acceptable",
                "The call does not answer with this media type",
            ),
            Self::SlowRequest => {
                (S::REQUEST_TIMEOUT, "slow-request", "The request did not arrive in time")
            }
            Self::ContentTooLarge => {
                (S::PAYLOAD_TOO_LARGE, "content-too-large", "The content is too large")
            }
            Self::TargetTooLong => (S::URI_TOO_LONG, "target-too-long", "The target is too long"),
            Self::HeadersTooLarge => (
                S::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "headers-too-large",
                "The headers are too large",
            ),
            Self::TooManyWrites => {
                (S::TOO_MANY_REQUESTS, "too-many-writes", "Too many writes for one user")
            }
            Self::Overloaded => {
                (S::SERVICE_UNAVAILABLE, "overloaded", "More calls than can be served")
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
    retry_after_s: u32,
    invalid_token: bool,
}

pub(crate) const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
/// After how many seconds a call may be repeated that met something away.
const RETRY_AFTER_S: u32 = 1;
const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer");
const INVALID_TOKEN: HeaderValue = HeaderValue::from_static("Bearer error=\"invalid_token\"");

impl Problem {
    /// A mistake of ours, which the log tells more of.
    pub fn failed() -> Self {
        Self::new(Kind::Internal, "the call failed; it may be repeated")
    }

    /// A problem with a sentence that helps.
    pub fn new(kind: Kind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, detail: detail.into(), retry_after_s: RETRY_AFTER_S, invalid_token: false }
    }

    /// A token was sent that is not accepted; the challenge says so, as RFC 6750 has it.
    pub(crate) fn invalid_token(detail: impl Into<Cow<'static, str>>) -> Self {
        Self { invalid_token: true, ..Self::new(Kind::Unauthorized, detail) }
    }

    /// When a call that was refused for the moment may be repeated.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        Self { retry_after_s: seconds.max(1), ..self }
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
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(header::RETRY_AFTER, self.retry_after_s.into());
            }
            StatusCode::UNAUTHORIZED => {
                let challenge = if self.invalid_token { INVALID_TOKEN } else { CHALLENGE };
                headers.insert(header::WWW_AUTHENTICATE, challenge);
            }
            _ => {}
        }
        response
    }
}
