//! A post's count as it was read last, and what this process wrote to the post that is not in it.

use std::sync::Arc;

use likewise_core::{GenerationId, Micros};
use likewise_mongodb::{Counted, CountedTo, Reading};
use likewise_mysql::Gtid;

use super::OwnCount;
use super::room::Room;

/// How many changes of one post are kept: two seconds of the fastest post.
const CHANGES: usize = 100_000;

/// A committed write.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) gtid: Gtid,
    pub(super) delta: i64,
    /// As of when a count must be that has what this one flipped: until then the sum is in doubt for all.
    pub(super) needs: Option<Micros>,
}

#[derive(Debug)]
pub(super) struct Recent {
    count: Option<Count>,
    /// Not in the count. Each has its place in the room.
    changes: Vec<Change>,
    room: Arc<Room>,
    /// Their sum.
    sum: i64,
    /// The most that any of them needs.
    needs: Option<Micros>,
    /// There were too many of them: a count that does not include this one may lack others.
    forgotten: Option<Gtid>,
}

#[derive(Clone, Debug)]
struct Count {
    generation: GenerationId,
    counted: Counted,
    counted_to: Arc<CountedTo>,
}

impl Recent {
    /// Knows nothing yet. What it keeps takes places in the room.
    pub(super) fn new(room: Arc<Room>) -> Self {
        Self { count: None, changes: Vec::new(), room, sum: 0, needs: None, forgotten: None }
    }

    /// Adds a write of this process, unless it is counted.
    pub(super) fn add(&mut self, change: Change) {
        if self.counts(&change.gtid) {
            return;
        }
        self.sum += change.delta;
        self.needs = self.needs.max(change.needs);
        if self.changes.len() < CHANGES && self.room.take() {
            self.changes.push(change);
        } else {
            // The sum goes on with them, until another count begins.
            self.room.give(self.changes.len());
            self.changes = Vec::new();
            self.forgotten = Some(change.gtid);
        }
    }

    /// Goes on from what was read, unless that is older than what is known.
    pub(super) fn begin_from(&mut self, reading: &Reading) {
        let [read] = &reading.counts[..] else { return };
        self.begin(Count {
            generation: reading.generation,
            counted: read.counted,
            counted_to: read.counted_to.clone(),
        });
    }

    fn begin(&mut self, read: Count) {
        let last = self.count.as_ref().filter(|last| last.generation == read.generation);
        if last.is_some_and(|last| last.counted_to.next_offset > read.counted_to.next_offset) {
            return;
        }
        // Counted as far as before: none of the changes is in it. While a post is written to faster than it
        // is read, nearly every call finds it so, with many changes.
        let as_far = last.is_some_and(|last| last.counted_to == read.counted_to);
        if !as_far {
            let (counted_to, before) = (&read.counted_to, self.changes.len());
            self.changes.retain(|change| !includes(counted_to, &change.gtid));
            self.room.give(before - self.changes.len());
            self.changes.shrink_to(2 * self.changes.len());
            self.sum = self.changes.iter().map(|change| change.delta).sum();
            self.needs = self.changes.iter().filter_map(|change| change.needs).max();
            self.forgotten.take_if(|forgotten| includes(counted_to, forgotten));
        }
        self.count = Some(read);
    }

    /// Whether a transaction is in the count.
    pub(super) fn counts(&self, gtid: &Gtid) -> bool {
        self.count.as_ref().is_some_and(|count| includes(&count.counted_to, gtid))
    }

    /// The answer to a caller who likes the post, or not. `exact` as far as the caller knows.
    pub(super) fn own_count(&self, liked: bool, exact: bool) -> OwnCount {
        let Some(count) = &self.count else {
            return OwnCount { count: None, as_of: None, stale: true };
        };
        let sum = count.counted.sum.saturating_add(self.sum);
        // Whoever likes it is one of those who do.
        let least = i64::from(liked);
        let as_of = count.counted_to.as_of;
        let in_doubt = self.needs.is_some() && as_of < self.needs;
        OwnCount {
            count: u64::try_from(sum.max(least)).ok(),
            as_of,
            stale: !exact || sum < least || in_doubt || self.forgotten.is_some(),
        }
    }
}

impl Drop for Recent {
    fn drop(&mut self) {
        self.room.give(self.changes.len());
    }
}

fn includes(counted_to: &CountedTo, gtid: &Gtid) -> bool {
    counted_to.includes(gtid.uuid, &gtid.tag, gtid.number)
}

#[cfg(test)]
mod tests;
