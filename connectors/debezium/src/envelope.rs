//! The fields of the envelope that counting needs.

use std::borrow::Cow;

use serde::Deserialize;

/// One record's value.
#[derive(Debug, Deserialize)]
pub(crate) struct Envelope<'a> {
    #[serde(borrow)]
    pub(crate) before: Option<Row<'a>>,
    #[serde(borrow)]
    pub(crate) after: Option<Row<'a>>,
    #[serde(borrow)]
    pub(crate) source: Source<'a>,
    pub(crate) transaction: Option<Transaction>,
    #[serde(borrow)]
    pub(crate) op: Cow<'a, str>,
}

/// Where a change comes from.
#[derive(Debug, Deserialize)]
pub(crate) struct Source<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) db: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) table: Option<Cow<'a, str>>,
    pub(crate) server_id: u64,
    #[serde(borrow)]
    pub(crate) gtid: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) file: Cow<'a, str>,
    pub(crate) pos: u64,
    pub(crate) row: u64,
}

/// Its place in the transaction.
#[derive(Debug, Deserialize)]
pub(crate) struct Transaction {
    pub(crate) total_order: u64,
}

/// A row of any of the three tables: the fields of all of them, each where it has one.
#[derive(Debug, Deserialize)]
pub(crate) struct Row<'a> {
    #[serde(borrow)]
    pub(crate) post_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) mark_key: Option<Cow<'a, str>>,
    pub(crate) liked: Option<Bool>,
    pub(crate) likes: Option<i64>,
    pub(crate) at: Option<i64>,
}

/// MySQL's BOOL is TINYINT(1): Debezium sends a number, or a boolean where a converter is configured.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Bool {
    Number(i64),
    Boolean(bool),
}

impl Bool {
    /// 1 for a like, 0 for none; any number but 0 is true, as in MySQL.
    pub(crate) fn as_count(self) -> i64 {
        match self {
            Self::Number(number) => i64::from(number != 0),
            Self::Boolean(boolean) => i64::from(boolean),
        }
    }
}
