//! What the server has executed.

use std::collections::BTreeSet;
use std::fmt;

use mysql_async::prelude::Queryable as _;

use crate::{Error, Mysql};

/// The name of one transaction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gtid {
    /// Of the server that committed it first.
    pub uuid: u128,
    /// Empty for most.
    pub tag: String,
    /// From 1, counted per UUID and tag.
    pub number: u64,
}

/// As MySQL writes it: `uuid:number`, or `uuid:tag:number`.
impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tag = if self.tag.is_empty() { String::new() } else { format!(":{}", self.tag) };
        write!(f, "{}{tag}:{}", self.server(), self.number)
    }
}

/// Of a server that this one has never heard of, nothing is missing.
const EXECUTED: &str = "SELECT GTID_SUBSET(?, @@GLOBAL.gtid_executed)
     OR (? <> @@GLOBAL.server_uuid AND LOCATE(?, @@GLOBAL.gtid_executed) = 0)";

impl Gtid {
    /// Reads one as MySQL writes it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (server, rest) = text.split_once(':')?;
        let (tag, number) = rest.rsplit_once(':').unwrap_or(("", rest));
        let uuid = u128::from_str_radix(&server.replace('-', ""), 16).ok()?;
        Some(Self { uuid, tag: tag.to_owned(), number: number.parse().ok()? })
    }

    /// The UUID as MySQL writes it.
    fn server(&self) -> String {
        let uuid = format!("{:032x}", self.uuid);
        [&uuid[..8], &uuid[8..12], &uuid[12..16], &uuid[16..20], &uuid[20..]].join("-")
    }
}

impl Mysql {
    /// Those of `gtids` that the server has not executed, though it is the server they come from or has
    /// executed others of it. A transaction reaches the readers of the binlog a moment before it is among
    /// the executed ones.
    pub async fn not_executed(&self, gtids: BTreeSet<Gtid>) -> Result<BTreeSet<Gtid>, Error> {
        self.within(async {
            let mut conn = self.conn().await?;
            let mut missing = BTreeSet::new();
            for gtid in gtids {
                let (name, server) = (gtid.to_string(), gtid.server());
                let executed: Option<bool> =
                    conn.exec_first(EXECUTED, (name, &server, &server)).await?;
                if executed != Some(true) {
                    missing.insert(gtid);
                }
            }
            Ok(missing)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gtid_is_written_as_mysql_writes_it() {
        let uuid = 0x0041_b9b3_0001_0002_0003_0123_4567_89ab;
        let text = "0041b9b3-0001-0002-0003-0123456789ab";
        let plain = Gtid { uuid, tag: String::new(), number: 11 };
        assert_eq!(plain.to_string(), format!("{text}:11"));
        let tagged = Gtid { tag: "import".into(), ..plain.clone() };
        assert_eq!(tagged.to_string(), format!("{text}:import:11"));
        for gtid in [plain, tagged] {
            assert_eq!(Gtid::parse(&gtid.to_string()), Some(gtid));
        }
        assert_eq!(Gtid::parse("AUTOMATIC"), None);
    }
}
