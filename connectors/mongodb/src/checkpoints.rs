//! `checkpoints`: how far each partition of each generation is counted.
//!
//! ```text
//! { _id: "1/likewise.changes/0", generation: 1, topic: "likewise.changes", partition: 0,
//!   epoch: 3, next_offset: 1042, last_record: 391027455, owner: "host/4711", sources: ["likewise"],
//!   positions: [{ source, server_uuid, tag, server_id, transaction, file, pos, row, total_order }],
//!   marks: [{ source, at }], as_of: [{ source, at }], stands_since: null }
//! ```
//! Times are microseconds since the epoch on MySQL's clock; every number is an Int64.

use std::collections::BTreeMap;

use likewise_core::{
    BinlogFile, Checkpoint, Epoch, Fingerprint, GenerationId, Micros, Offset, Position, Positions,
    Server, SourceName,
};
use mongodb::bson::{Document, deserialize_from_document, doc, serialize_to_bson};
use serde::{Deserialize, Serialize};

use crate::store::CHECKPOINTS;
use crate::{Error, Store};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CheckpointDocument {
    #[serde(rename = "_id")]
    pub(crate) id: String,
    pub(crate) generation: i64,
    pub(crate) topic: String,
    pub(crate) partition: i64,
    pub(crate) epoch: Epoch,
    pub(crate) next_offset: Offset,
    pub(crate) owner: String,
    pub(crate) last_record: Option<i64>,
    pub(crate) sources: Vec<String>,
    pub(crate) positions: Vec<PositionDocument>,
    pub(crate) marks: Vec<MarkDocument>,
    pub(crate) as_of: Vec<MarkDocument>,
    pub(crate) stands_since: Option<Offset>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PositionDocument {
    source: String,
    server_uuid: String,
    tag: String,
    server_id: i64,
    transaction: i64,
    file: String,
    pos: i64,
    row: i64,
    total_order: i64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MarkDocument {
    source: String,
    at: i64,
}

/// A partition of a generation, as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionStatus {
    /// Which partition.
    pub partition: u32,
    /// How often it was claimed.
    pub epoch: Epoch,
    /// The first offset that is not counted.
    pub next_offset: Offset,
    /// The record before it; none before the first one.
    pub last_record: Option<Fingerprint>,
    /// Who claimed it last.
    pub owner: String,
    /// Every like committed before is counted.
    pub as_of: Option<Micros>,
    /// The last mark passed: later than `as_of` where that stands.
    pub passed: Option<Micros>,
    /// Where the log gave rise to doubt in any count: `as_of` stands until everything was recounted.
    pub stands_since: Option<Offset>,
    /// How far it is counted of each source and server.
    pub positions: Positions,
}

pub(crate) fn checkpoint_id(generation: GenerationId, topic: &str, partition: u32) -> String {
    format!("{generation}/{topic}/{partition}")
}

pub(crate) fn malformed(what: impl ToString) -> Error {
    Error::Document { collection: CHECKPOINTS, what: what.to_string() }
}

pub(crate) fn read(document: Document) -> Result<CheckpointDocument, Error> {
    deserialize_from_document(document).map_err(malformed)
}

/// The fields that counting moves, as the argument of a `$set`.
pub(crate) fn progress(checkpoint: &Checkpoint) -> Result<Document, Error> {
    let positions: Vec<_> = checkpoint.positions.iter().map(position_document).collect();
    let sources: Vec<_> = checkpoint.sources.iter().map(ToString::to_string).collect();
    Ok(doc! {
        "next_offset": checkpoint.next_offset,
        "last_record": checkpoint.last_record.map(|record| i64::from(record.0)),
        "sources": sources,
        "positions": serialize_to_bson(&positions).map_err(malformed)?,
        "marks": serialize_to_bson(&mark_documents(&checkpoint.marks)).map_err(malformed)?,
        "as_of": serialize_to_bson(&mark_documents(&checkpoint.as_of)).map_err(malformed)?,
        "stands_since": checkpoint.stands_since,
    })
}

impl CheckpointDocument {
    pub(crate) fn checkpoint(&self) -> Result<Checkpoint, Error> {
        let last_record = self.last_record.map(u32::try_from).transpose().map_err(malformed)?;
        let positions = read_positions(&self.positions)?;
        Ok(Checkpoint {
            next_offset: self.next_offset,
            last_record: last_record.map(Fingerprint),
            sources: self.sources.iter().map(|source| SourceName(source.into())).collect(),
            positions,
            marks: read_marks(&self.marks),
            as_of: read_marks(&self.as_of),
            stands_since: self.stands_since,
        })
    }
}

fn mark_documents(marks: &BTreeMap<SourceName, Micros>) -> Vec<MarkDocument> {
    let document = |(source, at): (&SourceName, &Micros)| MarkDocument {
        source: source.to_string(),
        at: at.0,
    };
    marks.iter().map(document).collect()
}

pub(crate) fn read_positions(documents: &[PositionDocument]) -> Result<Positions, Error> {
    documents.iter().map(PositionDocument::read).collect()
}

pub(crate) fn read_marks(documents: &[MarkDocument]) -> BTreeMap<SourceName, Micros> {
    let mark = |mark: &MarkDocument| (SourceName(mark.source.as_str().into()), Micros(mark.at));
    documents.iter().map(mark).collect()
}

fn position_document((source, position): (&SourceName, &Position)) -> PositionDocument {
    PositionDocument {
        source: source.to_string(),
        server_uuid: format!("{:032x}", position.server.uuid),
        tag: position.server.tag.to_string(),
        server_id: position.server.server_id.cast_signed(),
        transaction: position.transaction.cast_signed(),
        file: position.file.to_string(),
        pos: position.pos.cast_signed(),
        row: position.row.cast_signed(),
        total_order: position.total_order.cast_signed(),
    }
}

/// A stored number that was unsigned: a negative one would make everything a repeat.
fn number(stored: i64) -> Result<u64, Error> {
    u64::try_from(stored).map_err(malformed)
}

impl PositionDocument {
    fn read(&self) -> Result<(SourceName, Position), Error> {
        let uuid = u128::from_str_radix(&self.server_uuid, 16).map_err(malformed)?;
        let file = BinlogFile::parse(&self.file).ok_or_else(|| malformed("not a binlog file"))?;
        let position = Position {
            server: Server {
                uuid,
                tag: self.tag.as_str().into(),
                server_id: number(self.server_id)?,
            },
            transaction: number(self.transaction)?,
            file,
            pos: number(self.pos)?,
            row: number(self.row)?,
            total_order: number(self.total_order)?,
        };
        Ok((SourceName(self.source.as_str().into()), position))
    }
}

impl Store {
    /// The partitions of a generation that were opened, by number.
    pub async fn partitions(
        &self,
        generation: GenerationId,
    ) -> Result<Vec<PartitionStatus>, Error> {
        let checkpoints = self.collection(CHECKPOINTS);
        let find = checkpoints.find(doc! { "generation": generation });
        let documents = self.read_all(find.sort(doc! { "partition": 1 })).await?;
        documents.into_iter().map(status).collect()
    }

    /// The first offset of a partition that is not counted; none before it was first claimed.
    pub async fn next_offset(
        &self,
        generation: GenerationId,
        topic: &str,
        partition: u32,
    ) -> Result<Option<Offset>, Error> {
        let id = checkpoint_id(generation, topic, partition);
        let stored = self.within(self.collection(CHECKPOINTS).find_one(doc! { "_id": id })).await?;
        stored.map(|stored| Ok(read(stored)?.next_offset)).transpose()
    }

    /// Lets `as_of` go on where it stands since before the given offset of its partition: everything
    /// was recounted after that. A doubt that is newer stays. Answers with how many went on.
    ///
    /// The partition's epoch is raised, so that its owner drops what it has in hand and reads the
    /// checkpoint again.
    pub async fn let_as_of_go_on(
        &self,
        generation: GenerationId,
        topic: &str,
        recounted: &[(u32, Offset)],
    ) -> Result<u64, Error> {
        let mut went_on = 0;
        for (partition, offset) in recounted {
            let id = checkpoint_id(generation, topic, *partition);
            let standing = doc! { "_id": id, "stands_since": { "$type": "long", "$lt": offset } };
            let update = vec![doc! { "$set": {
                "as_of": "$marks", "stands_since": null, "epoch": { "$add": ["$epoch", 1_i64] },
            } }];
            let checkpoints = self.collection(CHECKPOINTS);
            went_on += self.within(checkpoints.update_one(standing, update)).await?.modified_count;
        }
        Ok(went_on)
    }

    /// Whether `as_of` stands in any partition of a generation: then every count of it is in doubt.
    pub async fn stands(&self, generation: GenerationId) -> Result<bool, Error> {
        let checkpoints = self.collection(CHECKPOINTS);
        let standing = doc! { "generation": generation, "stands_since": { "$type": "long" } };
        Ok(self.within(checkpoints.find_one(standing)).await?.is_some())
    }
}

fn status(document: Document) -> Result<PartitionStatus, Error> {
    let document = read(document)?;
    let checkpoint = document.checkpoint()?;
    Ok(PartitionStatus {
        partition: u32::try_from(document.partition).map_err(malformed)?,
        epoch: document.epoch,
        next_offset: document.next_offset,
        last_record: checkpoint.last_record,
        owner: document.owner,
        as_of: checkpoint.as_of(),
        passed: checkpoint.passed(),
        stands_since: checkpoint.stands_since,
        positions: checkpoint.positions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_read_back_as_it_was_written() {
        let source = SourceName("likewise".into());
        let position = Position {
            server: Server { uuid: u128::MAX - 5, tag: "import".into(), server_id: 7 },
            transaction: 11,
            file: BinlogFile::parse("binlog.000002").expect("a binlog file"),
            pos: 3714,
            row: 3,
            total_order: 9,
        };
        let checkpoint = Checkpoint {
            next_offset: 42,
            positions: [(source.clone(), position)].into_iter().collect(),
            last_record: Some(Fingerprint(u32::MAX)),
            sources: vec![source.clone()],
            marks: [(source.clone(), Micros(1_795_990_384_247_558))].into(),
            as_of: [(source, Micros(1_795_990_384_247_557))].into(),
            stands_since: Some(40),
        };
        let mut document = progress(&checkpoint).expect("it can be written");
        document.extend(doc! {
            "_id": checkpoint_id(1, "likewise.changes", 0), "generation": 1_i64,
            "topic": "likewise.changes", "partition": 0_i64, "epoch": 3_i64, "owner": "a",
        });
        let read = read(document).expect("it can be read");
        assert_eq!(read.checkpoint().expect("it is a checkpoint"), checkpoint);
    }
}
