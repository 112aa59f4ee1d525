//! Waiting until partitions have passed a time: one look a tick for all who wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use likewise_core::{GenerationId, Micros};
use tokio::sync::{Notify, watch};

use crate::reader::Reader;
use crate::reader::flights::Failure;

/// How often the checkpoints are looked at while somebody waits.
const TICK: Duration = Duration::from_millis(20);
/// The pause after MongoDB refused a look: it will refuse the next one too.
const AFTER_REFUSAL: Duration = Duration::from_secs(1);

type Partition = (GenerationId, u32);

/// How many wait for each partition.
type Awaited = BTreeMap<Partition, usize>;

pub(super) struct Passing {
    awaited: Mutex<Awaited>,
    somebody: Notify,
    seen: watch::Sender<Arc<Seen>>,
}

/// What the last look found.
struct Seen {
    /// When it was over: what is read later is not older.
    at: Instant,
    as_of: BTreeMap<Partition, Option<Micros>>,
}

impl Default for Passing {
    fn default() -> Self {
        let nothing = Seen { at: Instant::now(), as_of: BTreeMap::new() };
        Self {
            awaited: Mutex::default(),
            somebody: Notify::new(),
            seen: watch::Sender::new(Arc::new(nothing)),
        }
    }
}

/// Waits for its partitions as long as it lives.
struct Waiting<'a> {
    passing: &'a Passing,
    partitions: Vec<Partition>,
}

impl<'a> Waiting<'a> {
    fn new(passing: &'a Passing, partitions: Vec<Partition>) -> Self {
        let mut awaited = passing.awaited();
        for partition in &partitions {
            *awaited.entry(*partition).or_default() += 1;
        }
        drop(awaited);
        passing.somebody.notify_one();
        Self { passing, partitions }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut awaited = self.passing.awaited();
        for partition in &self.partitions {
            let waiting = awaited.get_mut(partition).expect("this one waits");
            *waiting -= 1;
            if *waiting == 0 {
                awaited.remove(partition);
            }
        }
    }
}

impl Passing {
    fn awaited(&self) -> MutexGuard<'_, Awaited> {
        self.awaited.lock().expect("no holder of the lock panics")
    }

    /// Waits until every partition has passed `min`. What is read after the time returned includes it.
    pub(super) async fn wait(
        &self,
        generation: GenerationId,
        partitions: BTreeSet<u32>,
        min: Micros,
    ) -> Instant {
        let partitions = partitions.into_iter().map(|partition| (generation, partition)).collect();
        let waiting = Waiting::new(self, partitions);
        let passed = |seen: &Arc<Seen>| {
            let as_of = |partition| seen.as_of.get(partition).copied().flatten();
            waiting.partitions.iter().all(|partition| as_of(partition) >= Some(min))
        };
        let mut seen = self.seen.subscribe();
        let seen = seen.wait_for(passed).await.expect("the sender outlives this call");
        seen.at
    }

    async fn somebody_waits(&self) -> BTreeMap<GenerationId, BTreeSet<u32>> {
        loop {
            let mut wanted: BTreeMap<GenerationId, BTreeSet<u32>> = BTreeMap::new();
            for (generation, partition) in self.awaited().keys() {
                wanted.entry(*generation).or_default().insert(*partition);
            }
            if !wanted.is_empty() {
                return wanted;
            }
            self.somebody.notified().await;
        }
    }
}

impl Reader {
    /// Looks at the partitions that somebody waits for.
    pub(super) async fn watch_passing(&self) {
        loop {
            let wanted = self.passing.somebody_waits().await;
            let (mut as_of, mut pause) = (BTreeMap::new(), TICK);
            for (generation, partitions) in wanted {
                metrics::counter!("likewise_as_of_looks_total").increment(1);
                let topic = &self.settings.topic;
                match self.store.as_of_each(generation, topic, &partitions).await {
                    Ok(seen) => {
                        as_of.extend(seen.into_iter().map(|(n, as_of)| ((generation, n), as_of)));
                    }
                    Err(error) => {
                        if self.failed(&error) == Failure::Refused {
                            pause = AFTER_REFUSAL;
                        }
                    }
                }
            }
            self.passing.seen.send_replace(Arc::new(Seen { at: Instant::now(), as_of }));
            tokio::time::sleep(pause).await;
        }
    }
}
