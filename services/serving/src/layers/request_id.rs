//! The id under which a request is found again, here and at the caller.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// An id goes into every log line of the request.
const MAX_BYTES: usize = 128;

/// The caller's id, where it is one of 1 to 128 letters, digits and `-._:/+=@`; otherwise a fresh one.
pub(super) fn request_id(headers: &HeaderMap) -> HeaderValue {
    let mut given = headers.get_all(REQUEST_ID).iter();
    match (given.next(), given.next()) {
        (Some(id), None) if is_fit(id.as_bytes()) => id.clone(),
        _ => fresh(),
    }
}

fn is_fit(id: &[u8]) -> bool {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:/+=@".contains(byte);
    (1..=MAX_BYTES).contains(&id.len()) && id.iter().all(fits)
}

fn fresh() -> HeaderValue {
    let id = Uuid::new_v4().to_string();
    HeaderValue::try_from(id).unwrap_or_else(|_| HeaderValue::from_static("none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_id_that_is_odd_is_replaced() {
        let taken = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(REQUEST_ID, value.parse().expect("a header's value"));
            }
            let id = request_id(&headers);
            values.contains(&id.to_str().expect("text"))
        };
        let longest = "x".repeat(MAX_BYTES);
        assert!(taken(&["mine-1"]) && taken(&["a.b_c:d/e+f=g@h"]) && taken(&[&longest]));
        let longer = "x".repeat(MAX_BYTES + 1);
        for odd in ["", "a b", "a\"b", "a{b}", &longer] {
            assert!(!taken(&[odd]), "{odd}");
        }
        assert!(!taken(&["a", "b"]) && !taken(&[]));
    }
}
