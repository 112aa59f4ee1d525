//! Sequence numbers of a client, by which a request that arrives late is known.

/// The largest one: what MySQL's BIGINT holds.
const MAX: u64 = i64::MAX.unsigned_abs();

/// The number that a client gave a request: 1 to 2^63 − 1. Of two requests for one edge the higher stands,
/// whichever arrives last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seq(i64);

impl Seq {
    /// Reads bare digits: no sign, no leading zero, no space.
    pub fn parse(text: &str) -> Option<Self> {
        let number = bare_number(text).filter(|number| (1..=MAX).contains(number))?;
        i64::try_from(number).ok().map(Self)
    }

    /// The number.
    pub fn get(self) -> i64 {
        self.0
    }
}

/// Reads a number of bare digits as JSON would write it: no sign, no leading zero, no space.
pub fn bare_number(text: &str) -> Option<u64> {
    let bare = text.bytes().all(|byte| byte.is_ascii_digit());
    let shortest = text == "0" || !text.starts_with('0');
    (bare && shortest).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_number_is_bare_digits_from_1_to_the_largest_bigint() {
        for (text, number) in [("1", 1), ("10", 10), ("9223372036854775807", i64::MAX)] {
            assert_eq!(Seq::parse(text).map(Seq::get), Some(number));
        }
        for text in [
            "",
            "0",
            "00",
            "01",
            "+1",
            "-1",
            " 1",
            "1 ",
            "1.0",
            "1e3",
            "0x1",
            "١",
            "x",
            "9223372036854775808",
            "18446744073709551616",
            "99999999999999999999999",
        ] {
            assert_eq!(Seq::parse(text), None, "{text:?}");
        }
    }
}
