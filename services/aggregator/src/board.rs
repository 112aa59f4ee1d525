//! What each partition of this process is doing, for the readiness of the role.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// The state of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It was assigned and is about to be claimed.
    Claiming,
    /// It is counted.
    Counting,
    /// It cannot be counted until somebody does what the sentence says.
    Waiting(String),
}

/// The states of the partitions that are ours.
#[derive(Debug, Default)]
pub(crate) struct Board {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    settled: bool,
    partitions: BTreeMap<u32, State>,
}

impl Board {
    /// The group has given this process what it has for it.
    pub(crate) fn settled(&self) {
        self.lock().settled = true;
    }

    /// The group has dropped this process.
    pub(crate) fn lost(&self) {
        self.lock().settled = false;
    }

    pub(crate) fn set(&self, partition: u32, state: State) {
        self.lock().partitions.insert(partition, state);
    }

    pub(crate) fn remove(&self, partition: u32) {
        self.lock().partitions.remove(&partition);
    }

    /// Whether the partition is ours.
    pub(crate) fn has(&self, partition: u32) -> bool {
        self.lock().partitions.contains_key(&partition)
    }

    /// Ready when the process is a member of the group and every partition of its is counted. A
    /// member without a partition stands by, and is ready.
    pub(crate) fn ready(&self) -> Result<(), String> {
        let inner = self.lock();
        if !inner.settled {
            return Err("not yet a member of the consumer group".to_owned());
        }
        let reasons: Vec<String> = inner
            .partitions
            .iter()
            .filter_map(|(partition, state)| match state {
                State::Counting => None,
                State::Claiming => Some(format!("partition {partition} is being claimed")),
                State::Waiting(reason) => Some(format!("partition {partition} waits: {reason}")),
            })
            .collect();
        if reasons.is_empty() { Ok(()) } else { Err(reasons.join("; ")) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no holder of the lock panics")
    }
}
