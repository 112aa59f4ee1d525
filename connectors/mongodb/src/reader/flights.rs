//! Reads that are under way: whoever asks for the same count meanwhile waits for the same answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use likewise_core::{PostId, partition_of};

use crate::reader::{Asked, Key, Known, Reader};
use crate::{Error, Live};

/// Why a read ended without counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Away,
    Refused,
}

type Landed = Result<Arc<HashMap<PostId, Known>>, Failure>;
pub(super) type Flight = Shared<BoxFuture<'static, Landed>>;

#[derive(Default)]
pub(super) struct Flights(Mutex<HashMap<Key, Started>>);

struct Started {
    asked: Instant,
    flight: Flight,
}

impl Reader {
    /// The reads that bring the counts of all these posts.
    pub(super) fn board(
        self: &Arc<Self>,
        live: Live,
        posts: &[&PostId],
        asked: Asked,
    ) -> Vec<Flight> {
        let mut flights: Vec<Flight> = Vec::new();
        let mut board = |flight: Flight| {
            if !flights.iter().any(|boarded| boarded.ptr_eq(&flight)) {
                flights.push(flight);
            }
        };
        let mut under_way = self.flights.0.lock().expect("no holder of the lock panics");
        let mut missing: Vec<PostId> = Vec::new();
        for post in posts {
            let key = (live.generation, (*post).clone());
            // What landed since it was last looked for is known before its flight is gone.
            let landed = self.known.get(&key).filter(|known| asked.accepts(known));
            let started = under_way.get(&key).filter(|started| started.asked >= asked.joins_since);
            match (landed, started) {
                (Some(known), _) => {
                    let landed = HashMap::from([(key.1, known)]);
                    board(std::future::ready(Ok(Arc::new(landed))).boxed().shared());
                }
                (None, Some(started)) => board(started.flight.clone()),
                (None, None) => missing.push(key.1),
            }
        }
        if !missing.is_empty() {
            let now = Instant::now();
            let flight = self.start(live, missing.clone(), now);
            for post in missing {
                let started = Started { asked: now, flight: flight.clone() };
                under_way.insert((live.generation, post), started);
            }
            board(flight);
        }
        flights
    }

    /// Reads in a task of its own: a caller that goes away takes nobody's answer along.
    fn start(self: &Arc<Self>, live: Live, posts: Vec<PostId>, asked: Instant) -> Flight {
        let this = self.clone();
        let task = tokio::spawn(async move {
            let landed = this.load(live, &posts, asked).await;
            let landed = landed.map(Arc::new).map_err(|error| this.failed(&error));
            let mut under_way = this.flights.0.lock().expect("no holder of the lock panics");
            for post in posts {
                let key = (live.generation, post);
                if under_way.get(&key).is_some_and(|started| started.asked == asked) {
                    under_way.remove(&key);
                }
            }
            landed
        });
        // A task that panicked has told so.
        task.map(|joined| joined.unwrap_or(Err(Failure::Refused))).boxed().shared()
    }

    async fn load(
        &self,
        live: Live,
        posts: &[PostId],
        asked: Instant,
    ) -> Result<HashMap<PostId, Known>, Error> {
        metrics::counter!("likewise_count_reads_total").increment(1);
        let snapshot = self.store.snapshot(live, &self.settings.topic, posts).await?;
        let partitions: HashMap<u32, _> = snapshot
            .partitions
            .into_iter()
            .map(|(number, counted_to)| (number, Arc::new(counted_to)))
            .collect();
        let known = |post: &PostId| {
            let partition = partition_of(post.as_str(), live.partitions);
            let known = Known {
                counted: snapshot.counts.get(post).copied().unwrap_or_default(),
                counted_to: partitions.get(&partition).cloned().unwrap_or_default(),
                asked,
            };
            self.remember((live.generation, post.clone()), &known);
            (post.clone(), known)
        };
        Ok(posts.iter().map(known).collect())
    }

    /// Keeps what was asked for last, also where an older answer comes later.
    fn remember(&self, key: Key, known: &Known) {
        self.known.entry(key).and_upsert_with(|last| match last.map(|last| last.into_value()) {
            Some(last) if last.asked > known.asked => last,
            _ => known.clone(),
        });
    }
}
