//! Edges, marks and migrations in MySQL.
//!
//! Every call ends within the deadline of its [`Mysql`]. A call that was cut off may still take
//! effect: its outcome is unknown, not failed.

mod edges;
mod error;
mod marks;
mod migrations;
mod pool;
mod truth;

pub use edges::Written;
pub use error::Error;
pub use migrations::migrate;
pub use pool::{Mysql, PoolSettings};
