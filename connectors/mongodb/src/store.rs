//! The client, its guarantees, and the deadline of a read.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use likewise_core::{Finding, GenerationId};
use mongodb::bson::{Document, doc};
use mongodb::options::{
    ClientOptions, ReadConcern, ReadPreference, SelectionCriteria, WriteConcern,
};
use mongodb::{Client, Collection, Cursor, Database};

use crate::{Error, checks};

pub(crate) const CHECKPOINTS: &str = "checkpoints";
pub(crate) const GENERATIONS: &str = "generations";
pub(crate) const REPAIRS: &str = "repairs";
pub(crate) const DEAD_LETTERS: &str = "dead_letters";

/// How to reach MongoDB.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// `mongodb://host:port/?replicaSet=rs0`; transactions need a replica set.
    pub uri: String,
    /// Which database.
    pub database: String,
    /// How many connections at most.
    pub max_connections: u32,
    /// How long a read outside of transactions may take, waiting for a connection included.
    pub deadline: Duration,
}

/// A handle to the count store; clones share the connections.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) client: Client,
    pub(crate) options: Arc<ClientOptions>,
    /// What the address asks for and must not.
    pub(crate) asked: Arc<[Finding]>,
    pub(crate) database: Database,
    pub(crate) deadline: Duration,
}

impl Store {
    /// Checks the settings. Waits for no server. What the address asks for less than majority is
    /// overridden, and told by [`Store::check`].
    pub async fn new(settings: &StoreSettings) -> Result<Self, Error> {
        let mut options = ClientOptions::parse(&settings.uri).await.map_err(Error::Settings)?;
        let asked = checks::asked(&options);
        options.app_name.get_or_insert_with(|| "likewise".to_owned());
        options.max_pool_size = Some(settings.max_connections.max(1));
        options.connect_timeout = Some(Duration::from_secs(2));
        options.server_selection_timeout = Some(settings.deadline);
        options.write_concern = Some(WriteConcern::majority());
        options.read_concern = Some(ReadConcern::majority());
        options.selection_criteria =
            Some(SelectionCriteria::ReadPreference(ReadPreference::Primary));
        let client = Client::with_options(options.clone()).map_err(Error::Settings)?;
        let database = client.database(&settings.database);
        Ok(Self {
            client,
            options: Arc::new(options),
            asked: asked.into(),
            database,
            deadline: settings.deadline,
        })
    }

    /// Asks the primary for an answer.
    pub async fn ping(&self) -> Result<(), Error> {
        self.within(self.database.run_command(doc! { "ping": 1 })).await.map(drop)
    }

    /// Runs a read within the deadline.
    pub(crate) async fn within<T>(
        &self,
        call: impl IntoFuture<Output = mongodb::error::Result<T>>,
    ) -> Result<T, Error> {
        tokio::time::timeout(self.deadline, call.into_future())
            .await
            .map_err(|_| Error::Timeout(self.deadline.as_millis()))?
            .map_err(Error::from)
    }

    /// Reads everything that a find finds; it and the reading each have the deadline.
    pub(crate) async fn read_all(
        &self,
        find: impl IntoFuture<Output = mongodb::error::Result<Cursor<Document>>>,
    ) -> Result<Vec<Document>, Error> {
        let cursor = self.within(find).await?;
        self.within(cursor.try_collect()).await
    }

    pub(crate) fn collection(&self, name: &str) -> Collection<Document> {
        self.database.collection(name)
    }

    pub(crate) fn counts(&self, generation: GenerationId) -> Collection<Document> {
        self.collection(&counts_name(generation))
    }
}

pub(crate) fn counts_name(generation: GenerationId) -> String {
    format!("counts_{generation}")
}
