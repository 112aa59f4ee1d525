//! `repairs`: posts whose count is in doubt until their next recount.
//!
//! ```text
//! { _id: "1/0/p1", generation: 1, source: 0, post_id: "p1", partition: 2, offset: 1041, reason: "…" }
//! ```
//! The count of such a post carries a flag, so that a read of the count alone knows. A repair is closed
//! by the batch that applies a recount of the post and source which stands later in the log.

use likewise_core::{GenerationId, Offset, PostId, Repair, RepairReason, SourceNumber};
use mongodb::ClientSession;
use mongodb::bson::{Document, RawDocumentBuf, doc, rawdoc};

use crate::checkpoints::{self, checkpoint_id};
use crate::store::{CHECKPOINTS, REPAIRS};
use crate::transaction::{Aborted, Statements, Stopped};
use crate::{Error, Store, reads};

/// A post whose count is in doubt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OpenRepair {
    /// In which generation.
    pub generation: GenerationId,
    /// Which post.
    pub post: PostId,
    /// Where in its partition the doubt arose.
    pub offset: Offset,
}

pub(crate) fn repair_id(generation: GenerationId, post: &PostId, source: SourceNumber) -> String {
    format!("{generation}/{source}/{post}")
}

/// The statement that raises a repair, or renews the one that is open.
pub(crate) fn repair_statement(
    generation: GenerationId,
    partition: u32,
    repair: &Repair,
) -> RawDocumentBuf {
    let source = i64::try_from(repair.source).expect("sources are few");
    rawdoc! {
        "q": { "_id": repair_id(generation, &repair.post, repair.source) },
        "u": { "$set": {
            "generation": generation,
            "source": source,
            "post_id": repair.post.as_str(),
            "partition": i64::from(partition),
            "offset": repair.offset,
            "reason": repair.reason.to_string(),
        } },
        "upsert": true,
    }
}

impl Store {
    /// Posts that wait for a recount, in any generation: `limit` of them at most.
    pub async fn repairs(&self, limit: i64) -> Result<Vec<OpenRepair>, Error> {
        let repairs = self.collection(REPAIRS);
        let documents = self.read_all(repairs.find(doc! {}).limit(limit)).await?;
        let read = |document: &Document| -> Result<OpenRepair, mongodb::bson::error::Error> {
            Ok(OpenRepair {
                generation: document.get_i64("generation")?,
                post: PostId::from_log(document.get_str("post_id")?),
                offset: document.get_i64("offset")?,
            })
        };
        let repairs: Result<Vec<_>, _> = documents.iter().map(read).collect();
        repairs.map_err(|error| Error::Document { collection: REPAIRS, what: error.to_string() })
    }

    /// How many repairs are open.
    pub async fn open_repairs(&self, generation: GenerationId) -> Result<u64, Error> {
        let repairs = self.collection(REPAIRS);
        self.within(repairs.count_documents(doc! { "generation": generation })).await
    }

    /// Posts of a generation whose stored sum is below zero: `limit` of them at most.
    pub async fn negative_sums(
        &self,
        generation: GenerationId,
        limit: i64,
    ) -> Result<Vec<PostId>, Error> {
        let counts = self.counts(generation);
        let negative =
            counts.find(doc! { "n": { "$lt": 0_i64 }, "repair.0": { "$exists": false } });
        let documents = self.read_all(negative.limit(limit)).await?;
        documents.iter().map(|document| Ok(reads::counted(document)?.0)).collect()
    }

    /// Raises a repair for a post whose sum is below zero. Tells whether it still was.
    pub async fn doubt_negative_sum(
        &self,
        generation: GenerationId,
        topic: &str,
        partition: u32,
        post: &PostId,
    ) -> Result<bool, Error> {
        let doubt = DoubtNegativeSum { generation, topic, partition, post };
        match self.transact(&doubt).await {
            Ok((raised, _)) => Ok(raised),
            Err(Aborted::Nothing(error) | Aborted::InDoubt(error)) => Err(error),
        }
    }
}

/// The offset of the repair is that of the last record counted: a recount that is written after this
/// stands later.
struct DoubtNegativeSum<'a> {
    generation: GenerationId,
    topic: &'a str,
    partition: u32,
    post: &'a PostId,
}

impl Statements for DoubtNegativeSum<'_> {
    type Value = bool;
    type Stop = Error;

    async fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> Result<bool, Stopped<Error>> {
        let &Self { generation, topic, partition, post } = self;
        let id = checkpoint_id(generation, topic, partition);
        let checkpoints = store.collection(CHECKPOINTS);
        let stored = checkpoints.find_one(doc! { "_id": id }).session(&mut *session).await?;
        let Some(stored) = stored else { return Ok(false) };
        let stored = checkpoints::read(stored).map_err(Stopped::Decided)?;
        let checkpoint = stored.checkpoint().map_err(Stopped::Decided)?;
        let mut raised = Vec::new();
        for source in checkpoint.marking_sources() {
            let negative = doc! { "_id": post.as_str(), "n": { "$lt": 0_i64 } };
            let flag = doc! { "$set": { format!("repair.{source}"): true } };
            let counts = store.counts(generation);
            let flagged = counts.update_one(negative, flag).session(&mut *session).await?;
            if flagged.matched_count == 0 {
                return Ok(false);
            }
            let (reason, offset) = (RepairReason::BelowZero, checkpoint.next_offset - 1);
            let repair = Repair { post: post.clone(), source, reason, offset };
            raised.push(repair_statement(generation, partition, &repair));
        }
        store.update_all(session, REPAIRS, raised).await?;
        Ok(true)
    }
}
