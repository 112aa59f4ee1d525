//! The connectors against the real servers, each test in a schema, topic or database of its own.

mod counts;
mod deletions;
mod kafka;
mod lists;
mod mongodb;
mod mysql;
mod schema;
mod sequences;
mod silence;
