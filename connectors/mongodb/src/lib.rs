//! Counts, checkpoints and generations in MongoDB.
//!
//! Collections of the database (see the design of each in its module): `counts_<generation>`,
//! `checkpoints`, `generations`, `repairs`, `dead_letters`. Everything is written with majority write
//! concern and read with majority read concern from the primary.

mod checkpoints;
mod checks;
mod claim;
mod commit;
mod dead_letters;
mod error;
mod generations;
mod reader;
mod reads;
mod repairs;
mod shares;
mod snapshot;
mod store;
mod transaction;

pub use checkpoints::PartitionStatus;
pub use claim::{Claim, ClaimError};
pub use commit::{CommitError, Committed, Correction};
pub use dead_letters::KeptLetter;
pub use error::Error;
pub use generations::{FirstGeneration, Live};
pub use reader::{Asked, CountReader, Known, ReadError, ReaderSettings, Reading};
pub use reads::{Counted, Counts};
pub use repairs::OpenRepair;
pub use snapshot::{CountedTo, Snapshot};
pub use store::{Store, StoreSettings};
