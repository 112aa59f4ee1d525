//! How far a partition is counted.

use std::collections::BTreeMap;

use crate::{Micros, Positions, SourceName};

/// A place in a Kafka partition. The log has gaps: the next offset is the last one + 1, never a count.
pub type Offset = i64;

/// How often a partition was claimed. Whoever claimed last owns it.
pub type Epoch = i64;

/// How far a partition is counted, in Kafka *and* in MySQL. Written in one transaction with the counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// The first offset that is not counted.
    pub next_offset: Offset,
    /// The last position counted of each source and server.
    pub positions: Positions,
    /// Per source: every like that was committed before is in this partition's counts.
    pub as_of: BTreeMap<SourceName, Micros>,
    /// A table was truncated, or the log has a gap: any count may be wrong, and `as_of` stands still
    /// until everything was recounted.
    pub as_of_stands: bool,
}

impl Checkpoint {
    /// The checkpoint of a partition of which nothing is counted yet.
    pub fn at(next_offset: Offset) -> Self {
        Self { next_offset, ..Self::default() }
    }

    /// The minimum over the sources; none before the first mark.
    pub fn as_of(&self) -> Option<Micros> {
        self.as_of.values().min().copied()
    }
}
