//! Edges, lists, deletions, marks, migrations and the checks of the settings in MySQL.
//!
//! Calls end within the deadline of their [`Mysql`], migrations and the reading of whole tables aside.
//! A call that was cut off may still take effect: its outcome is unknown, not failed.

mod checks;
mod committed;
mod deletions;
mod edges;
mod error;
mod history;
mod liked;
mod lists;
mod marks;
mod migrations;
mod pool;
mod recounts;
mod retry;
mod sweep;
mod truth;

pub use deletions::{Chunk, Deleting, Receipt, Subject};
pub use edges::Written;
pub use error::Error;
pub use history::Gtid;
pub use migrations::migrate;
pub use pool::{Mysql, PoolSettings};
