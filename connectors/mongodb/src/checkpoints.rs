//! `checkpoints`: how far each partition of each generation is counted.
//!
//! ```text
//! { _id: "1/likewise.changes/0", generation: 1, topic: "likewise.changes", partition: 0,
//!   epoch: 3, next_offset: 1042, owner: "host/4711",
//!   positions: [{ source, server_uuid, tag, server_id, transaction, file, pos, row, total_order }],
//!   as_of: [{ source, at }], as_of_stands: false }
//! ```
//! Times are microseconds since the epoch on MySQL's clock; every number is an Int64.

use futures_util::TryStreamExt as _;
use likewise_core::{
    BinlogFile, Checkpoint, Epoch, GenerationId, Micros, Offset, Position, Server, SourceName,
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
    pub(crate) positions: Vec<PositionDocument>,
    pub(crate) as_of: Vec<AsOfDocument>,
    #[serde(default)]
    pub(crate) as_of_stands: bool,
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
pub(crate) struct AsOfDocument {
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
    /// Who claimed it last.
    pub owner: String,
    /// Every like committed before is counted.
    pub as_of: Option<Micros>,
    /// Whether `as_of` stands still until everything was recounted.
    pub as_of_stands: bool,
}

pub(crate) fn checkpoint_id(generation: GenerationId, topic: &str, partition: u32) -> String {
    format!("{generation}/{topic}/{partition}")
}

fn malformed(what: impl ToString) -> Error {
    Error::Document { collection: CHECKPOINTS, what: what.to_string() }
}

pub(crate) fn read(document: Document) -> Result<CheckpointDocument, Error> {
    deserialize_from_document(document).map_err(malformed)
}

/// The fields that counting moves, as the argument of a `$set`.
pub(crate) fn progress(checkpoint: &Checkpoint) -> Result<Document, Error> {
    let positions: Vec<_> = checkpoint.positions.iter().map(position_document).collect();
    let as_of: Vec<_> = checkpoint
        .as_of
        .iter()
        .map(|(source, at)| AsOfDocument { source: source.to_string(), at: at.0 })
        .collect();
    Ok(doc! {
        "next_offset": checkpoint.next_offset,
        "positions": serialize_to_bson(&positions).map_err(malformed)?,
        "as_of": serialize_to_bson(&as_of).map_err(malformed)?,
        "as_of_stands": checkpoint.as_of_stands,
    })
}

impl CheckpointDocument {
    pub(crate) fn checkpoint(&self) -> Result<Checkpoint, Error> {
        let positions =
            self.positions.iter().map(PositionDocument::read).collect::<Result<_, _>>()?;
        let as_of = self
            .as_of
            .iter()
            .map(|as_of| (SourceName(as_of.source.as_str().into()), Micros(as_of.at)))
            .collect();
        let as_of_stands = self.as_of_stands;
        Ok(Checkpoint { next_offset: self.next_offset, positions, as_of, as_of_stands })
    }
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
        let cursor = self.within(find.sort(doc! { "partition": 1 })).await?;
        let documents: Vec<Document> = self.within(cursor.try_collect()).await?;
        documents.into_iter().map(status).collect()
    }

    /// The `as_of` of one partition; none before its first mark. What is read afterwards from the
    /// same generation is never older.
    pub async fn as_of(
        &self,
        generation: GenerationId,
        topic: &str,
        partition: u32,
    ) -> Result<Option<Micros>, Error> {
        let id = checkpoint_id(generation, topic, partition);
        let checkpoints = self.collection(CHECKPOINTS);
        let find = checkpoints.find_one(doc! { "_id": id });
        match self.within(find.projection(doc! { "positions": 0 })).await? {
            Some(mut document) => {
                document.insert("positions", Vec::<Document>::new());
                Ok(status(document)?.as_of)
            }
            None => Ok(None),
        }
    }
}

fn status(document: Document) -> Result<PartitionStatus, Error> {
    let document = read(document)?;
    Ok(PartitionStatus {
        partition: u32::try_from(document.partition).map_err(malformed)?,
        epoch: document.epoch,
        next_offset: document.next_offset,
        as_of: document.checkpoint()?.as_of(),
        as_of_stands: document.as_of_stands,
        owner: document.owner,
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
            as_of: [(source, Micros(1_795_990_384_247_557))].into(),
            as_of_stands: true,
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
