//! Counts for many readers: read once however many ask, kept for a moment, and the last known ones while
//! MongoDB is away.

mod flights;
mod live;
mod passing;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::join_all;
use likewise_core::{GenerationId, Micros, PostId, partition_of};
use moka::sync::Cache;
use tokio::sync::{Notify, watch};
use tokio::time::{timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::reader::flights::{Failure, Flights};
use crate::reader::live::Readable;
use crate::reader::passing::Passing;
use crate::{Counted, CountedTo, Error, Live, Store};

/// How counts are read.
#[derive(Clone, Debug)]
pub struct ReaderSettings {
    /// The topic whose changes are counted.
    pub topic: String,
    /// For how long a count that was read serves others who ask; zero reads for each.
    pub fresh_for: Duration,
    /// How many counts are kept at most.
    pub entries: u64,
    /// How long a caller waits for MongoDB at most. What gives no answer for as long is away.
    pub patience: Duration,
    /// A count whose `as_of` is older is stale.
    pub stale_after: Duration,
}

/// A count as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The stored sum.
    pub counted: Counted,
    /// How far its partition was counted at the same moment.
    pub counted_to: Arc<CountedTo>,
    /// When MongoDB was asked.
    asked: Instant,
}

/// Why counts could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There is nothing that could be read.
    #[error(
        "there is no live generation of counts: run `likewise migrate`, or `likewise rebuild` if the counts were lost"
    )]
    NoGeneration,
    /// MongoDB cannot be reached, and some of the counts were never read before.
    #[error("the count store is not available")]
    Away,
    /// MongoDB refused to answer. The reason was logged.
    #[error("the count store refused a command")]
    Refused,
}

/// What a caller accepts.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// A count that was read before is read again.
    since: Instant,
    /// A read that is under way since before is not joined.
    joins_since: Instant,
    /// A count that may lack a like committed before is read again, until the time given.
    min_as_of: Option<(Micros, Instant)>,
}

/// The counts of some posts.
#[derive(Clone, Debug)]
pub struct Reading {
    /// One for each post, in the order asked.
    pub counts: Vec<Known>,
    /// Of which generation.
    pub generation: GenerationId,
    /// The least `as_of` of all: none where a partition has passed no mark.
    pub as_of: Option<Micros>,
    /// Any of them is in doubt, old, or the last known one while MongoDB is away.
    pub stale: bool,
    /// The same of each.
    each_stale: Vec<bool>,
}

impl Reading {
    /// The reading of one of the posts alone.
    pub fn one(&self, at: usize) -> Self {
        let (known, stale) = (self.counts[at].clone(), self.each_stale[at]);
        Self {
            as_of: known.counted_to.as_of,
            counts: vec![known],
            generation: self.generation,
            stale,
            each_stale: vec![stale],
        }
    }
}

/// Reads counts of the live generation; clones share what was read.
#[derive(Clone)]
pub struct CountReader(Arc<Reader>);

struct Reader {
    store: Store,
    settings: ReaderSettings,
    live: watch::Sender<Option<Readable>>,
    /// MongoDB was found away by the task that looks, which alone finds it back. One read that failed says
    /// nothing of the others.
    away: watch::Sender<bool>,
    /// Told of a read that MongoDB did not answer.
    doubted: Notify,
    /// A generation's counts are its own: after a switch nothing of the last one is answered.
    known: Cache<Key, Known>,
    flights: Flights,
    passing: Passing,
}

type Key = (GenerationId, PostId);

impl Asked {
    /// The same, and including every like committed before `as_of`: waits for it until the time given, and
    /// is stale if it did not come.
    pub fn including(self, as_of: Micros, until: Instant) -> Self {
        Self { min_as_of: Some((as_of, until)), ..self }
    }

    fn accepts(&self, known: &Known) -> bool {
        known.asked >= self.since && self.is_reached(known)
    }

    fn is_reached(&self, known: &Known) -> bool {
        self.min_as_of.is_none_or(|(min, _)| known.counted_to.as_of >= Some(min))
    }
}

impl CountReader {
    /// Reads nothing yet. [`CountReader::keep`] must run.
    pub fn new(store: Store, settings: ReaderSettings) -> Self {
        Self(Arc::new(Reader {
            store,
            live: watch::Sender::new(None),
            away: watch::Sender::new(false),
            doubted: Notify::new(),
            known: Cache::new(settings.entries),
            flights: Flights::default(),
            passing: Passing::default(),
            settings,
        }))
    }

    /// Watches which generation is read, and whether MongoDB is there, until `shutdown`.
    pub async fn keep(self, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.0.watch_live() => {}
            () = self.0.watch_passing() => {}
        }
    }

    /// Whether counts can be read at all.
    pub fn ready(&self) -> Result<(), ReadError> {
        self.0.readable().map(drop)
    }

    /// What was read within the time for which counts are kept.
    pub fn recent(&self) -> Asked {
        let now = Instant::now();
        let since = now.checked_sub(self.0.settings.fresh_for).unwrap_or(now);
        Asked { since, joins_since: since, min_as_of: None }
    }

    /// What is read from now on.
    pub fn anew(&self) -> Asked {
        let now = Instant::now();
        Asked { since: now, joins_since: now, min_as_of: None }
    }

    /// The counts of the posts: at most one query, for what is not known yet and nobody else is asking for.
    /// While MongoDB is away the last known ones, at once.
    pub async fn read(&self, posts: &[PostId], asked: Asked) -> Result<Reading, ReadError> {
        let Readable { live, in_doubt } = self.0.readable()?;
        // What is known first: whoever has to wait then shares each look with all who wait.
        let mut read = self.0.look(live, posts, Asked { min_as_of: None, ..asked }).await?;
        if let Some((min, until)) = asked.min_as_of {
            let reached = |look: &Look| look.counts.iter().all(|known| asked.is_reached(known));
            while !read.away && !reached(&read) && Instant::now() < until {
                let partitions =
                    posts.iter().map(|post| partition_of(post.as_str(), live.partitions)).collect();
                let passed = self.0.passing.wait(live.generation, partitions, min);
                let Ok(joins_since) = timeout_at(until.into(), passed).await else { break };
                read = self.0.look(live, posts, Asked { joins_since, ..asked }).await?;
            }
        }
        let as_of = read.counts.iter().map(|known| known.counted_to.as_of).min().flatten();
        let stale = |known: &Known| {
            in_doubt
                || read.away
                || known.counted.repair
                || !asked.is_reached(known)
                || self.0.is_old(known.counted_to.as_of)
        };
        let each_stale: Vec<bool> = read.counts.iter().map(stale).collect();
        Ok(Reading {
            counts: read.counts,
            generation: live.generation,
            as_of,
            stale: each_stale.contains(&true),
            each_stale,
        })
    }
}

struct Look {
    counts: Vec<Known>,
    away: bool,
}

impl Reader {
    fn readable(&self) -> Result<Readable, ReadError> {
        let readable = *self.live.borrow();
        readable.ok_or_else(
            || {
                if self.is_away() { ReadError::Away } else { ReadError::NoGeneration }
            },
        )
    }

    fn is_away(&self) -> bool {
        *self.away.borrow()
    }

    fn set_away(&self, away: bool) {
        if self.away.send_replace(away) != away {
            let (gone, message) = if away {
                (1.0, "MongoDB is away: the last known counts are answered")
            } else {
                (0.0, "MongoDB is back")
            };
            metrics::gauge!("likewise_count_store_away").set(gone);
            tracing::warn!("{message}");
        }
    }

    async fn look(
        self: &Arc<Self>,
        live: Live,
        posts: &[PostId],
        asked: Asked,
    ) -> Result<Look, ReadError> {
        let key = |post: &PostId| (live.generation, post.clone());
        let accepted =
            |post: &PostId| self.known.get(&key(post)).filter(|known| asked.accepts(known));
        let mut found: HashMap<&PostId, Known> = HashMap::new();
        let mut missing: Vec<&PostId> = Vec::new();
        for post in posts {
            match accepted(post) {
                Some(known) => drop(found.insert(post, known)),
                None => missing.push(post),
            }
        }
        let mut away = false;
        if !missing.is_empty() {
            match self.fetch(live, &missing, asked).await {
                Ok(fetched) => found.extend(fetched),
                Err(Failure::Refused) => return Err(ReadError::Refused),
                Err(Failure::Away) => away = true,
            }
        }
        let one = |post: &PostId| {
            let last_known = || self.known.get(&key(post)).filter(|_| away);
            found.get(post).cloned().or_else(last_known).ok_or(ReadError::Away)
        };
        Ok(Look { counts: posts.iter().map(one).collect::<Result<_, _>>()?, away })
    }

    /// Joins whoever is reading them, and reads the others, all in one.
    async fn fetch<'a>(
        self: &Arc<Self>,
        live: Live,
        posts: &[&'a PostId],
        asked: Asked,
    ) -> Result<HashMap<&'a PostId, Known>, Failure> {
        let mut away = self.away.subscribe();
        if *away.borrow_and_update() {
            return Err(Failure::Away);
        }
        let flights = self.board(live, posts, asked);
        let landed = tokio::select! {
            landed = timeout(self.settings.patience, join_all(flights)) => landed.ok(),
            _ = away.wait_for(|away| *away) => None,
        };
        let landed = landed.ok_or(Failure::Away)?.into_iter().collect::<Result<Vec<_>, _>>()?;
        let known = |post: &&'a PostId| {
            let known = landed.iter().rev().find_map(|landed| landed.get(*post))?;
            Some((*post, known.clone()))
        };
        Ok(posts.iter().filter_map(known).collect())
    }

    /// What to make of an error, which is told here, once.
    fn failed(&self, error: &Error) -> Failure {
        if error.is_transient() {
            tracing::debug!(error = error as &dyn std::error::Error, "counts could not be read");
            self.doubted.notify_one();
            Failure::Away
        } else {
            tracing::error!(error = error as &dyn std::error::Error, "MongoDB refused a command");
            Failure::Refused
        }
    }

    /// Whether an `as_of` is too old to be trusted.
    fn is_old(&self, as_of: Option<Micros>) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let oldest = now.saturating_sub(self.settings.stale_after).as_micros();
        let oldest = i64::try_from(oldest).unwrap_or(i64::MAX);
        as_of.is_none_or(|as_of| as_of.0 < oldest)
    }
}
