//! One partition: claim it, gather batches, commit them, until it is taken away.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use likewise_core::{Batch, Checkpoint};
use likewise_kafka::{Assignment, PartitionQueue};
use likewise_mongodb::{Claim, ClaimError, CommitError, Committed};
use metrics::counter;
use tokio_util::sync::CancellationToken;

use crate::board::State;
use crate::gather::gather;
use crate::{Shared, telemetry};

/// Why counting a partition was interrupted.
#[derive(Debug, thiserror::Error)]
enum Interrupted {
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error(transparent)]
    Log(#[from] likewise_kafka::Error),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Counts a partition until `let_go`. Whatever interrupts it, it claims again, with back-off, and
/// goes on from the checkpoint: a batch in hand is dropped, never half written.
pub(crate) async fn count(
    shared: &Shared,
    partition: u32,
    assignment: Assignment,
    let_go: CancellationToken,
) {
    shared.board.set(partition, State::Claiming);
    let mut pauses = pauses();
    while !let_go.is_cancelled() {
        let mut progressed = false;
        let counting = claim_and_count(shared, partition, assignment, &let_go, &mut progressed);
        let Err(interrupted) = counting.await else { break };
        shared.log.pause(partition, assignment);
        match &interrupted {
            Interrupted::Claim(ClaimError::Refused(refusal)) => {
                tracing::error!(partition, "the partition cannot be counted: {refusal}");
                shared.board.set(partition, State::Waiting(refusal.to_string()));
            }
            _ => {
                let error = &interrupted as &dyn std::error::Error;
                tracing::warn!(
                    partition,
                    error,
                    "counting was interrupted; the partition is claimed again"
                );
                shared.board.set(partition, State::Claiming);
            }
        }
        if progressed {
            pauses = self::pauses();
        }
        let pause = pauses.next().unwrap_or(LONGEST_PAUSE);
        tokio::select! {
            () = let_go.cancelled() => break,
            () = tokio::time::sleep(pause) => {}
        }
    }
    shared.board.remove(partition);
}

const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Growing pauses between claims.
fn pauses() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(LONGEST_PAUSE)
        .with_jitter()
        .without_max_times()
        .build()
}

async fn claim_and_count(
    shared: &Shared,
    partition: u32,
    assignment: Assignment,
    let_go: &CancellationToken,
    progressed: &mut bool,
) -> Result<(), Interrupted> {
    let settings = &shared.settings;
    let bounds = shared.log.bounds(partition).await?;
    let (claim, mut checkpoint) = shared
        .store
        .claim(settings.generation, &settings.log.topic, partition, bounds, &settings.owner)
        .await?;
    let claim = Arc::new(claim);
    let Some(queue) = shared.log.start(partition, assignment, checkpoint.next_offset)? else {
        return Ok(());
    };
    tracing::info!(partition, epoch = claim.epoch, offset = checkpoint.next_offset, "counting");
    shared.board.set(partition, State::Counting);
    while let Some(batch) = next_batch(shared, &queue, checkpoint, let_go).await? {
        checkpoint = batch.checkpoint.clone();
        commit(shared, claim.clone(), batch).await?;
        *progressed = true;
    }
    Ok(())
}

/// None when the partition was taken away; a batch half gathered is dropped.
async fn next_batch(
    shared: &Shared,
    queue: &PartitionQueue,
    checkpoint: Checkpoint,
    let_go: &CancellationToken,
) -> Result<Option<Batch>, Interrupted> {
    tokio::select! {
        () = let_go.cancelled() => Ok(None),
        batch = gather(queue, checkpoint, shared.settings.limits) => Ok(Some(batch?)),
    }
}

/// Commits in a task of its own: nothing may drop a commit that was sent.
async fn commit(shared: &Shared, claim: Arc<Claim>, batch: Batch) -> Result<(), Interrupted> {
    let partition = claim.partition;
    let store = shared.store.clone();
    let committing = tokio::spawn(async move {
        let outcome = store.commit(&claim, &batch).await;
        (outcome, batch)
    });
    let (outcome, batch) = committing.await.expect("a commit does not panic");
    match outcome {
        Ok(Committed { transaction_retries, commit_retries }) => {
            counter!(telemetry::RETRIES).increment(transaction_retries);
            counter!(telemetry::COMMIT_RETRIES).increment(commit_retries);
            telemetry::committed(partition, &batch);
            telemetry::alarm(partition, &batch);
            Ok(())
        }
        Err(error) => {
            match &error {
                CommitError::Fenced => {
                    counter!(telemetry::FENCED).increment(1);
                    tracing::warn!(
                        partition,
                        records = batch.tally.records,
                        "a commit was fenced: the batch is dropped"
                    );
                }
                CommitError::InDoubt(_) => counter!(telemetry::IN_DOUBT).increment(1),
                CommitError::Store(_) => {}
            }
            Err(error.into())
        }
    }
}
