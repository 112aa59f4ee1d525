//! Times as callers see them.

use jiff::Timestamp;
use likewise_core::Micros;

/// RFC 3339 in UTC with microseconds: `2026-11-30T07:52:12.000001Z`.
pub fn rfc3339(at: Micros) -> String {
    // Outside the years −9999 to 9999 there is nothing to write.
    let timestamp = Timestamp::from_microsecond(at.0).unwrap_or_default();
    timestamp.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// This machine's clock.
pub fn now() -> Micros {
    Micros(Timestamp::now().as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_six_digits_also_where_they_are_zero() {
        assert_eq!(rfc3339(Micros(1_795_990_384_000_000)), "2026-11-29T22:13:04.000000Z");
        assert_eq!(rfc3339(Micros(1_795_990_384_247_557)), "2026-11-29T22:13:04.247557Z");
    }
}
