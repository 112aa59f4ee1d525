//! Reading counts.

use futures_util::TryStreamExt as _;
use likewise_core::{GenerationId, PostId};
use mongodb::bson::{Document, doc};

use crate::{Error, Store};

/// A post's stored sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The signed sum. It may be negative for a moment, where changes come from two servers.
    pub sum: i64,
    /// Whether the sum is in doubt until the post's next recount.
    pub repair: bool,
}

/// Which counts are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Every post of which a change was ever counted.
    All,
    /// Posts that have likes, as far as is counted.
    OtherThanZero,
}

/// Reads a document of a `counts_<generation>` collection.
pub(crate) fn counted(document: &Document) -> Result<(PostId, Counted), Error> {
    let malformed = |error: mongodb::bson::error::Error| Error::Document {
        collection: "counts",
        what: error.to_string(),
    };
    let post = PostId::from_log(document.get_str("_id").map_err(malformed)?);
    let sum = document.get_i64("n").map_err(malformed)?;
    let repair = document.get_document("repair").is_ok_and(|shares| !shares.is_empty());
    Ok((post, Counted { sum, repair }))
}

impl Store {
    /// The stored sum of a post; 0 for one that nobody ever liked.
    pub async fn count(&self, generation: GenerationId, post: &PostId) -> Result<Counted, Error> {
        let counts = self.counts(generation);
        let document = self.within(counts.find_one(doc! { "_id": post.as_str() })).await?;
        document.as_ref().map_or(Ok(Counted::default()), |document| Ok(counted(document)?.1))
    }

    /// Hands every post that has a count to `each`, ordered by the bytes of the id. Holds one batch of the
    /// driver's cursor in memory.
    pub async fn each_count(
        &self,
        generation: GenerationId,
        which: Counts,
        mut each: impl AsyncFnMut(PostId, i64),
    ) -> Result<(), Error> {
        let counts = self.counts(generation);
        let find = counts.find(match which {
            Counts::All => doc! {},
            Counts::OtherThanZero => doc! { "n": { "$ne": 0_i64 } },
        });
        let mut cursor = self.within(find.sort(doc! { "_id": 1 })).await?;
        while let Some(document) = self.within(cursor.try_next()).await? {
            let (post, counted) = counted(&document)?;
            each(post, counted.sum).await;
        }
        Ok(())
    }
}
