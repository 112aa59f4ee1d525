//! Counts, checkpoints and generations in MongoDB.
//!
//! Collections of the database (see the design of each in its module): `counts_<generation>`,
//! `checkpoints`, `generations`, `repairs`, `dead_letters`. Everything is written with majority write
//! concern and read with majority read concern from the primary.

mod checkpoints;
mod claim;
mod commit;
mod error;
mod generations;
mod reads;
mod store;
mod transaction;

pub use checkpoints::PartitionStatus;
pub use claim::{Claim, ClaimError};
pub use commit::{CommitError, Committed, Correction};
pub use error::Error;
pub use generations::{FirstGeneration, Live};
pub use reads::{Counted, OpenRepair};
pub use store::{Store, StoreSettings};
