//! The fold: from records of one partition to one effect per post and the checkpoint behind them.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::{
    Change, Checkpoint, Entry, Novelty, Offset, Poison, PostId, RowChange, Skip, SourceNumber,
};

/// What a batch does to one source's share of a post's count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PostEffect {
    /// What the last recount sets the count to, if there was one…
    pub set: Option<i64>,
    /// …and what is added afterwards.
    pub add: i64,
}

/// What a batch does to a post's count by the changes of one source. With one source that is the count;
/// with several, each has a share of it, and a recount speaks for the share of its own source alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountEffect {
    /// Which post.
    pub post: PostId,
    /// Whose share.
    pub source: SourceNumber,
    /// What happens to it.
    pub effect: PostEffect,
}

/// A recount that was applied. It closes the repair of its post and source that was raised before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recount {
    /// Which post.
    pub post: PostId,
    /// Whose share.
    pub source: SourceNumber,
    /// The truth at its place in the log.
    pub likes: i64,
    /// Where in the partition it stands.
    pub offset: Offset,
    /// What was counted at the same place: the post's effect up to there.
    pub counted: PostEffect,
}

impl Recount {
    /// The truth less what was counted, at one place of the log; `stored` is the count before the batch.
    pub fn drift(&self, stored: i64) -> i64 {
        let counted = self.counted.set.unwrap_or(stored).saturating_add(self.counted.add);
        self.likes.saturating_sub(counted)
    }
}

/// A record that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Where it stands.
    pub offset: Offset,
    /// What is wrong with it.
    pub reason: Poison,
    /// The post it was about, where that can be told.
    pub post: Option<PostId>,
    /// The value's first bytes.
    pub payload: Vec<u8>,
}

/// A post whose count is in doubt until its next recount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Which post.
    pub post: PostId,
    /// Whose share of its count.
    pub source: SourceNumber,
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
    /// More was taken back than there was, and no change from elsewhere makes up for it.
    #[error("the sum stays below zero")]
    BelowZero,
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
    counts: HashMap<(PostId, SourceNumber), PostEffect, RandomState>,
    recounts: Vec<Recount>,
    dead_letters: Vec<DeadLetter>,
    repairs: HashMap<(PostId, SourceNumber), Repair, RandomState>,
    tally: Tally,
}

/// Everything that one transaction writes: all of it, or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The `next_offset` that the stored checkpoint must have for this batch to be the next one.
    pub start: Offset,
    /// The checkpoint after the batch.
    pub checkpoint: Checkpoint,
    /// One effect a post and source, sorted so that two equal batches are equal.
    pub counts: Vec<CountEffect>,
    /// The recounts among them, in log order.
    pub recounts: Vec<Recount>,
    /// Records to keep aside.
    pub dead_letters: Vec<DeadLetter>,
    /// Posts in doubt, each once a source, sorted.
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
            recounts: Vec::new(),
            dead_letters: Vec::new(),
            repairs: HashMap::default(),
            tally: Tally::default(),
        }
    }

    /// How many records were taken in.
    pub fn records(&self) -> u64 {
        self.tally.records
    }

    /// How many records and posts were set aside: a batch of many of them is dear to write.
    pub fn set_aside(&self) -> usize {
        self.dead_letters.len() + self.repairs.len()
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
            Entry::Truncate(_) => {
                self.tally.truncates += 1;
                self.checkpoint.stands_since = Some(offset);
            }
            Entry::Skip(Skip::Tombstone) => self.tally.tombstones += 1,
            Entry::Skip(Skip::ForeignTable) => self.tally.foreign += 1,
            Entry::Poison { reason, post, payload } => {
                if let Some(post) = &post {
                    // Which source it came through cannot be told: each share is in doubt.
                    let sources: Vec<_> = self.checkpoint.marking_sources().collect();
                    for source in sources {
                        self.doubt(post.clone(), source, RepairReason::Poison(reason), offset);
                    }
                }
                self.dead_letters.push(DeadLetter { offset, reason, post, payload });
            }
        }
        true
    }

    /// Ends the batch.
    pub fn finish(self) -> Batch {
        let mut counts: Vec<_> = self
            .counts
            .into_iter()
            .filter(|(_, effect)| effect.set.is_some() || effect.add != 0)
            .map(|((post, source), effect)| CountEffect { post, source, effect })
            .collect();
        counts.sort_unstable_by(|a, b| (&a.post, a.source).cmp(&(&b.post, b.source)));
        let mut repairs: Vec<_> = self.repairs.into_values().collect();
        repairs.sort_unstable_by(|a, b| (&a.post, a.source).cmp(&(&b.post, b.source)));
        Batch {
            start: self.start,
            checkpoint: self.checkpoint,
            counts,
            recounts: self.recounts,
            dead_letters: self.dead_letters,
            repairs,
            tally: self.tally,
        }
    }

    fn change(&mut self, offset: Offset, change: Change) {
        let source = self.checkpoint.source(&change.source);
        match self.checkpoint.positions.novelty(&change.source, &change.position) {
            Novelty::New => {}
            Novelty::Repeat => {
                self.tally.repeats += 1;
                return;
            }
            Novelty::CannotTell => {
                self.tally.cannot_tell += 1;
                if let Some(post) = change.row.post() {
                    self.doubt(post.clone(), source, RepairReason::CannotTell, offset);
                }
                return;
            }
        }
        match change.row {
            RowChange::Edge { post, delta } => {
                self.tally.edges += 1;
                self.counts.entry((post, source)).or_default().add += delta;
            }
            RowChange::Recount { post, likes } => {
                self.tally.recounts += 1;
                let share = (post, source);
                self.repairs.remove(&share);
                let effect = PostEffect { set: Some(likes), add: 0 };
                let counted = self.counts.insert(share.clone(), effect).unwrap_or_default();
                self.recounts.push(Recount { post: share.0, source, likes, offset, counted });
            }
            RowChange::Mark { before, at } => {
                self.tally.marks += 1;
                if self.checkpoint.pass(offset, &change.source, before, at) {
                    self.tally.gaps += 1;
                }
            }
            RowChange::Nothing => {}
        }
        self.checkpoint.positions.advance(&change.source, change.position);
    }

    fn doubt(&mut self, post: PostId, source: SourceNumber, reason: RepairReason, offset: Offset) {
        let share = (post.clone(), source);
        self.repairs.insert(share, Repair { post, source, reason, offset });
    }
}

#[cfg(test)]
#[path = "fold/tests.rs"]
mod tests;
