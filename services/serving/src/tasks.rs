//! The long tasks of a role: when one ends, all end.

use std::future::Future;

use anyhow::anyhow;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Named tasks that live and end together.
pub struct Tasks {
    set: JoinSet<(&'static str, anyhow::Result<()>)>,
    shutdown: CancellationToken,
}

impl Tasks {
    /// Tasks that are asked to end by `shutdown`.
    pub fn new(shutdown: CancellationToken) -> Self {
        Self { set: JoinSet::new(), shutdown }
    }

    /// Starts a task, which must watch the shutdown token itself.
    pub fn spawn(
        &mut self,
        name: &'static str,
        task: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        self.set.spawn(async move { (name, task.await) });
    }

    /// Waits for all. A task that ends before it was asked to takes the others along, and is an error.
    pub async fn join(mut self) -> anyhow::Result<()> {
        let mut outcome = Ok(());
        while let Some(ended) = self.set.join_next().await {
            let early = !self.shutdown.is_cancelled();
            let result = match ended {
                Ok((name, Ok(()))) if early => Err(anyhow!("{name} ended early")),
                Ok((_, Ok(()))) => Ok(()),
                Ok((name, Err(error))) => Err(error.context(format!("{name} failed"))),
                Err(error) => Err(anyhow!(error).context("a task panicked")),
            };
            if let Err(error) = result {
                self.shutdown.cancel();
                if outcome.is_ok() {
                    outcome = Err(error);
                } else {
                    tracing::error!("{error:#}");
                }
            }
        }
        outcome
    }
}
