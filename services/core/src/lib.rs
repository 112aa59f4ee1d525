//! The rules of counting, without input or output.
//!
//! A [`Change`] is read from the log at an [`Offset`]; the [`Fold`] decides by the change's
//! [`Position`] in MySQL's history whether it is new, merges what is new into one effect per post,
//! and ends in a [`Batch`]: the counts *and* the [`Checkpoint`] that one transaction writes.
//! [`admit`] decides whether, and where, a partition of a [`Generation`] may be counted.

mod admission;
mod change;
mod checkpoint;
mod finding;
mod fingerprint;
mod fold;
mod id;
mod partition;
mod place;
mod position;
mod seq;
mod time;

pub use admission::{
    Admission, Generation, GenerationId, GenerationState, LogBounds, Refusal, admit, know_again,
    read_from,
};
pub use change::{Change, Entry, Poison, RowChange, Skip, SourceName, Table};
pub use checkpoint::{Checkpoint, Epoch, Offset, SourceNumber};
pub use finding::{Finding, Severity};
pub use fingerprint::Fingerprint;
pub use fold::{
    Batch, CountEffect, DeadLetter, Fold, PostEffect, Recount, Repair, RepairReason, Tally,
};
pub use id::{InvalidId, PostId, UserId};
pub use partition::{in_its_partition, mark_key, partition_of};
pub use place::Place;
pub use position::{BinlogFile, Novelty, Position, Positions, Server};
pub use seq::{Seq, bare_number};
pub use time::Micros;
