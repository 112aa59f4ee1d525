//! `dead_letters`: records that could not be read, kept for whoever looks into them.
//!
//! ```text
//! { _id: "likewise.changes/2/1041", topic: "likewise.changes", partition: 2, offset: 1041,
//!   reason: "…", post_id: "p1", payload: <the value's first 4 KiB> }
//! ```

use likewise_core::{Batch, DeadLetter, Offset, PostId};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, RawBson, RawDocumentBuf, doc, rawdoc};

use crate::store::DEAD_LETTERS;
use crate::{Claim, Error, Store};

/// A record that could not be read, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLetter {
    /// Its partition.
    pub partition: u32,
    /// Its place in the partition.
    pub offset: Offset,
    /// What is wrong with it.
    pub reason: String,
    /// The post it was about, where that could be told.
    pub post: Option<PostId>,
    /// The value's first 4 KiB.
    pub payload: Vec<u8>,
}

fn letter_id(topic: &str, partition: u32, offset: Offset) -> String {
    format!("{topic}/{partition}/{offset}")
}

fn malformed(what: impl ToString) -> Error {
    Error::Document { collection: DEAD_LETTERS, what: what.to_string() }
}

/// Two generations read the same records: each letter is kept once.
pub(crate) fn statements(claim: &Claim, batch: &Batch) -> Vec<RawDocumentBuf> {
    let statement = |letter: &DeadLetter| {
        let post = letter.post.as_ref().map_or(RawBson::Null, |post| post.as_str().into());
        let payload = Binary { subtype: BinarySubtype::Generic, bytes: letter.payload.clone() };
        rawdoc! {
            "q": { "_id": letter_id(&claim.topic, claim.partition, letter.offset) },
            "u": { "$setOnInsert": {
                "topic": claim.topic.as_str(),
                "partition": i64::from(claim.partition),
                "offset": letter.offset,
                "reason": letter.reason.to_string(),
                "post_id": post,
                "payload": payload,
            } },
            "upsert": true,
        }
    };
    batch.dead_letters.iter().map(statement).collect()
}

fn read(document: &Document) -> Result<KeptLetter, Error> {
    let partition = document.get_i64("partition").map_err(malformed)?;
    Ok(KeptLetter {
        partition: u32::try_from(partition).map_err(malformed)?,
        offset: document.get_i64("offset").map_err(malformed)?,
        reason: document.get_str("reason").map_err(malformed)?.to_owned(),
        post: document.get_str("post_id").ok().map(PostId::from_log),
        payload: document.get_binary_generic("payload").map_err(malformed)?.clone(),
    })
}

impl Store {
    /// How many letters of a topic are kept.
    pub async fn count_dead_letters(&self, topic: &str) -> Result<u64, Error> {
        let letters = self.collection(DEAD_LETTERS);
        self.within(letters.count_documents(doc! { "topic": topic })).await
    }

    /// The letters of a topic, by partition and offset: `limit` of them at most.
    pub async fn dead_letters(&self, topic: &str, limit: i64) -> Result<Vec<KeptLetter>, Error> {
        let letters = self.collection(DEAD_LETTERS);
        let find = letters.find(doc! { "topic": topic }).limit(limit);
        let documents = self.read_all(find.sort(doc! { "partition": 1, "offset": 1 })).await?;
        documents.iter().map(read).collect()
    }

    /// Letters of a topic that name a post: `limit` of them at most.
    pub async fn named_dead_letters(
        &self,
        topic: &str,
        limit: i64,
    ) -> Result<Vec<KeptLetter>, Error> {
        let letters = self.collection(DEAD_LETTERS);
        let named = doc! { "topic": topic, "post_id": { "$type": "string" } };
        let documents = self.read_all(letters.find(named).limit(limit)).await?;
        documents.iter().map(read).collect()
    }

    /// One letter.
    pub async fn dead_letter(
        &self,
        topic: &str,
        partition: u32,
        offset: Offset,
    ) -> Result<Option<KeptLetter>, Error> {
        let id = doc! { "_id": letter_id(topic, partition, offset) };
        let letter = self.within(self.collection(DEAD_LETTERS).find_one(id)).await?;
        letter.as_ref().map(read).transpose()
    }

    /// Removes a letter: its post was recounted.
    pub async fn remove_dead_letter(
        &self,
        topic: &str,
        partition: u32,
        offset: Offset,
    ) -> Result<(), Error> {
        let id = doc! { "_id": letter_id(topic, partition, offset) };
        self.within(self.collection(DEAD_LETTERS).delete_one(id)).await.map(drop)
    }
}
