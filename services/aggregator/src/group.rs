//! Following the consumer group: one worker for each partition that is ours.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::anyhow;
use likewise_kafka::{Assignment, Event};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{Shared, worker};

/// A running worker, or one that was told to let go and has not ended yet.
struct Worker {
    let_go: CancellationToken,
    task: JoinHandle<()>,
}

/// Starts and ends workers until `shutdown`; ends when each of them has.
pub(crate) async fn follow(
    shared: Arc<Shared>,
    mut events: UnboundedReceiver<Event>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let mut workers: HashMap<u32, Worker> = HashMap::new();
    let outcome = {
        let serving = shared.log.serve();
        tokio::pin!(serving);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break Ok(()),
                error = &mut serving => break Err(anyhow!(error).context("the change log cannot be read")),
                event = events.recv() => match event {
                    Some(Event::Assigned(partition, assignment)) => {
                        let before = workers.remove(&partition);
                        let worker = start(&shared, partition, assignment, before);
                        workers.insert(partition, worker);
                    }
                    Some(Event::Revoked(partition)) => {
                        if let Some(worker) = workers.get(&partition) {
                            worker.let_go.cancel();
                        }
                    }
                    Some(Event::Settled) => shared.board.settled(),
                    None => break Err(anyhow!("the consumer group went silent")),
                },
            }
        }
    };
    for worker in workers.values() {
        worker.let_go.cancel();
    }
    for worker in workers.into_values() {
        worker.task.await?;
    }
    outcome
}

/// A partition has one worker at a time: the new one begins when the one before has ended.
fn start(
    shared: &Arc<Shared>,
    partition: u32,
    assignment: Assignment,
    before: Option<Worker>,
) -> Worker {
    let let_go = CancellationToken::new();
    let (shared, until) = (shared.clone(), let_go.clone());
    let task = tokio::spawn(async move {
        if let Some(before) = before {
            before.let_go.cancel();
            if let Err(error) = before.task.await {
                tracing::error!(partition, %error, "a worker panicked");
            }
        }
        worker::count(&shared, partition, assignment, until).await;
    });
    Worker { let_go, task }
}
