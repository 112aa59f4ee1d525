//! Operator commands, one a file.

pub(crate) mod connector;
pub(crate) mod dead_letters;
pub(crate) mod doctor;
pub(crate) mod drain;
pub(crate) mod health;
pub(crate) mod load;
pub(crate) mod migrate;
pub(crate) mod openapi;
pub(crate) mod recount;
pub(crate) mod status;
pub(crate) mod topics;
pub(crate) mod verify;

use anyhow::Context as _;
use likewise_core::GenerationId;
use likewise_mongodb::{Live, Store};
use serde::Serialize;

/// Prints a value as one line of JSON.
fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(value).context("failed to write JSON")?);
    Ok(())
}

/// Why a generation may not be counted, where it is halted.
async fn halted(store: &Store, generation: GenerationId) -> anyhow::Result<Option<String>> {
    let generation = store.generation(generation).await;
    let generation = generation.context("failed to read the live generation")?;
    Ok(generation.and_then(|generation| generation.halted))
}

/// The generation that is read.
async fn live(store: &Store) -> anyhow::Result<Live> {
    let live = store.live().await.context("failed to read the live generation")?;
    live.context("there is no live generation of counts: run `likewise migrate`")
}
