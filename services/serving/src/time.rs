//! Times as callers see them.

use jiff::Timestamp;
use likewise_core::Micros;

/// RFC 3339 in UTC with microseconds: `2026-11-30T07:52:12.000001Z`.
pub fn rfc3339(at: Micros) -> String {
    // Outside the years −9999 to 9999 there is nothing to write.
    let timestamp = Timestamp::from_microsecond(at.0).unwrap_or_default();
    timestamp.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Reads a time of RFC 3339, to the microsecond; none where it is not one.
pub fn parse_rfc3339(text: &str) -> Option<Micros> {
    // The library reads more of ISO 8601 than callers are promised.
    let timestamp: Timestamp = text.parse().ok().filter(|_| has_its_form(text.as_bytes()))?;
    Some(Micros(timestamp.as_microsecond()))
}

/// As its section 5.6 writes `date-time`; the library knows which digits are a time.
fn has_its_form(text: &[u8]) -> bool {
    let is_like = |text: &[u8], form: &[u8]| {
        text.len() == form.len()
            && text.iter().zip(form).all(|(byte, form)| match form {
                b'0' => byte.is_ascii_digit(),
                form => byte.eq_ignore_ascii_case(form),
            })
    };
    let Some((time, rest)) = text.split_at_checked("0000-00-00T00:00:00".len()) else {
        return false;
    };
    let zone = match rest.strip_prefix(b".") {
        Some(fraction) => {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return false;
            }
            &fraction[digits..]
        }
        None => rest,
    };
    is_like(time, b"0000-00-00T00:00:00")
        && [&b"Z"[..], b"+00:00", b"-00:00"].iter().any(|form| is_like(zone, form))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_six_digits_also_where_they_are_zero() {
        assert_eq!(rfc3339(Micros(1_795_990_384_000_000)), "2026-11-29T22:13:04.000000Z");
        assert_eq!(rfc3339(Micros(1_795_990_384_247_557)), "2026-11-29T22:13:04.247557Z");
    }

    #[test]
    fn a_time_is_read_as_it_was_written_and_nothing_else_is() {
        let at = Micros(1_795_990_384_247_557);
        assert_eq!(parse_rfc3339(&rfc3339(at)), Some(at));
        assert_eq!(parse_rfc3339("2026-11-29T23:13:04.247557+01:00"), Some(at));
        assert_eq!(parse_rfc3339("2026-11-29t22:13:04.247557z"), Some(at));
        for text in [
            "",
            "x",
            "2026-11-29",
            "2026-11-29T22:13Z",
            "2026-11-29 22:13:04Z",
            "1",
            "2026-02-30T00:00:00Z",
            "2026-11-29T22:13:04Z[UTC]",
            "2026-11-29T22:13:04+01:00[Europe/Berlin]",
            "2026-11-29T22:13:04,5Z",
            "2026-11-29T22:13:04.Z",
            "2026-11-29T22:13:04+01",
            "2026-11-29T22:13:04+0100",
            "2026-11-29T22:13:04+01:00:00",
            "+002026-11-29T22:13:04Z",
            "2026-11-29T22:13:04",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }
}
