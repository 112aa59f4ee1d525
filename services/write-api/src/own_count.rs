//! The count in the answer to a write, which includes the caller's own like: it neither misses nor doubles it.
//!
//! A count is read together with the positions up to which it is counted, so each transaction of MySQL
//! either is in it or is not. To it is added what this process wrote to the post and is not counted yet,
//! this call's own write among it.
//!
//! That is exact where it is known what the edge was in that count. This process knows it of what it wrote
//! itself, and of an old row by its time; otherwise the answer waits a moment for a count of a time at which
//! the edge is known. What still cannot be known is `stale`. One thing goes unseen, as nothing is left of a
//! deleted row: an edge that was liked and taken back elsewhere a moment ago, and is not counted so far yet;
//! a like or a repeated unlike of it here may be answered with one too many until it is.

mod edges;
mod recent;
mod room;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use likewise_core::{Micros, PostId, UserId};
use likewise_mongodb::CountReader;
use likewise_mysql::Written;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::own_count::edges::{Edges, Needs, Writing};
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
    edges: Arc<Edges>,
}

impl OwnCounts {
    pub(crate) fn new(reader: CountReader, wait: Duration) -> Self {
        // What was written last matters most, however seldom it was before.
        let posts = Cache::builder().max_capacity(ENTRIES).eviction_policy(EvictionPolicy::lru());
        Self {
            reader,
            wait,
            room: Arc::new(Room::of(CHANGES)),
            posts: posts.time_to_idle(REMEMBERED).build(),
            edges: Arc::new(Edges::new()),
        }
    }

    /// Begins a write, before MySQL hears of it.
    pub(crate) fn begin(&self, user: &UserId, post: &PostId) -> Writing {
        self.edges.begin(user, post)
    }

    /// The count of the post that the write answers with. Never an error, and never later than the wait that
    /// was set.
    pub(crate) async fn of(&self, writing: Writing, written: &Written) -> OwnCount {
        let post = writing.post().clone();
        let unknown = || Arc::new(Mutex::new(Recent::new(self.room.clone())));
        let recent = self.posts.get_with_by_ref(&post, unknown);
        let Needs { as_of, in_doubt } = writing.ended(written);
        if let Some(gtid) = written.transaction.as_ref().filter(|_| written.changed) {
            let (gtid, delta) = (gtid.clone(), if written.liked { 1 } else { -1 });
            let needs = if in_doubt { Some(Micros(i64::MAX)) } else { as_of };
            lock(&recent).add(Change { gtid, delta, needs });
        }
        // From here on others know of this write.
        drop(writing);
        let asked = match as_of {
            Some(as_of) => self.reader.recent().including(as_of, Instant::now() + self.wait),
            None => self.reader.recent(),
        };
        let read = self.reader.read(std::slice::from_ref(&post), asked);
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
        recent.own_count(written.liked, fresh && !in_doubt)
    }
}

fn lock(recent: &Mutex<Recent>) -> std::sync::MutexGuard<'_, Recent> {
    recent.lock().expect("no holder of the lock panics")
}
