//! W3C Trace Context: the trace that a request is a part of.

use axum::http::HeaderMap;

const TRACEPARENT: &str = "traceparent";

/// The trace id of a valid `traceparent`, the one there is. What is not valid is as good as not sent.
pub(super) fn trace_id(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let (value, None) = (values.next()?.to_str().ok()?, values.next()) else { return None };
    let mut fields = value.split('-');
    let version = hex(fields.next()?, 2)?;
    let trace = hex(fields.next()?, 32)?;
    let parent = hex(fields.next()?, 16)?;
    hex(fields.next()?, 2)?;
    let is_null = |field: &str| field.bytes().all(|digit| digit == b'0');
    // A later version may have more fields.
    let is_whole = version != "00" || fields.next().is_none();
    (version != "ff" && is_whole && !is_null(trace) && !is_null(parent)).then_some(trace)
}

fn hex(field: &str, digits: usize) -> Option<&str> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (field.len() == digits && field.bytes().all(is_digit)).then_some(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(TRACEPARENT, value.parse().expect("a header's value"));
        trace_id(&headers).map(str::to_owned)
    }

    #[test]
    fn what_is_not_valid_is_ignored() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let parent = "00f067aa0ba902b7";
        assert_eq!(read(&format!("00-{trace}-{parent}-01")).as_deref(), Some(trace));
        assert_eq!(read(&format!("cc-{trace}-{parent}-01-more")).as_deref(), Some(trace));
        for odd in [
            String::new(),
            format!("00-{trace}-{parent}"),
            format!("00-{trace}-{parent}-01-more"),
            format!("ff-{trace}-{parent}-01"),
            format!("00-{}-{parent}-01", trace.to_uppercase()),
            format!("00-{}-{parent}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{trace}x-{parent}-01"),
        ] {
            assert_eq!(read(&odd), None, "{odd}");
        }
    }
}
