//! The count in the answer to a write, which includes the caller's own like: it neither misses nor doubles it.
//!
//! A count is read together with the positions up to which it is counted, so each transaction of MySQL
//! either is in it or is not. To it is added what this process wrote to the post and is not counted yet,
//! this call's own write among it.
//!
//! A repeat wrote nothing, so nothing tells whether the like that it repeats is counted, unless this process
//! wrote it: the answer waits a moment for a count of a time at which the edge was seen as it is. What still
//! cannot be known is `stale`. One thing goes unseen: an edge that another process flipped, not counted yet,
//! and that is flipped back here; until both are counted, a few hundred milliseconds, the answer may be off
//! by one.

mod recent;
mod room;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use likewise_core::{Micros, PostId, UserId};
use likewise_mongodb::CountReader;
use likewise_mysql::Written;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::own_count::recent::{Change, Recent};
use crate::own_count::room::Room;

/// For how long what was written here is remembered: well above the age at which a count is stale anyway.
const REMEMBERED: Duration = Duration::from_secs(60);
/// How many posts and edges are remembered at most.
const ENTRIES: u64 = 100_000;
/// How many writes that are not counted yet are remembered at most, over all posts: 64 MB, and twenty seconds
/// of 50,000 likes a second. While the count store is away nothing is counted; a post's writes beyond are
/// forgotten, and its answers are `stale` until they are counted.
const CHANGES: usize = 1_000_000;

/// The count in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnCount {
    pub(crate) count: Option<u64>,
    pub(crate) as_of: Option<Micros>,
    pub(crate) stale: bool,
}

/// What this process wrote lately, and the counts that it knows.
pub(crate) struct OwnCounts {
    reader: CountReader,
    wait: Duration,
    room: Arc<Room>,
    posts: Cache<PostId, Arc<Mutex<Recent>>>,
    edges: Cache<(UserId, PostId), Seen>,
}

/// The last that was seen of an edge.
#[derive(Clone, Copy)]
struct Seen {
    liked: bool,
    /// By when it was so; none where this process made it so, and knows by which transaction.
    by: Option<Micros>,
}

impl OwnCounts {
    pub(crate) fn new(reader: CountReader, wait: Duration) -> Self {
        // What was written last matters most, however seldom it was before.
        let lru = EvictionPolicy::lru;
        let posts = Cache::builder().max_capacity(ENTRIES).eviction_policy(lru());
        let edges = Cache::builder().max_capacity(ENTRIES).eviction_policy(lru());
        Self {
            reader,
            wait,
            room: Arc::new(Room::of(CHANGES)),
            posts: posts.time_to_idle(REMEMBERED).build(),
            edges: edges.time_to_live(REMEMBERED).build(),
        }
    }

    /// The count of the post that a write of the user answers with. Never an error, and never later than
    /// the wait that was set.
    pub(crate) async fn of(&self, user: &UserId, post: &PostId, written: &Written) -> OwnCount {
        let edge = (user.clone(), post.clone());
        let seen = self.edges.get(&edge).filter(|seen| seen.liked == written.liked);
        let unknown = || Arc::new(Mutex::new(Recent::new(self.room.clone())));
        let recent = self.posts.get_with_by_ref(post, unknown);
        let own = written.transaction.as_ref().filter(|_| written.changed);
        // A count of this time or later includes the edge as it is.
        let by = match (own, seen) {
            (Some(_), _) => None,
            (None, Some(seen)) if !written.changed => seen.by,
            (None, _) => Some(written.written_at),
        };
        self.edges.insert(edge, Seen { liked: written.liked, by });
        if let Some(gtid) = own {
            let delta = if written.liked { 1 } else { -1 };
            lock(&recent).add(Change { gtid: gtid.clone(), delta });
        }
        let asked = match by {
            Some(by) => self.reader.recent().including(by, Instant::now() + self.wait),
            None => self.reader.recent(),
        };
        let read = self.reader.read(std::slice::from_ref(post), asked);
        let read = tokio::time::timeout(self.wait, read).await;
        let mut recent = lock(&recent);
        let fresh = match read {
            Ok(Ok(reading)) => {
                recent.begin_from(&reading);
                !reading.stale
            }
            // The last known one will do.
            Ok(Err(_)) | Err(_) => false,
        };
        // Somebody flipped the edge elsewhere in between, and whether that is counted is not known.
        let flipped = own.filter(|_| seen.is_some()).is_some_and(|own| !recent.counts(own));
        recent.own_count(written.liked, fresh && !flipped)
    }
}

fn lock(recent: &Mutex<Recent>) -> std::sync::MutexGuard<'_, Recent> {
    recent.lock().expect("no holder of the lock panics")
}
