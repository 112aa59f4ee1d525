//! GTIDs as MySQL prints them: `uuid:number`, or `uuid:tag:number`.

/// The parts of a GTID.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gtid<'a> {
    pub(crate) uuid: u128,
    pub(crate) tag: &'a str,
    pub(crate) number: u64,
}

impl<'a> Gtid<'a> {
    /// Reads a GTID; none when it is not one.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (uuid, rest) = text.split_once(':')?;
        let (tag, number) = rest.rsplit_once(':').unwrap_or(("", rest));
        Some(Self { uuid: parse_uuid(uuid)?, tag, number: number.parse().ok()? })
    }
}

/// Reads the hyphenated form, `8-4-4-4-12` hexadecimal digits.
fn parse_uuid(text: &str) -> Option<u128> {
    let groups = text.split('-').map(str::len);
    if !groups.eq([8, 4, 4, 4, 12]) {
        return None;
    }
    text.bytes().filter(|byte| *byte != b'-').try_fold(0, |uuid: u128, byte| {
        Some(uuid << 4 | u128::from(char::from(byte).to_digit(16)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_and_tagged_gtids_are_read_and_others_refused() {
        let uuid = 0xdc41_b9b3_0001_0002_0003_0123_4567_89ab;
        let text = "dc41b9b3-0001-0002-0003-0123456789ab";
        assert_eq!(Gtid::parse(&format!("{text}:11")), Some(Gtid { uuid, tag: "", number: 11 }));
        assert_eq!(
            Gtid::parse(&format!("{text}:import:7")),
            Some(Gtid { uuid, tag: "import", number: 7 })
        );
        for bad in [
            "",
            "11",
            "dc41b9b3:11",
            &format!("{text}:"),
            &format!("{text}:-1"),
            &format!("+{}:1", &text[1..]),
        ] {
            assert_eq!(Gtid::parse(bad), None, "{bad}");
        }
    }
}
