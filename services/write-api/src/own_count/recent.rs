//! A post's count as it was read last, and what this process wrote to the post that is not in it.

use likewise_core::GenerationId;
use likewise_mongodb::{CountedTo, Known, Reading};
use likewise_mysql::Gtid;

use super::OwnCount;

/// How many changes of one post are kept: two seconds of the fastest post.
const CHANGES: usize = 100_000;

/// A committed write.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) gtid: Gtid,
    pub(super) delta: i64,
}

#[derive(Debug, Default)]
pub(super) struct Recent {
    count: Option<(GenerationId, Known)>,
    /// Not in the count.
    changes: Vec<Change>,
    /// Their sum.
    sum: i64,
    /// There were too many of them: a count that does not include this one may lack others.
    forgotten: Option<Gtid>,
}

impl Recent {
    /// Adds a write of this process, unless it is counted.
    pub(super) fn add(&mut self, change: Change) {
        if self.counts(&change.gtid) {
            return;
        }
        self.sum += change.delta;
        if self.changes.len() == CHANGES {
            // The sum goes on with them, until another count begins.
            self.changes.clear();
            self.forgotten = Some(change.gtid);
        } else {
            self.changes.push(change);
        }
    }

    /// Goes on from what was read, unless that is older than what is known.
    pub(super) fn begin_from(&mut self, reading: &Reading) {
        let [read] = &reading.counts[..] else { return };
        let newer = |(generation, known): &(GenerationId, Known)| {
            *generation == reading.generation
                && known.counted_to.next_offset > read.counted_to.next_offset
        };
        if self.count.as_ref().is_some_and(newer) {
            return;
        }
        self.count = Some((reading.generation, read.clone()));
        let counted_to = &read.counted_to;
        self.changes.retain(|change| !includes(counted_to, &change.gtid));
        self.sum = self.changes.iter().map(|change| change.delta).sum();
        self.forgotten.take_if(|forgotten| includes(counted_to, forgotten));
    }

    /// Whether a transaction is in the count.
    pub(super) fn counts(&self, gtid: &Gtid) -> bool {
        self.count.as_ref().is_some_and(|(_, known)| includes(&known.counted_to, gtid))
    }

    /// The answer to a caller who likes the post, or not. `exact` as far as the caller knows.
    pub(super) fn own_count(&self, liked: bool, exact: bool) -> OwnCount {
        let Some((_, known)) = &self.count else {
            return OwnCount { count: None, as_of: None, stale: true };
        };
        let sum = known.counted.sum.saturating_add(self.sum);
        // Whoever likes it is one of those who do.
        let least = i64::from(liked);
        OwnCount {
            count: u64::try_from(sum.max(least)).ok(),
            as_of: known.counted_to.as_of,
            stale: !exact || sum < least || self.forgotten.is_some(),
        }
    }
}

fn includes(counted_to: &CountedTo, gtid: &Gtid) -> bool {
    counted_to.includes(gtid.uuid, &gtid.tag, gtid.number)
}
