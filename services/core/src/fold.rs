//! The fold: from records of one partition to one effect per post and the checkpoint behind them.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::{Change, Checkpoint, Entry, Micros, Novelty, Offset, Poison, PostId, RowChange, Skip};

/// What a batch does to one post's count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PostEffect {
    /// The last recount, if there was one: the count is set to it…
    pub recount: Option<Recounted>,
    /// …and this is added afterwards.
    pub add: i64,
}

/// A recount that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recounted {
    /// The absolute number of likes.
    pub likes: i64,
    /// Where in the partition it stands; it closes repairs that were raised before.
    pub offset: Offset,
}

/// A record that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Where it stands.
    pub offset: Offset,
    /// What is wrong with it.
    pub reason: Poison,
    /// The value's first bytes.
    pub payload: Vec<u8>,
}

/// A post whose count is in doubt until its next recount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Which post.
    pub post: PostId,
    /// Why.
    pub reason: RepairReason,
    /// Where in the partition the doubt arose.
    pub offset: Offset,
}

/// What puts a count in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepairReason {
    /// The positions cannot be compared: it may or may not have been counted.
    #[error("a change's position cannot be compared with what was counted")]
    CannotTell,
    /// A record about the post could not be read.
    #[error("a record could not be read: {0}")]
    Poison(Poison),
}

/// What a fold saw, for metrics and alarms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records taken in.
    pub records: u64,
    /// Edge changes counted.
    pub edges: u64,
    /// Recounts applied.
    pub recounts: u64,
    /// Marks passed.
    pub marks: u64,
    /// Changes dropped because they were counted before.
    pub repeats: u64,
    /// Changes not applied because their position cannot be compared.
    pub cannot_tell: u64,
    /// Snapshot rows met, and not counted.
    pub snapshot_rows: u64,
    /// TRUNCATEs met.
    pub truncates: u64,
    /// Marks whose value before is not the last one passed: the log has a gap.
    pub gaps: u64,
    /// Null and empty values.
    pub tombstones: u64,
    /// Records of foreign tables.
    pub foreign: u64,
}

/// Gathers a batch. Give it every record of one partition in offset order.
#[derive(Debug)]
pub struct Fold {
    start: Offset,
    checkpoint: Checkpoint,
    counts: HashMap<PostId, PostEffect, RandomState>,
    dead_letters: Vec<DeadLetter>,
    repairs: Vec<Repair>,
    tally: Tally,
}

/// Everything that one transaction writes: all of it, or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The `next_offset` that the stored checkpoint must have for this batch to be the next one.
    pub start: Offset,
    /// The checkpoint after the batch.
    pub checkpoint: Checkpoint,
    /// One effect a post, sorted by post so that two equal batches are equal.
    pub counts: Vec<(PostId, PostEffect)>,
    /// Records to keep aside.
    pub dead_letters: Vec<DeadLetter>,
    /// Posts in doubt.
    pub repairs: Vec<Repair>,
    /// What was seen.
    pub tally: Tally,
}

impl Fold {
    /// An empty fold that goes on from a checkpoint.
    pub fn from(checkpoint: Checkpoint) -> Self {
        Self {
            start: checkpoint.next_offset,
            checkpoint,
            counts: HashMap::default(),
            dead_letters: Vec::new(),
            repairs: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Whether no record was taken in.
    pub fn is_empty(&self) -> bool {
        self.tally.records == 0
    }

    /// How many records were taken in.
    pub fn records(&self) -> u64 {
        self.tally.records
    }

    /// The first offset that was not taken in.
    pub fn next_offset(&self) -> Offset {
        self.checkpoint.next_offset
    }

    /// Takes in the record at `offset`. A record before [`Fold::next_offset`] is a leftover of an
    /// earlier assignment: it is not taken, and the answer is `false`.
    pub fn apply(&mut self, offset: Offset, entry: Entry) -> bool {
        if offset < self.checkpoint.next_offset {
            return false;
        }
        self.checkpoint.next_offset = offset + 1;
        self.tally.records += 1;
        match entry {
            Entry::Change(change) => self.change(offset, change),
            Entry::SnapshotRow => self.tally.snapshot_rows += 1,
            Entry::Truncate(_) => self.tally.truncates += 1,
            Entry::Skip(Skip::Tombstone) => self.tally.tombstones += 1,
            Entry::Skip(Skip::ForeignTable) => self.tally.foreign += 1,
            Entry::Poison { reason, post, payload } => {
                self.dead_letters.push(DeadLetter { offset, reason, payload });
                if let Some(post) = post {
                    self.repairs.push(Repair {
                        post,
                        reason: RepairReason::Poison(reason),
                        offset,
                    });
                }
            }
        }
        true
    }

    /// Ends the batch.
    pub fn finish(self) -> Batch {
        let mut counts: Vec<_> = self
            .counts
            .into_iter()
            .filter(|(_, effect)| effect.recount.is_some() || effect.add != 0)
            .collect();
        counts.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Batch {
            start: self.start,
            checkpoint: self.checkpoint,
            counts,
            dead_letters: self.dead_letters,
            repairs: self.repairs,
            tally: self.tally,
        }
    }

    fn change(&mut self, offset: Offset, change: Change) {
        match self.checkpoint.positions.novelty(&change.source, &change.position) {
            Novelty::New => {}
            Novelty::Repeat => {
                self.tally.repeats += 1;
                return;
            }
            Novelty::CannotTell => {
                self.tally.cannot_tell += 1;
                if let Some(post) = change.row.post() {
                    let reason = RepairReason::CannotTell;
                    self.repairs.push(Repair { post: post.clone(), reason, offset });
                }
                return;
            }
        }
        match change.row {
            RowChange::Edge { post, delta } => {
                self.tally.edges += 1;
                self.counts.entry(post).or_default().add += delta;
            }
            RowChange::Recount { post, likes } => {
                self.tally.recounts += 1;
                self.repairs.retain(|repair| repair.post != post);
                let recount = Some(Recounted { likes, offset });
                self.counts.insert(post, PostEffect { recount, add: 0 });
            }
            RowChange::Mark { before, at } => self.mark(&change.source, before, at),
            RowChange::Nothing => {}
        }
        self.checkpoint.positions.advance(&change.source, change.position);
    }

    /// A mark carries the value before it, which must be the last one passed. If it is not, marks
    /// are missing, and with them perhaps likes: `as_of` stands still from there on.
    fn mark(&mut self, source: &crate::SourceName, before: Option<Micros>, at: Micros) {
        match self.checkpoint.as_of.get(source) {
            Some(last) if before != Some(*last) => self.tally.gaps += 1,
            _ => {
                self.tally.marks += 1;
                self.checkpoint.as_of.insert(source.clone(), at);
            }
        }
    }
}

#[cfg(test)]
#[path = "fold/tests.rs"]
mod tests;
