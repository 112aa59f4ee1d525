//! Debezium's envelope, read as an `Entry` for the fold.
//!
//! The shape is that of Debezium's MySQL connector with schemaless JSON; unknown fields are ignored.
//! The connector's settings that this relies on are explained in `debezium/README.md`.

mod decode;
mod envelope;
mod gtid;

pub use decode::decode;
