//! What a role asks of its servers' settings, at its start and whenever a server was away.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::bail;
use futures_util::future::join_all;
use likewise_core::Finding;
use tokio_util::sync::CancellationToken;

/// How often servers are asked whether they are there.
const LOOK_EVERY: Duration = Duration::from_secs(1);

type Answer<T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send>>;
type Question<T> = Box<dyn Fn() -> Answer<T> + Send + Sync>;

/// One server, and how it is asked.
pub struct Condition {
    server: &'static str,
    which: Question<String>,
    check: Question<Vec<Finding>>,
}

impl Condition {
    /// `which` is cheap and tells which server answers: another one is checked anew. `check` reads its
    /// settings. An error of either says why it could not be asked.
    pub fn new<S, W, WE, C, CE>(
        server: &'static str,
        handle: S,
        which: impl Fn(S) -> W + Send + Sync + 'static,
        check: impl Fn(S) -> C + Send + Sync + 'static,
    ) -> Self
    where
        S: Clone + Send + Sync + 'static,
        W: Future<Output = Result<String, WE>> + Send + 'static,
        WE: Display,
        C: Future<Output = Result<Vec<Finding>, CE>> + Send + 'static,
        CE: Display,
    {
        Self { server, which: question(handle.clone(), which), check: question(handle, check) }
    }
}

/// Binds a question to whom it is asked.
fn question<S, T, E, F>(handle: S, ask: impl Fn(S) -> F + Send + Sync + 'static) -> Question<T>
where
    S: Clone + Send + Sync + 'static,
    E: Display,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    Box::new(move || {
        let answer = ask(handle.clone());
        Box::pin(async move { answer.await.map_err(|error| error.to_string()) })
    })
}

/// The servers of a role that was not refused any of them so far.
pub struct Conditions {
    watched: Vec<Watched>,
    met: Met,
    warned: BTreeSet<String>,
}

struct Watched {
    condition: Condition,
    /// Which server was checked; none while it is away.
    checked: Option<String>,
}

/// Whether every server's settings are known to be as they must be, for a role's readiness.
#[derive(Clone, Default)]
pub struct Met {
    unchecked: Arc<Mutex<BTreeMap<&'static str, String>>>,
}

impl Met {
    /// The error says which server could not be asked.
    pub fn ready(&self) -> Result<(), String> {
        let sentences: Vec<String> = self
            .lock()
            .iter()
            .map(|(server, why)| format!("the settings of {server} could not be checked: {why}"))
            .collect();
        if sentences.is_empty() { Ok(()) } else { Err(sentences.join("; ")) }
    }

    /// Each change of what is away is logged once.
    fn tell(&self, unchecked: BTreeMap<&'static str, String>) {
        let mut told = self.lock();
        for (server, why) in &unchecked {
            if !told.contains_key(server) {
                tracing::warn!("the settings of {server} could not be checked: {why}");
            }
        }
        for server in told.keys().filter(|server| !unchecked.contains_key(*server)) {
            tracing::info!("the settings of {server} are checked");
        }
        *told = unchecked;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
        self.unchecked.lock().expect("no holder of the lock panics")
    }
}

impl Conditions {
    /// Looks at each server once. A server that does not answer is no error, and looked at again by
    /// [`Conditions::keep`]; a setting that is refused is one, with every finding in its text.
    pub async fn look(conditions: impl IntoIterator<Item = Condition>) -> anyhow::Result<Self> {
        let watched = conditions.into_iter().map(|condition| Watched { condition, checked: None });
        let mut this =
            Self { watched: watched.collect(), met: Met::default(), warned: BTreeSet::new() };
        this.look_again().await?;
        Ok(this)
    }

    /// For the role's readiness.
    pub fn met(&self) -> Met {
        self.met.clone()
    }

    /// Looks again at every server that was away, or is another one, until `shutdown`. Ends with an
    /// error when a setting is refused: the role must not go on.
    pub async fn keep(mut self, shutdown: CancellationToken) -> anyhow::Result<()> {
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                looked = self.look_again() => looked?,
            }
        }
    }

    async fn look_again(&mut self) -> anyhow::Result<()> {
        let looked = join_all(self.watched.iter_mut().map(Watched::look)).await;
        let mut refused = Vec::new();
        let mut unchecked = BTreeMap::new();
        for (watched, outcome) in self.watched.iter().zip(looked) {
            match outcome {
                Ok(findings) => {
                    for finding in findings {
                        if finding.is_refused() {
                            refused.push(finding.to_string());
                        } else if self.warned.insert(finding.to_string()) {
                            tracing::warn!("{finding}");
                        }
                    }
                }
                Err(why) => {
                    unchecked.insert(watched.condition.server, why);
                }
            }
        }
        self.met.tell(unchecked);
        if !refused.is_empty() {
            bail!("refused, as likes could be lost or counted twice:\n  {}", refused.join("\n  "));
        }
        Ok(())
    }
}

impl Watched {
    /// What was found, where it had to be looked for.
    async fn look(&mut self) -> Result<Vec<Finding>, String> {
        let checked = self.checked.take();
        let which = (self.condition.which)().await;
        if checked.is_some() && which.as_ref().ok() == checked.as_ref() {
            self.checked = checked;
            return Ok(Vec::new());
        }
        let findings = (self.condition.check)().await?;
        // What was seen counts, whether the server is of any use at the moment or not.
        if !findings.iter().any(Finding::is_refused) {
            self.checked = Some(which?);
        }
        Ok(findings)
    }
}

#[cfg(test)]
#[path = "conditions/tests.rs"]
mod tests;
