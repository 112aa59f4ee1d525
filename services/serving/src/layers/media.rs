//! What a caller says that it can read.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};

/// Whether an answer is a stream of events.
pub(crate) fn is_stream(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE);
    media.is_some_and(|media| media.as_bytes().starts_with(b"text/event-stream"))
}

/// The weight that a parameter of an `Accept` field gives (RFC 9110, 12.4.2); none where it is another one.
pub(super) fn weight(parameter: &str) -> Option<&str> {
    parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="))
}

/// Whether a caller takes JSON or a stream of events, which are all that calls answer with. Pages for
/// people are not asked.
pub(super) fn accepts_ours<'a>(
    path: &str,
    accept: impl IntoIterator<Item = &'a HeaderValue>,
) -> bool {
    if !path.starts_with("/v1/") {
        return true;
    }
    let mut asked = false;
    for value in accept {
        let Ok(value) = value.to_str() else { continue };
        for range in value.split(',').filter(|range| !range.trim().is_empty()) {
            asked = true;
            if is_ours(range) {
                return true;
            }
        }
    }
    !asked
}

fn is_ours(range: &str) -> bool {
    let mut parts = range.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default().to_ascii_lowercase();
    let is_refused = parts.any(|parameter| {
        weight(parameter)
            .is_some_and(|weight| weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0))
    });
    let ours = ["*/*", "application/*", "application/json", "text/event-stream", "text/*"];
    !is_refused && ours.contains(&media.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_refused_only_to_whoever_says_so() {
        let accepted = |path: &str, accept: &[&str]| {
            let values: Vec<HeaderValue> =
                accept.iter().map(|value| value.parse().expect("a header's value")).collect();
            accepts_ours(path, &values)
        };
        let count = "/v1/posts/p/count";
        for fine in [
            &[][..],
            &["*/*"],
            &[""],
            &["text/html, application/xhtml+xml, */*;q=0.8"],
            &["application/json; charset=utf-8"],
            &["image/png", "Application/JSON"],
            &["text/event-stream"],
        ] {
            assert!(accepted(count, fine), "{fine:?}");
        }
        for odd in [&["text/html"][..], &["image/*"], &["application/json;q=0"], &["*/*; q=0.0"]] {
            assert!(!accepted(count, odd), "{odd:?}");
            assert!(accepted("/docs/", odd), "{odd:?}");
        }
    }
}
