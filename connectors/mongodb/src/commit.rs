//! Committing a batch: the fence, the counts and the checkpoint in one transaction.

use std::collections::HashMap;

use likewise_core::{Batch, Offset, PostId, Recount};
use mongodb::ClientSession;
use mongodb::bson::{Document, RawArrayBuf, RawDocumentBuf, doc, rawdoc};

use crate::checkpoints::{self, checkpoint_id};
use crate::dead_letters;
use crate::repairs::{repair_id, repair_statement};
use crate::shares::{self, share_of};
use crate::store::{CHECKPOINTS, DEAD_LETTERS, REPAIRS, counts_name};
use crate::transaction::{Aborted, Statements, Stopped};
use crate::{Claim, Error, Store};

/// A batch that is in the store, with majority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The recounts of the batch that found another number than was counted.
    pub corrections: Vec<Correction>,
    /// How often the transaction ran again after a transient error.
    pub transaction_retries: u64,
    /// How often the commit was sent again because its outcome was unknown.
    pub commit_retries: u64,
}

/// A count that a recount made right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// Which post.
    pub post: PostId,
    /// What it has at that place of the log.
    pub likes: i64,
    /// Where in the partition the recount stands.
    pub offset: Offset,
    /// What was missing (or, below zero, too much).
    pub drift: i64,
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
            Ok((corrections, retries)) => Ok(Committed {
                corrections,
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
    type Value = Vec<Correction>;
    type Stop = CommitError;

    async fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> Result<Self::Value, Stopped<CommitError>> {
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
        let corrections = store.corrections(session, claim, batch).await?;
        let counts = counts_name(claim.generation);
        store.update_all(session, &counts, shares::count_statements(batch)).await?;
        store.settle_repairs(session, claim, batch).await?;
        let letters = dead_letters::statements(claim, batch);
        store.update_all(session, DEAD_LETTERS, letters).await?;
        Ok(corrections)
    }
}

impl Store {
    /// The recounts that found another number than was counted.
    async fn corrections(
        &self,
        session: &mut ClientSession,
        claim: &Claim,
        batch: &Batch,
    ) -> Result<Vec<Correction>, Stopped<CommitError>> {
        if batch.recounts.is_empty() {
            return Ok(Vec::new());
        }
        let stop = |error: Error| Stopped::Decided(CommitError::Store(error));
        let posts: Vec<&str> = batch.recounts.iter().map(|recount| recount.post.as_str()).collect();
        let counts = self.counts(claim.generation);
        let mut cursor =
            counts.find(doc! { "_id": { "$in": posts } }).session(&mut *session).await?;
        let mut stored: HashMap<PostId, Document> = HashMap::new();
        while let Some(document) = cursor.next(&mut *session).await.transpose()? {
            // A recount puts right also a count that cannot be read.
            let post = document.get_str("_id").map(PostId::from_log);
            stored.insert(post.map_err(|error| stop(checkpoints::malformed(error)))?, document);
        }
        let corrections = batch.recounts.iter().filter_map(|recount| {
            let document = stored.get(&recount.post);
            let drift =
                recount.drift(document.map_or(0, |stored| share_of(stored, recount.source)));
            let Recount { post, likes, offset, .. } = recount.clone();
            (drift != 0).then_some(Correction { post, likes, offset, drift })
        });
        Ok(corrections.collect())
    }

    /// Runs many update statements in one command, each of which must match or insert a document.
    pub(crate) async fn update_all<E: From<Error>>(
        &self,
        session: &mut ClientSession,
        collection: &str,
        statements: Vec<RawDocumentBuf>,
    ) -> Result<(), Stopped<E>> {
        let incomplete = |what: String| Stopped::Decided(Error::Incomplete(what).into());
        if statements.is_empty() {
            return Ok(());
        }
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
        let recounted = batch.recounts.iter();
        let recounted: Vec<String> = recounted
            .map(|recount| repair_id(claim.generation, &recount.post, recount.source))
            .collect();
        if !recounted.is_empty() {
            let closed = doc! { "_id": { "$in": recounted } };
            repairs.delete_many(closed).session(&mut *session).await?;
        }
        let raised = batch.repairs.iter();
        let raised = raised
            .map(|repair| repair_statement(claim.generation, claim.partition, repair))
            .collect();
        self.update_all(session, REPAIRS, raised).await
    }
}
