//! Counts and how far they are counted, as they stood at one moment.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use likewise_core::{
    Checkpoint, GenerationId, Micros, Offset, Positions, PostId, SourceName, partition_of,
};
use mongodb::bson::{Document, deserialize_from_document, doc};
use mongodb::options::ReadConcern;
use serde::Deserialize;

use crate::checkpoints::{
    MarkDocument, PositionDocument, checkpoint_id, malformed, read_marks, read_positions,
};
use crate::reads::{Counted, counted};
use crate::store::{CHECKPOINTS, counts_name};
use crate::{Error, Live, Store};

/// How far a partition is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedTo {
    /// Every like committed before is counted; none before the first mark.
    pub as_of: Option<Micros>,
    /// The first offset that is not counted.
    pub next_offset: Offset,
    /// The last position counted of each source and server.
    pub positions: Positions,
}

/// What some posts had at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The partitions of the posts; one that was never claimed is missing.
    pub partitions: BTreeMap<u32, CountedTo>,
    /// The posts of which a change was ever counted.
    pub counts: HashMap<PostId, Counted>,
}

/// What is read of a checkpoint.
#[derive(Debug, Deserialize)]
struct CountedToDocument {
    partition: i64,
    next_offset: Offset,
    positions: Vec<PositionDocument>,
    as_of: Vec<MarkDocument>,
}

impl CountedToDocument {
    fn read(self) -> Result<(u32, CountedTo), Error> {
        let as_of = read_marks(&self.as_of);
        let counted_to = CountedTo {
            as_of: Checkpoint { as_of, ..Checkpoint::default() }.as_of(),
            next_offset: self.next_offset,
            positions: read_positions(&self.positions)?,
        };
        Ok((u32::try_from(self.partition).map_err(malformed)?, counted_to))
    }
}

impl Store {
    /// The counts of the posts and how far their partitions are counted, both as of one moment: whatever
    /// a partition's positions say is counted is in its counts, and nothing beyond. One query.
    pub async fn snapshot(
        &self,
        live: Live,
        topic: &str,
        posts: &[PostId],
    ) -> Result<Snapshot, Error> {
        let Live { generation, partitions } = live;
        let partitions: BTreeSet<u32> =
            posts.iter().map(|post| partition_of(post.as_str(), partitions)).collect();
        let posts: Vec<&str> = posts.iter().map(PostId::as_str).collect();
        let pipeline = [
            doc! { "$match": { "_id": { "$in": ids(generation, topic, &partitions) } } },
            doc! { "$project": { "partition": 1, "next_offset": 1, "positions": 1, "as_of": 1 } },
            doc! { "$unionWith": {
                "coll": counts_name(generation),
                "pipeline": [
                    { "$match": { "_id": { "$in": posts } } },
                    { "$project": { "n": 1, "repair": 1 } },
                ],
            } },
        ];
        let checkpoints = self.collection(CHECKPOINTS);
        let aggregate = checkpoints.aggregate(pipeline).read_concern(ReadConcern::snapshot());
        let mut snapshot = Snapshot::default();
        for document in self.read_all(aggregate).await? {
            if document.contains_key("partition") {
                let checkpoint: CountedToDocument =
                    deserialize_from_document(document).map_err(malformed)?;
                snapshot.partitions.extend([checkpoint.read()?]);
            } else {
                snapshot.counts.extend([counted(&document)?]);
            }
        }
        Ok(snapshot)
    }

    /// The `as_of` of some partitions, in one query; one that was never claimed is missing.
    pub async fn as_of_each(
        &self,
        generation: GenerationId,
        topic: &str,
        partitions: &BTreeSet<u32>,
    ) -> Result<BTreeMap<u32, Option<Micros>>, Error> {
        #[derive(Deserialize)]
        struct AsOfDocument {
            partition: i64,
            as_of: Vec<MarkDocument>,
        }
        let checkpoints = self.collection(CHECKPOINTS);
        let find = checkpoints.find(doc! { "_id": { "$in": ids(generation, topic, partitions) } });
        let documents = self.read_all(find.projection(doc! { "partition": 1, "as_of": 1 })).await?;
        let read = |document: Document| {
            let AsOfDocument { partition, as_of } =
                deserialize_from_document(document).map_err(malformed)?;
            let as_of = read_marks(&as_of);
            let as_of = Checkpoint { as_of, ..Checkpoint::default() }.as_of();
            Ok((u32::try_from(partition).map_err(malformed)?, as_of))
        };
        documents.into_iter().map(read).collect()
    }
}

fn ids(generation: GenerationId, topic: &str, partitions: &BTreeSet<u32>) -> Vec<String> {
    partitions.iter().map(|partition| checkpoint_id(generation, topic, *partition)).collect()
}

impl CountedTo {
    /// Whether a transaction of a server is counted: the one row that it changed in this partition.
    pub fn includes(&self, uuid: u128, tag: &str, transaction: u64) -> bool {
        // Sources that read the same server pass its transactions in the same order.
        let counted = |(_, position): (&SourceName, &likewise_core::Position)| {
            position.server.uuid == uuid
                && position.server.tag == tag
                && position.transaction >= transaction
        };
        self.positions.iter().any(counted)
    }
}
