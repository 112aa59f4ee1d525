//! `generations`: which complete sets of counts there are, and which one is read.
//!
//! ```text
//! { _id: 1, state: "counting", topic: "likewise.changes", starts: [0, 0, 0, 0], opened: [0, 2],
//!   halted: "why nothing of it may be counted" }
//! { _id: "live", generation: 1 }
//! ```

use std::collections::BTreeSet;

use likewise_core::{Generation, GenerationId, GenerationState, Offset};
use mongodb::IndexModel;
use mongodb::bson::{Document, deserialize_from_document, doc};
use mongodb::error::{Error as Driver, ErrorKind, WriteFailure};
use mongodb::options::IndexOptions;
use serde::Deserialize;

use crate::store::{CHECKPOINTS, GENERATIONS, REPAIRS, counts_name};
use crate::{Error, Store};

/// The generation that a new system begins with.
const FIRST: GenerationId = 1;
/// The document that says which generation is read.
const LIVE: &str = "live";
/// `NamespaceExists`.
const ALREADY_THERE: i32 = 48;
/// `DuplicateKey`.
const DUPLICATE: i32 = 11000;

#[derive(Debug, Deserialize)]
struct GenerationDocument {
    #[serde(rename = "_id")]
    id: GenerationId,
    state: String,
    starts: Vec<Offset>,
    opened: Vec<i64>,
    halted: Option<String>,
}

/// The generation that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// Its number.
    pub generation: GenerationId,
    /// How many partitions it counts.
    pub partitions: u32,
}

/// What [`Store::create_first_generation`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstGeneration {
    /// This call made it.
    Created,
    /// There was one.
    AlreadyThere,
}

fn malformed(what: impl ToString) -> Error {
    Error::Document { collection: GENERATIONS, what: what.to_string() }
}

pub(crate) fn read(document: Document) -> Result<Generation, Error> {
    let document: GenerationDocument = deserialize_from_document(document).map_err(malformed)?;
    let state = match document.state.as_str() {
        "counting" => GenerationState::Counting,
        "dropped" => GenerationState::Dropped,
        other => return Err(malformed(format!("unknown state {other:?}"))),
    };
    let opened: Result<BTreeSet<u32>, _> = document.opened.into_iter().map(u32::try_from).collect();
    Ok(Generation {
        id: document.id,
        state,
        starts: document.starts,
        opened: opened.map_err(malformed)?,
        halted: document.halted,
    })
}

impl Store {
    /// Makes generation 1, which counts from `starts`, and lets it be read, unless there is one.
    /// Safe to run twice and from two places at once.
    pub async fn create_first_generation(
        &self,
        topic: &str,
        starts: &[Offset],
    ) -> Result<FirstGeneration, Error> {
        let generations = self.collection(GENERATIONS);
        let numbered = doc! { "_id": { "$type": "long" } };
        let mut made = FirstGeneration::AlreadyThere;
        if self.within(generations.find_one(numbered)).await?.is_none() {
            self.refuse_remains().await?;
            for name in [counts_name(FIRST), REPAIRS.to_owned()] {
                match self.within(self.database.create_collection(name)).await {
                    Err(Error::Refused(error)) if has_code(&error, ALREADY_THERE) => {}
                    other => other?,
                }
            }
            self.create_indexes(FIRST).await?;
            let generation = doc! {
                "_id": FIRST, "state": "counting", "topic": topic, "starts": starts.to_vec(),
                "opened": [],
            };
            match self.within(generations.insert_one(generation)).await {
                Err(Error::Refused(error)) if has_code(&error, DUPLICATE) => {}
                other => {
                    other?;
                    made = FirstGeneration::Created;
                }
            }
        }
        if self.generation(FIRST).await?.is_some() {
            let live = doc! { "$setOnInsert": { "generation": FIRST } };
            let update = generations.update_one(doc! { "_id": LIVE }, live).upsert(true);
            self.within(update).await?;
        }
        Ok(made)
    }

    /// Makes the index that a generation's counts need, unless it is there.
    pub async fn create_indexes(&self, generation: GenerationId) -> Result<(), Error> {
        // Sums below zero are rare, and looked for often: the index holds nothing but them.
        let negative = doc! { "n": { "$lt": 0_i64 } };
        let options = IndexOptions::builder().partial_filter_expression(negative).build();
        let index = IndexModel::builder().keys(doc! { "n": 1 }).options(options).build();
        self.within(self.counts(generation).create_index(index)).await.map(drop)
    }

    /// Stops the counting of a generation, within seconds, until [`Store::begin_new_positions`].
    pub async fn halt(&self, generation: GenerationId, reason: &str) -> Result<(), Error> {
        let generations = self.collection(GENERATIONS);
        let halted = doc! { "$set": { "halted": reason } };
        self.within(generations.update_one(doc! { "_id": generation }, halted)).await.map(drop)
    }

    /// Forgets how far MySQL's history is counted, through which sources, and what is in doubt of those
    /// after the first; and lets a halted generation be counted again. From here on every change is new,
    /// also one that was counted before: `as_of` stands until every post was recounted.
    pub async fn begin_new_positions(&self, generation: GenerationId) -> Result<(), Error> {
        // The raised epoch makes each owner read its checkpoint again.
        let forget = vec![doc! { "$set": {
            "positions": [], "sources": [], "marks": [], "epoch": { "$add": ["$epoch", 1_i64] },
            "stands_since": { "$subtract": ["$next_offset", 1_i64] },
        } }];
        let checkpoints = self.collection(CHECKPOINTS);
        let of_generation = doc! { "generation": generation };
        self.within(checkpoints.update_many(of_generation, forget)).await?;
        let of_others = doc! { "generation": generation, "source": { "$gt": 0_i64 } };
        self.within(self.collection(REPAIRS).delete_many(of_others)).await?;
        let generations = self.collection(GENERATIONS);
        let go_on = doc! { "$unset": { "halted": "" } };
        self.within(generations.update_one(doc! { "_id": generation }, go_on)).await.map(drop)
    }

    /// Counts or checkpoints without a generation are what is left of one that was lost: counting the
    /// log again on top of them would double every count.
    async fn refuse_remains(&self) -> Result<(), Error> {
        for name in [counts_name(FIRST), CHECKPOINTS.to_owned()] {
            let collection = self.collection(&name);
            if self.within(collection.find_one(doc! {})).await?.is_some() {
                return Err(Error::Remains(name));
            }
        }
        Ok(())
    }

    /// The generation that is read; none when there is none yet, or its document is gone.
    pub async fn live(&self) -> Result<Option<Live>, Error> {
        let generations = self.collection(GENERATIONS);
        let Some(live) = self.within(generations.find_one(doc! { "_id": LIVE })).await? else {
            return Ok(None);
        };
        let id = live.get_i64("generation").map_err(malformed)?;
        let generation = self.generation(id).await?;
        Ok(generation
            .map(|generation| Live { generation: id, partitions: generation.partitions() }))
    }

    /// One generation.
    pub async fn generation(&self, id: GenerationId) -> Result<Option<Generation>, Error> {
        let generations = self.collection(GENERATIONS);
        self.within(generations.find_one(doc! { "_id": id })).await?.map(read).transpose()
    }
}

fn has_code(error: &Driver, code: i32) -> bool {
    match error.kind.as_ref() {
        ErrorKind::Command(command) => command.code == code,
        ErrorKind::Write(WriteFailure::WriteError(write)) => write.code == code,
        _ => false,
    }
}
