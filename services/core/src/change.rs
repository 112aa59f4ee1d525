//! What a record of the change log says.

use std::fmt;

use compact_str::CompactString;

use crate::{Micros, Position, PostId};

/// The connector that a change came through (`source.name` in Debezium's envelope).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceName(pub CompactString);

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The three tables that the change log carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// `post_likes`: who likes what.
    Likes,
    /// `post_recounts`: the absolute truth about one post.
    Recounts,
    /// `partition_marks`: the time, in log order.
    Marks,
}

/// One row change that was committed in MySQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The connector it came through.
    pub source: SourceName,
    /// Where in MySQL's history it stands.
    pub position: Position,
    /// What it does.
    pub row: RowChange,
}

/// What a row change does to the counts of its partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowChange {
    /// An edge changed: `delta` is liked(after) − liked(before).
    Edge {
        /// Whose count moves.
        post: PostId,
        /// −1, 0 or +1.
        delta: i64,
    },
    /// At this place of the log the post has exactly `likes`.
    Recount {
        /// Whose count is set.
        post: PostId,
        /// The absolute number.
        likes: i64,
    },
    /// Everything committed before `at` stands before this place of the log.
    Mark {
        /// The mark's value before this change; none when the mark was created by it.
        before: Option<Micros>,
        /// MySQL's clock.
        at: Micros,
    },
    /// A change that sets nothing: a recount or a mark that was deleted.
    Nothing,
}

impl RowChange {
    /// The post whose count the change is about.
    pub fn post(&self) -> Option<&PostId> {
        match self {
            Self::Edge { post, .. } | Self::Recount { post, .. } => Some(post),
            Self::Mark { .. } | Self::Nothing => None,
        }
    }
}

/// One record of the log, as the fold takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A committed row change.
    Change(Change),
    /// A row as a snapshot found it: state, not change. Never counted.
    SnapshotRow,
    /// A table was emptied without row changes: every count is in doubt.
    Truncate(Table),
    /// Nothing to count, by rule.
    Skip(Skip),
    /// Unreadable: kept aside as a dead letter.
    Poison {
        /// What is wrong with it.
        reason: Poison,
        /// The post it was about, where that can be told.
        post: Option<PostId>,
        /// The value's first bytes, for whoever looks into it.
        payload: Vec<u8>,
    },
}

/// How much of an unreadable value is kept.
const MAX_PAYLOAD_BYTES: usize = 4096;

impl Entry {
    /// A record that cannot be counted, with the first 4 KiB of its value.
    pub fn poison(reason: Poison, post: Option<PostId>, value: &[u8]) -> Self {
        let payload = value[..value.len().min(MAX_PAYLOAD_BYTES)].to_vec();
        Self::Poison { reason, post, payload }
    }
}

/// Why a record has nothing to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// A null or empty value.
    Tombstone,
    /// A record of a table that is none of ours.
    ForeignTable,
}

impl Skip {
    /// A stable word for metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tombstone => "tombstone",
            Self::ForeignTable => "foreign_table",
        }
    }
}

/// What makes a record unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Poison {
    /// The value is not a JSON object of Debezium's shape.
    #[error("the value is not a Debezium envelope")]
    NotAnEnvelope,
    /// `op` is none of c, u, d, r, t.
    #[error("the operation is unknown")]
    UnknownOperation,
    /// The row before or after the change is missing, or lacks a field.
    #[error("a row image is missing or incomplete")]
    IncompleteRow,
    /// A row change without GTID, binlog file or place in its transaction.
    #[error("the position in MySQL's history is missing")]
    NoPosition,
    /// The record stands in another partition than its key belongs into: a copy, and perhaps the only one.
    #[error("the key belongs into another partition")]
    WrongPartition,
    /// The record's key is not the id of the post or mark that it is about, so its partition may be wrong.
    #[error("the key does not match the row")]
    WrongKey,
}
