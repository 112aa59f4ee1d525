//! Committing a batch: the fence, the counts and the checkpoint in one transaction.

use std::collections::HashMap;

use likewise_core::{Batch, PostEffect, PostId};
use mongodb::ClientSession;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, RawArrayBuf, RawDocumentBuf, doc, rawdoc};

use crate::checkpoints::{self, checkpoint_id};
use crate::store::{CHECKPOINTS, DEAD_LETTERS, REPAIRS, counts_name};
use crate::transaction::{Aborted, Statements, Stopped};
use crate::{Claim, Error, Store};

/// A batch that is in the store, with majority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// How often the transaction ran again after a transient error.
    pub transaction_retries: u64,
    /// How often the commit was sent again because its outcome was unknown.
    pub commit_retries: u64,
}

/// Why a batch is not in the store for certain.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Somebody else claimed the partition: nothing was written, and the batch is theirs to count.
    #[error("the partition was claimed by somebody else")]
    Fenced,
    /// The commit was sent, and its outcome is not known: claim again, and the checkpoint tells.
    #[error("the outcome of the commit is not known")]
    InDoubt(#[source] Error),
    /// Nothing was written.
    #[error(transparent)]
    Store(#[from] Error),
}

impl Store {
    /// Writes a batch, all of it or nothing. Not cancel-safe: run it in a task of its own, so that
    /// nothing drops it.
    pub async fn commit(&self, claim: &Claim, batch: &Batch) -> Result<Committed, CommitError> {
        match self.transact(&BatchStatements { claim, batch }).await {
            Ok(((), retries)) => Ok(Committed {
                transaction_retries: retries.transactions,
                commit_retries: retries.commits,
            }),
            Err(Aborted::Nothing(error)) => Err(error),
            Err(Aborted::InDoubt(error)) => Err(CommitError::InDoubt(error)),
        }
    }
}

struct BatchStatements<'a> {
    claim: &'a Claim,
    batch: &'a Batch,
}

impl Statements for BatchStatements<'_> {
    type Value = ();
    type Stop = CommitError;

    async fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> Result<(), Stopped<CommitError>> {
        let &Self { claim, batch } = self;
        let stop = |error: Error| Stopped::Decided(CommitError::Store(error));
        let fence = doc! {
            "_id": checkpoint_id(claim.generation, &claim.topic, claim.partition),
            "epoch": claim.epoch,
            "next_offset": batch.start,
        };
        let progress = checkpoints::progress(&batch.checkpoint).map_err(stop)?;
        let checkpoints = store.collection(CHECKPOINTS);
        let update = checkpoints.update_one(fence, doc! { "$set": progress });
        if update.session(&mut *session).await?.matched_count == 0 {
            return Err(Stopped::Decided(CommitError::Fenced));
        }
        let statements = count_statements(batch);
        if !statements.is_empty() {
            store.update_all(session, &counts_name(claim.generation), statements).await?;
        }
        store.settle_repairs(session, claim, batch).await?;
        let letters = dead_letter_statements(claim, batch);
        if !letters.is_empty() {
            store.update_all(session, DEAD_LETTERS, letters).await?;
        }
        Ok(())
    }
}

impl Store {
    /// Runs many update statements in one command, each of which must match or insert a document.
    async fn update_all(
        &self,
        session: &mut ClientSession,
        collection: &str,
        statements: Vec<RawDocumentBuf>,
    ) -> Result<(), Stopped<CommitError>> {
        let incomplete =
            |what: String| Stopped::Decided(CommitError::Store(Error::Incomplete(what)));
        let expected = i64::try_from(statements.len()).expect("a batch fits into memory");
        let mut updates = RawArrayBuf::new();
        for statement in statements {
            updates.push(statement);
        }
        let command = rawdoc! { "update": collection, "ordered": false, "updates": updates };
        let reply = self.database.run_raw_command(command).session(&mut *session).await?;
        // The server answers ok: 1 with the failures inside.
        if let Some(errors) = reply.get("writeErrors") {
            return Err(incomplete(format!("{errors}")));
        }
        let done = reply.get("n").and_then(|n| n.as_i64().or(n.as_i32().map(i64::from)));
        if done != Some(expected) {
            return Err(incomplete(format!("{done:?} of {expected} in {collection}")));
        }
        Ok(())
    }

    /// A recount closes what was raised before it; what a batch raises stands after its recounts.
    async fn settle_repairs(
        &self,
        session: &mut ClientSession,
        claim: &Claim,
        batch: &Batch,
    ) -> Result<(), Stopped<CommitError>> {
        let repairs = self.collection(REPAIRS);
        let recounted: Vec<String> = batch
            .counts
            .iter()
            .filter(|(_, effect)| effect.recount.is_some())
            .map(|(post, _)| repair_id(claim, post))
            .collect();
        if !recounted.is_empty() {
            let closed = doc! { "_id": { "$in": recounted } };
            repairs.delete_many(closed).session(&mut *session).await?;
        }
        for repair in &batch.repairs {
            let raised = doc! {
                "generation": claim.generation,
                "post_id": repair.post.as_str(),
                "partition": i64::from(claim.partition),
                "offset": repair.offset,
                "reason": repair.reason.to_string(),
            };
            let id = doc! { "_id": repair_id(claim, &repair.post) };
            repairs
                .update_one(id, doc! { "$set": raised })
                .upsert(true)
                .session(&mut *session)
                .await?;
        }
        Ok(())
    }
}

fn repair_id(claim: &Claim, post: &PostId) -> String {
    format!("{}/{post}", claim.generation)
}

/// One statement a post. A post with an open repair carries the flag `repair`, so that a read of
/// the count alone knows.
fn count_statements(batch: &Batch) -> Vec<RawDocumentBuf> {
    let mut effects: HashMap<&PostId, (PostEffect, bool)> =
        batch.counts.iter().map(|(post, effect)| (post, (*effect, false))).collect();
    for repair in &batch.repairs {
        effects.entry(&repair.post).or_default().1 = true;
    }
    effects
        .into_iter()
        .map(|(post, (effect, repair))| {
            let update = match (effect.recount, repair) {
                (None, false) => rawdoc! { "$inc": { "n": effect.add } },
                (None, true) => rawdoc! { "$inc": { "n": effect.add }, "$set": { "repair": true } },
                (Some(recount), false) => rawdoc! {
                    "$set": { "n": recount.likes + effect.add }, "$unset": { "repair": "" }
                },
                (Some(recount), true) => rawdoc! {
                    "$set": { "n": recount.likes + effect.add, "repair": true }
                },
            };
            rawdoc! { "q": { "_id": post.as_str() }, "u": update, "upsert": true }
        })
        .collect()
}

/// Two generations read the same records: each letter is kept once.
fn dead_letter_statements(claim: &Claim, batch: &Batch) -> Vec<RawDocumentBuf> {
    batch
        .dead_letters
        .iter()
        .map(|letter| {
            let payload = Binary { subtype: BinarySubtype::Generic, bytes: letter.payload.clone() };
            let id = format!("{}/{}/{}", claim.topic, claim.partition, letter.offset);
            rawdoc! {
                "q": { "_id": id },
                "u": { "$setOnInsert": {
                    "topic": claim.topic.as_str(),
                    "partition": i64::from(claim.partition),
                    "offset": letter.offset,
                    "reason": letter.reason.to_string(),
                    "payload": payload,
                } },
                "upsert": true,
            }
        })
        .collect()
}
