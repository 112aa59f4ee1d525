//! What the processes tell: counters, also of processes that die, and lines of their logs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use likewise_tests::home;
use tokio::sync::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// Follows the counters of a process by its address. Those of a process that is started again begin
/// at 0 there, and are added to what the ones before had.
pub(crate) struct Counters {
    samples: Arc<Samples>,
    _until: DropGuard,
}

struct Samples {
    url: String,
    seen: Mutex<HashMap<String, Seen>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// What was added since we look.
    added: f64,
    last: f64,
}

impl Counters {
    /// Begins at what they are now.
    pub(crate) async fn follow(url: &str) -> Self {
        let samples = Arc::new(Samples { url: url.to_owned(), seen: Mutex::default() });
        samples.take().await;
        let until = CancellationToken::new();
        let (following, stop) = (samples.clone(), until.clone());
        tokio::spawn(async move {
            while !stop.is_cancelled() {
                tokio::time::sleep(SAMPLE_EVERY).await;
                following.take().await;
            }
        });
        Self { samples, _until: until.drop_guard() }
    }

    /// What was added to a counter since we look, also by processes that are gone.
    pub(crate) async fn added(&self, name: &str) -> u64 {
        self.samples.take().await;
        let seen = self.samples.seen.lock().await;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it counts up")]
        seen.get(name).map_or(0, |seen| seen.added as u64)
    }
}

impl Samples {
    /// One at a time: an older answer that is taken in later would look like a new process.
    async fn take(&self) {
        let mut all = self.seen.lock().await;
        let Ok(answer) = reqwest::get(format!("{}/metrics", self.url)).await else { return };
        let Ok(text) = answer.text().await else { return };
        let is_first = all.is_empty();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, value)) = line.split_once(' ') else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            let seen = all.entry(name.to_owned()).or_default();
            if !is_first {
                seen.added += if value >= seen.last { value - seen.last } else { value };
            }
            seen.last = value;
        }
    }
}

/// The lines that a process writes into its log from now on.
pub(crate) struct Lines {
    log: PathBuf,
    from: usize,
}

impl Lines {
    /// Of a role or server of the stack.
    pub(crate) fn of(name: &str) -> Self {
        Self::in_file(home().join(format!("logs/{name}.log")))
    }

    /// Of any process.
    pub(crate) fn in_file(log: PathBuf) -> Self {
        let from = std::fs::metadata(&log).map_or(0, |log| log.len());
        Self { log, from: usize::try_from(from).expect("it fits into memory") }
    }

    /// How many of them have this text.
    pub(crate) fn with(&self, text: &str) -> u64 {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let new = String::from_utf8_lossy(&log[self.from.min(log.len())..]).into_owned();
        new.lines().filter(|line| line.contains(text)).count() as u64
    }
}
