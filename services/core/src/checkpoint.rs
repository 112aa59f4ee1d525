//! How far a partition is counted.

use std::collections::BTreeMap;

use crate::{Fingerprint, Micros, Positions, SourceName};

/// A place in a Kafka partition. The log has gaps: the next offset is the last one + 1, never a count.
pub type Offset = i64;

/// How often a partition was claimed. Whoever claimed last owns it.
pub type Epoch = i64;

/// The number of a source within its partition, from 0, in the order in which they were first met.
pub type SourceNumber = usize;

/// How far a partition is counted, in Kafka *and* in MySQL. Written in one transaction with the counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// The first offset that is not counted.
    pub next_offset: Offset,
    /// The record before it, by which the log is known again; none before the first one.
    pub last_record: Option<Fingerprint>,
    /// The sources met, in that order: a source keeps its number for the life of the generation.
    pub sources: Vec<SourceName>,
    /// The last position counted of each source and server.
    pub positions: Positions,
    /// The last mark passed of each source: the next one must carry it as the value before.
    pub marks: BTreeMap<SourceName, Micros>,
    /// Per source: every like that was committed before is in this partition's counts. The same as
    /// `marks`, unless it stands.
    pub as_of: BTreeMap<SourceName, Micros>,
    /// Where a table was truncated, or the log was last found to have a gap: any count may be wrong,
    /// and `as_of` stands still until everything was recounted.
    pub stands_since: Option<Offset>,
}

impl Checkpoint {
    /// The checkpoint of a partition of which nothing is counted yet.
    pub fn at(next_offset: Offset) -> Self {
        Self { next_offset, ..Self::default() }
    }

    /// The minimum over the sources; none before the first mark. A source that has never set a mark has
    /// promised nothing and takes no part.
    pub fn as_of(&self) -> Option<Micros> {
        self.as_of.values().min().copied()
    }

    /// As [`Checkpoint::as_of`], also where that stands: how far the log was read.
    pub fn passed(&self) -> Option<Micros> {
        self.marks.values().min().copied()
    }

    /// The sources that set marks, or are the first: those that can be asked for a recount.
    pub fn marking_sources(&self) -> impl Iterator<Item = SourceNumber> {
        let sources = self.sources.iter().enumerate().skip(1);
        let marking = sources.filter(|(_, source)| self.marks.contains_key(*source));
        std::iter::once(0).chain(marking.map(|(number, _)| number))
    }

    /// The number of a source, which is met for the first time here, or was before.
    pub(crate) fn source(&mut self, source: &SourceName) -> SourceNumber {
        let met = self.sources.iter().position(|met| met == source);
        met.unwrap_or_else(|| {
            self.sources.push(source.clone());
            self.sources.len() - 1
        })
    }

    /// Passes a mark. It carries the value before it, which must be the last one passed. If it is not,
    /// marks are missing, and with them perhaps likes: `as_of` stands. Tells whether there is such a gap.
    pub(crate) fn pass(
        &mut self,
        offset: Offset,
        source: &SourceName,
        before: Option<Micros>,
        at: Micros,
    ) -> bool {
        let last = self.marks.insert(source.clone(), at);
        let gap = last.is_some() && last != before;
        if gap {
            self.stands_since = Some(offset);
        }
        if self.stands_since.is_none() {
            self.as_of.insert(source.clone(), at);
        }
        gap
    }
}
