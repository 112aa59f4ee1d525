//! One partition: claim it, gather batches, commit them, until it is taken away.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use likewise_core::{Batch, Checkpoint, Fingerprint, Refusal, know_again, read_from};
use likewise_kafka::{Assignment, PartitionQueue};
use likewise_mongodb::{Claim, ClaimError, CommitError, Committed};
use metrics::counter;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::board::State;
use crate::gather::{BatchLimits, Partition, gather};
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
    /// The log is not the one that was counted.
    #[error(transparent)]
    LogChanged(Refusal),
    /// The group has given the partition to somebody else, and this member will hear of it.
    #[error("the group has given the partition to another member")]
    GivenAway,
    /// Nothing of the generation may be counted at the moment.
    #[error("{0}")]
    Stopped(String),
}

impl Interrupted {
    /// Whether it is known to pass by itself. Anything else is tried again too, in case an operator
    /// puts it right, but the role is not ready and says why.
    fn passes(&self) -> bool {
        match self {
            Self::Claim(ClaimError::Refused(_)) | Self::LogChanged(_) | Self::Stopped(_) => false,
            Self::GivenAway => true,
            Self::Claim(ClaimError::Store(error)) | Self::Commit(CommitError::Store(error)) => {
                error.is_transient()
            }
            Self::Commit(CommitError::Fenced | CommitError::InDoubt(_)) => true,
            Self::Log(error) => matches!(error, likewise_kafka::Error::Unavailable(_)),
        }
    }
}

/// For how long a commit may take before it is worth a word.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest pause between two claims.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The pause after a fenced commit: longer than two heartbeats, by which the group has told a member
/// that was frozen that its partitions are somebody else's.
const FENCED_PAUSE: Duration = Duration::from_secs(5);

/// Counts a partition until `let_go`. Whatever interrupts it, it claims again, with back-off, and
/// goes on from the checkpoint: a batch in hand is dropped, never half written.
pub(crate) async fn count(
    shared: &Shared,
    partition: u32,
    assignment: Assignment,
    let_go: CancellationToken,
) {
    let limits = shared.settings.limits;
    let mut worker = Worker { shared, partition, assignment, let_go, limits, progressed: false };
    worker.count().await;
    shared.board.remove(partition);
}

struct Worker<'a> {
    shared: &'a Shared,
    partition: u32,
    assignment: Assignment,
    let_go: CancellationToken,
    /// Halved where a batch was too large for the store, and grown back by successes.
    limits: BatchLimits,
    /// Whether anything was committed since the last claim.
    progressed: bool,
}

impl Worker<'_> {
    async fn count(&mut self) {
        self.tell(State::Claiming);
        let mut pauses = pauses();
        while !self.let_go.is_cancelled() {
            self.progressed = false;
            let Err(interrupted) = self.claim_and_count().await else { break };
            self.shared.log.pause(self.partition, self.assignment);
            self.report(&interrupted);
            if self.progressed {
                pauses = self::pauses();
            }
            let pause = match interrupted {
                Interrupted::Commit(CommitError::Fenced) => FENCED_PAUSE,
                _ => pauses.next().unwrap_or(LONGEST_PAUSE),
            };
            tokio::select! {
                () = self.let_go.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn claim_and_count(&mut self) -> Result<(), Interrupted> {
        let Shared { settings, store, log, .. } = self.shared;
        let partition = self.partition;
        if !log.holds(partition, self.assignment) {
            return Ok(());
        }
        let bounds = log.bounds(partition).await?;
        let counted = store.next_offset(settings.generation, &settings.log.topic, partition).await;
        let counted = counted.map_err(ClaimError::Store)?;
        let confirmed = tokio::select! {
            biased;
            // Whoever answers a question that is dropped, answers nobody.
            () = self.let_go.cancelled() => return Ok(()),
            confirmed =
                log.confirm(partition, self.assignment, counted.unwrap_or(bounds.low)) => confirmed?,
        };
        if !confirmed {
            return Err(Interrupted::GivenAway);
        }
        let (claim, mut checkpoint) = store
            .claim(settings.generation, &settings.log.topic, partition, bounds, &settings.owner)
            .await?;
        let claim = Arc::new(claim);
        let from = read_from(&checkpoint, bounds.low);
        let Some(queue) = log.start(partition, self.assignment, from)? else {
            return Ok(());
        };
        if from < checkpoint.next_offset && !self.knows_again(&queue, &checkpoint).await? {
            return Ok(());
        }
        tracing::info!(partition, epoch = claim.epoch, offset = checkpoint.next_offset, "counting");
        self.tell(State::Counting);
        let place = Partition { number: partition, of: bounds.partitions };
        while let Some(batch) = self.next_batch(&queue, place, checkpoint).await? {
            checkpoint = batch.checkpoint.clone();
            self.commit(claim.clone(), batch).await?;
        }
        Ok(())
    }

    /// Reads the last record that was counted. False when the partition was taken away.
    async fn knows_again(
        &self,
        queue: &PartitionQueue,
        checkpoint: &Checkpoint,
    ) -> Result<bool, Interrupted> {
        let record = tokio::select! {
            biased;
            () = self.let_go.cancelled() => return Ok(false),
            record = queue.next() => record?,
        };
        let found = Fingerprint::of(record.key(), record.value());
        know_again(self.partition, checkpoint, record.offset(), found)
            .map_err(Interrupted::LogChanged)?;
        Ok(true)
    }

    /// None when the partition was taken away; a batch half gathered is dropped.
    async fn next_batch(
        &self,
        queue: &PartitionQueue,
        place: Partition,
        checkpoint: Checkpoint,
    ) -> Result<Option<Batch>, Interrupted> {
        let mut stop = self.shared.stop.clone();
        tokio::select! {
            biased;
            () = self.let_go.cancelled() => Ok(None),
            Ok(reason) = stop.wait_for(Option::is_some) => {
                Err(Interrupted::Stopped(reason.clone().unwrap_or_default()))
            }
            batch = gather(queue, place, checkpoint, self.limits) => Ok(Some(batch?)),
        }
    }

    /// Commits in a task of its own: nothing may drop a commit that was sent.
    async fn commit(&mut self, claim: Arc<Claim>, batch: Batch) -> Result<(), Interrupted> {
        let partition = self.partition;
        let store = self.shared.store.clone();
        let committing = tokio::spawn(async move {
            let outcome = store.commit(&claim, &batch).await;
            // Told here: nobody waits for a slow commit of a partition that was given away.
            tell_outcome(partition, &outcome, &batch);
            (outcome, batch)
        });
        tokio::pin!(committing);
        let ended = loop {
            match timeout(PATIENCE, &mut committing).await {
                Ok(ended) => break ended,
                // It goes on by itself, and its successor in this partition finds out how it ended.
                Err(_) if self.let_go.is_cancelled() => return Ok(()),
                Err(_) => self.tell(State::Waiting("MongoDB does not answer a commit".to_owned())),
            }
        };
        self.tell(State::Counting);
        let (outcome, batch) = ended.expect("a commit does not panic");
        match outcome {
            Ok(_) => {
                self.progressed = true;
                let most = self.shared.settings.limits.records;
                self.limits.records = most.min(self.limits.records.saturating_mul(2));
                Ok(())
            }
            Err(error) => {
                // Perhaps it was too large, or took too long: the same records come in smaller batches.
                if matches!(error, CommitError::Store(_)) {
                    self.limits.records = 1.max(batch.tally.records / 2);
                }
                Err(error.into())
            }
        }
    }

    fn tell(&self, state: State) {
        self.shared.board.set(self.partition, state);
    }

    fn report(&self, interrupted: &Interrupted) {
        let partition = self.partition;
        let error = interrupted as &dyn std::error::Error;
        if interrupted.passes() {
            tracing::warn!(
                partition,
                error,
                "counting was interrupted; the partition is claimed again"
            );
            self.tell(State::Claiming);
        } else {
            tracing::error!(partition, error, "the partition cannot be counted");
            self.tell(State::Waiting(interrupted.to_string()));
        }
    }
}

/// Counts how a commit ended, and says aloud what an operator must hear of.
fn tell_outcome(partition: u32, outcome: &Result<Committed, CommitError>, batch: &Batch) {
    match outcome {
        Ok(Committed { corrections, transaction_retries, commit_retries }) => {
            counter!(telemetry::RETRIES).increment(*transaction_retries);
            counter!(telemetry::COMMIT_RETRIES).increment(*commit_retries);
            telemetry::committed(partition, batch);
            telemetry::alarm(partition, batch);
            telemetry::corrected(partition, corrections);
        }
        Err(CommitError::Fenced) => {
            counter!(telemetry::FENCED).increment(1);
            let records = batch.tally.records;
            tracing::warn!(partition, records, "a commit was fenced: the batch is dropped");
        }
        Err(CommitError::InDoubt(_)) => counter!(telemetry::IN_DOUBT).increment(1),
        Err(CommitError::Store(_)) => {}
    }
}

/// Growing pauses between claims.
fn pauses() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(LONGEST_PAUSE)
        .with_jitter()
        .without_max_times()
        .build()
}
