//! Kafka Connect's REST interface, as far as the connector needs it.

mod checks;
mod client;
mod definition;
mod status;

pub use client::{Connect, Error};
pub use definition::Definition;
pub use status::{ConnectorStatus, State};
