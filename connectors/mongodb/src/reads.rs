//! Reading counts.

use futures_util::TryStreamExt as _;
use likewise_core::{GenerationId, Offset, PostId};
use mongodb::bson::{Document, doc};

use crate::store::REPAIRS;
use crate::{Error, Store};

/// A post's stored sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The signed sum. It may be negative for a moment, where changes come from two servers.
    pub sum: i64,
    /// Whether the sum is in doubt until the post's next recount.
    pub repair: bool,
}

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

/// Reads a document of a `counts_<generation>` collection.
pub(crate) fn counted(document: &Document) -> Result<(PostId, Counted), Error> {
    let malformed = |error: mongodb::bson::error::Error| Error::Document {
        collection: "counts",
        what: error.to_string(),
    };
    let post = PostId::from_log(document.get_str("_id").map_err(malformed)?);
    let sum = document.get_i64("n").map_err(malformed)?;
    Ok((post, Counted { sum, repair: document.get_bool("repair").unwrap_or(false) }))
}

impl Store {
    /// The stored sum of a post; 0 for one that nobody ever liked.
    pub async fn count(&self, generation: GenerationId, post: &PostId) -> Result<Counted, Error> {
        let counts = self.counts(generation);
        let document = self.within(counts.find_one(doc! { "_id": post.as_str() })).await?;
        document.as_ref().map_or(Ok(Counted::default()), |document| Ok(counted(document)?.1))
    }

    /// Posts that wait for a recount, in any generation: `limit` of them at most.
    pub async fn repairs(&self, limit: i64) -> Result<Vec<OpenRepair>, Error> {
        let repairs = self.collection(REPAIRS);
        let cursor = self.within(repairs.find(doc! {}).limit(limit)).await?;
        let documents: Vec<Document> = self.within(cursor.try_collect()).await?;
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

    /// How many posts wait for a recount.
    pub async fn open_repairs(&self, generation: GenerationId) -> Result<u64, Error> {
        let repairs = self.collection(REPAIRS);
        self.within(repairs.count_documents(doc! { "generation": generation })).await
    }

    /// Hands every post with a sum other than 0 to `each`, ordered by the bytes of the id.
    /// Holds one batch of the driver's cursor in memory.
    pub async fn each_count(
        &self,
        generation: GenerationId,
        mut each: impl AsyncFnMut(PostId, i64),
    ) -> Result<(), Error> {
        let counts = self.counts(generation);
        let find = counts.find(doc! { "n": { "$ne": 0_i64 } });
        let mut cursor = self.within(find.sort(doc! { "_id": 1 })).await?;
        while let Some(document) = self.within(cursor.try_next()).await? {
            let (post, counted) = counted(&document)?;
            each(post, counted.sum).await;
        }
        Ok(())
    }
}
