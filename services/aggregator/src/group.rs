//! Following the consumer group: one worker for each partition that is ours.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use likewise_kafka::{Assignment, Event};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::board::State;
use crate::{Shared, worker};

/// A running worker, or one that was told to let go and has not ended yet.
struct Worker {
    let_go: CancellationToken,
    ended: CancellationToken,
}

/// Starts and ends workers until `shutdown`; ends when each of them has.
pub(crate) async fn follow(
    shared: Arc<Shared>,
    mut events: UnboundedReceiver<Event>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let mut workers: HashMap<u32, Worker> = HashMap::new();
    let mut tasks = JoinSet::new();
    let outcome = {
        let serving = shared.log.serve();
        tokio::pin!(serving);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break Ok(()),
                error = &mut serving => {
                    break Err(anyhow!(error).context("the change log cannot be read"));
                }
                Some(ended) = tasks.join_next() => {
                    if let Err(error) = ended.context("a worker panicked") {
                        break Err(error);
                    }
                }
                event = events.recv() => match event {
                    Some(Event::Assigned(partition, assignment)) => {
                        shared.board.set(partition, State::Claiming);
                        let before = workers.remove(&partition);
                        let worker = start(&mut tasks, &shared, partition, assignment, before);
                        workers.insert(partition, worker);
                    }
                    Some(Event::Revoked(partition)) => {
                        if let Some(worker) = workers.get(&partition) {
                            worker.let_go.cancel();
                        }
                    }
                    Some(Event::Settled) => shared.board.settled(),
                    Some(Event::Lost) => shared.board.lost(),
                    None => break Err(anyhow!("the consumer group went silent")),
                },
            }
        }
    };
    for worker in workers.values() {
        worker.let_go.cancel();
    }
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a worker panicked");
        }
    }
    outcome
}

/// A partition has one worker at a time: the new one begins when the one before has ended.
fn start(
    tasks: &mut JoinSet<()>,
    shared: &Arc<Shared>,
    partition: u32,
    assignment: Assignment,
    before: Option<Worker>,
) -> Worker {
    let (let_go, ended) = (CancellationToken::new(), CancellationToken::new());
    let (shared, until, end) = (shared.clone(), let_go.clone(), ended.clone());
    tasks.spawn(async move {
        let _ended_also_by_a_panic = end.drop_guard();
        if let Some(before) = before {
            before.let_go.cancel();
            before.ended.cancelled().await;
        }
        worker::count(&shared, partition, assignment, until).await;
    });
    Worker { let_go, ended }
}
