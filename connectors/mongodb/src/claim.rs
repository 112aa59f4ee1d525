//! Claiming a partition: from here on every commit of an earlier owner matches nothing.

use likewise_core::{Admission, Checkpoint, Epoch, GenerationId, LogBounds, Refusal, admit};
use mongodb::ClientSession;
use mongodb::bson::doc;

use crate::checkpoints::{self, checkpoint_id};
use crate::store::{CHECKPOINTS, GENERATIONS};
use crate::transaction::{Aborted, Statements, Stopped};
use crate::{Error, Store, generations};

/// A partition that is ours until somebody else claims it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Which generation.
    pub generation: GenerationId,
    /// Which topic.
    pub topic: String,
    /// Which partition.
    pub partition: u32,
    /// Which claim this is.
    pub epoch: Epoch,
}

/// Why a partition could not be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// It must not be counted as things stand; the message says what to run.
    #[error(transparent)]
    Refused(Refusal),
    /// MongoDB failed.
    #[error(transparent)]
    Store(#[from] Error),
}

impl Store {
    /// Claims a partition: checks that it may be counted, raises its epoch and returns how far it
    /// is. An outcome in doubt is an error, and claiming again is always safe.
    pub async fn claim(
        &self,
        generation: GenerationId,
        topic: &str,
        partition: u32,
        log: LogBounds,
        owner: &str,
    ) -> Result<(Claim, Checkpoint), ClaimError> {
        let statements = ClaimStatements { generation, topic, partition, log, owner };
        match self.transact(&statements).await {
            Ok(((epoch, checkpoint), _)) => {
                let topic = topic.to_owned();
                Ok((Claim { generation, topic, partition, epoch }, checkpoint))
            }
            Err(Aborted::Nothing(error)) => Err(error),
            Err(Aborted::InDoubt(error)) => Err(error.into()),
        }
    }
}

struct ClaimStatements<'a> {
    generation: GenerationId,
    topic: &'a str,
    partition: u32,
    log: LogBounds,
    owner: &'a str,
}

impl Statements for ClaimStatements<'_> {
    type Value = (Epoch, Checkpoint);
    type Stop = ClaimError;

    async fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> Result<Self::Value, Stopped<ClaimError>> {
        let stop = |error: Error| Stopped::Decided(ClaimError::Store(error));
        let &Self { generation, topic, partition, log, owner } = self;
        let generations = store.collection(GENERATIONS);
        let checkpoints = store.collection(CHECKPOINTS);
        let id = checkpoint_id(generation, topic, partition);

        let of_generation = doc! { "_id": generation };
        let known = generations.find_one(of_generation.clone()).session(&mut *session).await?;
        let known = known.map(generations::read).transpose().map_err(stop)?;
        let stored = checkpoints.find_one(doc! { "_id": &id }).session(&mut *session).await?;
        let stored = stored.map(checkpoints::read).transpose().map_err(stop)?;
        let epoch = stored.as_ref().map_or(0, |stored| stored.epoch) + 1;
        let checkpoint = stored.map(|stored| stored.checkpoint()).transpose().map_err(stop)?;

        let admission = admit(generation, known.as_ref(), partition, checkpoint, log)
            .map_err(|refusal| Stopped::Decided(ClaimError::Refused(refusal)))?;
        match admission {
            Admission::Open(checkpoint) => {
                let opened = doc! { "$addToSet": { "opened": i64::from(partition) } };
                generations.update_one(of_generation, opened).session(&mut *session).await?;
                let mut document = doc! {
                    "_id": id, "generation": generation, "topic": topic,
                    "partition": i64::from(partition), "epoch": epoch, "owner": owner,
                };
                document.extend(checkpoints::progress(&checkpoint).map_err(stop)?);
                checkpoints.insert_one(document).session(&mut *session).await?;
                Ok((epoch, checkpoint))
            }
            Admission::Resume(checkpoint) => {
                let raised = doc! { "$set": { "epoch": epoch, "owner": owner } };
                checkpoints.update_one(doc! { "_id": id }, raised).session(&mut *session).await?;
                Ok((epoch, checkpoint))
            }
        }
    }
}
