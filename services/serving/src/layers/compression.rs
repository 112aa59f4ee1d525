//! Content that is sent compressed to whoever takes that.

use std::io::Write as _;

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::Request;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, ETAG, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::media::{is_stream, weight};
use crate::Problem;

pub(crate) const GZIP: HeaderValue = HeaderValue::from_static("gzip");
const VARIES: HeaderValue = HeaderValue::from_static("accept-encoding");
/// Below it an answer fits into one packet anyway.
const FROM_BYTES: u64 = 1_024;
/// No answer of a call is larger.
const MAX_BYTES: u64 = 1 << 20;

/// Compresses what is worth it, in one go, so that a client that takes its answer slowly holds nothing
/// but the answer. Whoever takes neither gzip nor plain content gets it plain: a like that was written
/// must not be told as a failure.
pub(crate) async fn compressed(request: Request, next: Next) -> Response {
    let takes_gzip = takes_gzip(request.headers());
    let mut response = next.run(request).await;
    let status = response.status();
    // A stream's events must not wait for more of them.
    let is_stream = is_stream(response.headers());
    if !(status == StatusCode::OK || status == StatusCode::NOT_MODIFIED) || is_stream {
        return response;
    }
    response.headers_mut().append(VARY, VARIES);
    let length = response.body().size_hint().exact();
    let is_worth = length.is_some_and(|length| (FROM_BYTES..=MAX_BYTES).contains(&length));
    if takes_gzip && is_worth && !response.headers().contains_key(CONTENT_ENCODING) {
        gzipped(response).await
    } else {
        response
    }
}

async fn gzipped(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let Ok(content) = to_bytes(body, usize::MAX).await else {
        return Problem::failed().into_response();
    };
    parts.headers.insert(CONTENT_ENCODING, GZIP);
    parts.headers.remove(CONTENT_LENGTH);
    debug_assert!(parts.headers.get(ETAG).is_none_or(|tag| tag.as_bytes().starts_with(b"W/")));
    Response::from_parts(parts, Body::from(gzip(&content)))
}

/// By RFC 1952.
pub(crate) fn gzip(content: &[u8]) -> Bytes {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    let written = gzip.write_all(content).and_then(|()| gzip.finish());
    written.expect("memory can be written").into()
}

/// Whether `Accept-Encoding` asks for gzip (RFC 9110, 12.5.3). Without the field any coding is acceptable,
/// and the plain content is the one that everybody reads.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let mut any = None;
    let mut named = None;
    for value in headers.get_all(ACCEPT_ENCODING) {
        for coding in value.to_str().unwrap_or_default().split(',') {
            let mut parts = coding.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().to_ascii_lowercase();
            let is_taken = parts.all(is_some_weight);
            match name.as_str() {
                "gzip" | "x-gzip" => named = Some(is_taken),
                "*" => any = Some(is_taken),
                _ => {}
            }
        }
    }
    named.or(any).unwrap_or(false)
}

/// A parameter that is no weight says nothing here.
fn is_some_weight(parameter: &str) -> bool {
    weight(parameter)
        .is_none_or(|weight| weight.trim().parse::<f32>().is_ok_and(|weight| weight > 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_for_whoever_asks_for_it() {
        let takes = |accepted: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in accepted {
                headers.append(ACCEPT_ENCODING, value.parse().expect("a header's value"));
            }
            takes_gzip(&headers)
        };
        for asking in [
            &["gzip"][..],
            &["deflate, GZIP;q=0.5"],
            &["br", "gzip"],
            &["*"],
            &["identity;q=0, gzip;q=1.0"],
            &["*;q=0, x-gzip"],
        ] {
            assert!(takes(asking), "{asking:?}");
        }
        for not in [
            &[][..],
            &[""],
            &["identity;q=0"],
            &["gzip;q=0"],
            &["gzip; q=0.000, *"],
            &["br"],
            &["*;q=0"],
            &["gzip;q=junk"],
        ] {
            assert!(!takes(not), "{not:?}");
        }
    }
}
