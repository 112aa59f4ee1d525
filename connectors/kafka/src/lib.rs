//! The change log in Kafka: its topics, the membership of the consumer group, and one queue of
//! records per partition.
//!
//! Start offsets come from the caller's checkpoints alone, and an offset outside the log is an error, never
//! a jump. An offset is committed to Kafka only to ask the group's coordinator who owns a partition.

mod bounds;
mod checks;
mod client;
mod error;
mod log;
mod membership;
mod topics;

pub use bounds::Bounds;
pub use client::{Account, Brokers, Security};
pub use error::Error;
pub use log::{ChangeLog, ChangeLogSettings, PartitionQueue, Record};
pub use membership::{Assignment, Event};
pub use topics::{CHANGES, TopicSettings, Topics};
