//! What an answer says to caches, and what need not be sent again.

use std::fmt::Write as _;

use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

use crate::Problem;

/// Counts, which are the same for every caller and have an `as_of` of their own.
pub(crate) const CACHED_ROUTES: [&str; 2] = ["/v1/posts/{post_id}/count", "/v1/posts/counts"];

/// For the caller's own cache alone: a shared one would answer whoever has no token (RFC 9111, 3.5).
const COUNTS: HeaderValue = HeaderValue::from_static("private, max-age=1");
/// A batch of 100 counts is far below.
const MAX_BODY_BYTES: usize = 1 << 20;
const TAG_BYTES: usize = 16;

/// Tags counts, and answers 304 where the caller has what would be sent.
pub(crate) async fn cached(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let is_cached = route.is_some_and(|route| CACHED_ROUTES.contains(&route.as_str()))
        && (request.method() == Method::GET || request.method() == Method::HEAD);
    if !is_cached {
        return next.run(request).await;
    }
    let known: Vec<HeaderValue> =
        request.headers().get_all(IF_NONE_MATCH).iter().cloned().collect();
    let response = next.run(request).await;
    if response.status() != StatusCode::OK { response } else { tagged(response, &known).await }
}

async fn tagged(response: Response, known: &[HeaderValue]) -> Response {
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, MAX_BODY_BYTES).await else {
        return Problem::failed().into_response();
    };
    let tag = tag(&bytes);
    let is_known = known.iter().any(|known| names(known, &tag));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        parts.headers.insert(ETAG, tag);
    }
    parts.headers.entry(CACHE_CONTROL).or_insert(COUNTS);
    if is_known {
        parts.status = StatusCode::NOT_MODIFIED;
        strip(&mut parts.headers);
        return Response::from_parts(parts, Body::empty());
    }
    Response::from_parts(parts, Body::from(bytes))
}

fn strip(headers: &mut HeaderMap) {
    headers.remove(CONTENT_TYPE);
    headers.remove(CONTENT_LENGTH);
}

/// Weak, since the same content is sent compressed and not.
fn tag(content: &[u8]) -> String {
    let mut tag = "W/\"".to_owned();
    for byte in &Sha256::digest(content)[..TAG_BYTES] {
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    tag
}

/// Whether an `If-None-Match` names a tag, compared weakly.
fn names(known: &HeaderValue, tag: &str) -> bool {
    let Ok(known) = known.to_str() else { return false };
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    known.trim() == "*" || known.split(',').any(|known| opaque(known) == opaque(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_compared_weakly() {
        let tag = tag(b"{}");
        let known = |text: String| names(&text.parse().expect("a header's value"), &tag);
        assert!(known(tag.clone()) && known(tag.replace("W/", "")) && known("*".to_owned()));
        assert!(known(format!("\"a\", {tag}")));
        assert!(!known("\"a\"".to_owned()) && !known(tag.replace('"', "")));
    }
}
