//! What this process saw of each edge lately, and which edges it is writing to right now.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use likewise_core::{Micros, PostId, UserId};
use likewise_mysql::Written;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use super::{ENTRIES, REMEMBERED};

/// Longer than a write takes from its row's time to its commit: its deadline, and more.
const UNTIL_COMMITTED: i64 = 5_000_000;

type Edge = (UserId, PostId);

/// The last that was seen of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// This process made it so by this time, by a transaction that it knows.
    Made { liked: bool, by: Micros },
    /// It was so by this time, whoever made it so.
    Found { liked: bool, by: Micros },
    /// A write of this process ended, and nobody knows how.
    Unknown,
}

/// The edges of this process.
pub(super) struct Edges {
    seen: Cache<Edge, Seen>,
    writing: Mutex<HashMap<Edge, usize>>,
}

/// A write to an edge that is under way, until it is dropped.
pub(crate) struct Writing {
    edges: Arc<Edges>,
    edge: Edge,
}

/// What a count must be like to answer a write with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needs {
    /// It must be as of this time at least; none where any will do, as it is known what is not in it.
    pub(super) as_of: Option<Micros>,
    /// Another write of the edge is under way, and whether that is counted is not known.
    pub(super) in_doubt: bool,
}

impl Edges {
    pub(super) fn new() -> Self {
        let seen = Cache::builder().max_capacity(ENTRIES).eviction_policy(EvictionPolicy::lru());
        Self { seen: seen.time_to_live(REMEMBERED).build(), writing: Mutex::default() }
    }

    pub(super) fn begin(self: &Arc<Self>, user: &UserId, post: &PostId) -> Writing {
        let edge = (user.clone(), post.clone());
        *self.writing().entry(edge.clone()).or_default() += 1;
        Writing { edges: self.clone(), edge }
    }

    fn writing(&self) -> MutexGuard<'_, HashMap<Edge, usize>> {
        self.writing.lock().expect("no holder of the lock panics")
    }
}

impl Writing {
    /// The post that is written to.
    pub(super) fn post(&self) -> &PostId {
        &self.edge.1
    }

    /// Notes what the write came to.
    pub(super) fn ended(&self, written: &Written) -> Needs {
        let seen = self.edges.seen.get(&self.edge);
        let now = match (seen, &written.transaction) {
            (_, Some(_)) if written.changed => {
                Seen::Made { liked: written.liked, by: written.written_at }
            }
            (Some(seen), _) if !written.changed && seen.is(written.liked) => seen,
            _ => Seen::Found { liked: written.liked, by: written.written_at },
        };
        self.edges.seen.insert(self.edge.clone(), now);
        let others = self.edges.writing().get(&self.edge).is_some_and(|writing| *writing > 1);
        Needs { as_of: needs(seen, written), in_doubt: others }
    }

    /// Notes that nobody knows what the write came to.
    pub(crate) fn outcome_unknown(self) {
        self.edges.seen.insert(self.edge.clone(), Seen::Unknown);
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let mut writing = self.edges.writing();
        let left = writing.get_mut(&self.edge).map_or(0, |writing| {
            *writing -= 1;
            *writing
        });
        if left == 0 {
            writing.remove(&self.edge);
        }
    }
}

impl Seen {
    fn is(self, state: bool) -> bool {
        match self {
            Self::Made { liked, .. } | Self::Found { liked, .. } => liked == state,
            Self::Unknown => false,
        }
    }
}

/// As of when a count must be, so that it is known whether the edge is in it: as it is after a repeat, as it
/// was before a flip. None where any will do.
fn needs(seen: Option<Seen>, written: &Written) -> Option<Micros> {
    let later = Some(written.written_at);
    if written.changed && written.transaction.is_none() {
        // Whether this very write is in the count cannot be told otherwise.
        return later;
    }
    let found = written.liked != written.changed;
    // What was seen here holds, unless the row is younger: then somebody else wrote it since.
    let holds = |by: Micros| written.found_since.is_none_or(|since| since <= by);
    match (seen, written.found_since) {
        (Some(Seen::Made { liked, by }), _) if liked == found && holds(by) => None,
        (Some(Seen::Found { liked, by }), _) if liked == found && holds(by) => Some(by),
        // The row says since when the edge was as it was found.
        (_, Some(since)) => {
            let committed = Micros(since.0.saturating_add(UNTIL_COMMITTED));
            Some(committed.min(written.written_at))
        }
        // Without a row, nothing is known of an edge but what was seen here: it is taken for a new one.
        (None, None) if written.changed => None,
        _ => later,
    }
}

#[cfg(test)]
#[path = "edges/tests.rs"]
mod tests;
