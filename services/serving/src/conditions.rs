//! What a role asks of its servers' settings, at its start and whenever a server was away.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::bail;
use futures_util::future::{join_all, try_join_all};
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
}

struct Watched {
    condition: Condition,
    met: Met,
    /// Which server was checked; none while it is away.
    checked: Option<String>,
    /// What was logged, once each.
    warned: BTreeSet<String>,
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

    /// A server that comes or goes is logged, once.
    fn tell(&self, server: &'static str, unchecked: Option<&String>) {
        let mut told = self.lock();
        match unchecked {
            Some(why) => {
                if told.insert(server, why.clone()).is_none() {
                    tracing::warn!("the settings of {server} could not be checked: {why}");
                }
            }
            None => {
                if told.remove(server).is_some() {
                    tracing::info!("the settings of {server} are checked");
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
        self.unchecked.lock().expect("no holder of the lock panics")
    }
}

impl Conditions {
    /// Looks at each server once. A server that does not answer is no error, and looked at again by
    /// [`Conditions::keep`]; a setting that is refused is one, with every finding in its text.
    pub async fn look(conditions: impl IntoIterator<Item = Condition>) -> anyhow::Result<Self> {
        let met = Met::default();
        let watched = |condition| {
            let (checked, warned) = (None, BTreeSet::new());
            Watched { condition, met: met.clone(), checked, warned }
        };
        let watched = conditions.into_iter().map(watched).collect();
        let mut this = Self { watched, met };
        this.look_again().await?;
        Ok(this)
    }

    /// For the role's readiness.
    pub fn met(&self) -> Met {
        self.met.clone()
    }

    /// Looks again at every server that was away, or is another one, until `shutdown`. Ends with an
    /// error when a setting is refused: the role must not go on.
    pub async fn keep(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        // Each by itself: one that takes its time to answer holds none of the others up.
        let kept = try_join_all(self.watched.into_iter().map(Watched::keep));
        tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            kept = kept => kept.map(drop),
        }
    }

    async fn look_again(&mut self) -> anyhow::Result<()> {
        let looked = join_all(self.watched.iter_mut().map(Watched::look)).await;
        refuse(&looked.concat())
    }
}

impl Watched {
    async fn keep(mut self) -> anyhow::Result<()> {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            refuse(&self.look().await)?;
        }
    }

    /// What is refused. All else is told here.
    async fn look(&mut self) -> Vec<Finding> {
        let looked = self.ask().await;
        self.met.tell(self.condition.server, looked.as_ref().err());
        let (refused, warnings): (Vec<_>, Vec<_>) =
            looked.unwrap_or_default().into_iter().partition(Finding::is_refused);
        for warning in warnings {
            if self.warned.insert(warning.to_string()) {
                tracing::warn!("{warning}");
            }
        }
        refused
    }

    /// What was found, where it had to be looked for.
    async fn ask(&mut self) -> Result<Vec<Finding>, String> {
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

fn refuse(refused: &[Finding]) -> anyhow::Result<()> {
    if refused.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = refused.iter().map(|finding| format!("\n  {finding}")).collect();
    bail!("refused, as likes could be lost or counted twice:{}", lines.concat())
}

#[cfg(test)]
#[path = "conditions/tests.rs"]
mod tests;
