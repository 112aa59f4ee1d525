//! The read API: counts out of MongoDB, and what a user likes out of MySQL.

mod counts;
mod feed;
mod likers;
mod query;
mod stream;

use std::time::Duration;

use likewise_mongodb::{CountReader, Store};
use likewise_mysql::Mysql;
use likewise_serving::{
    Callers, Condition, Conditions, Cursors, HasCallers, HttpSettings, Tasks, Telemetry, app,
    describe, documentation, ready_when, serve,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::stream::Streams;

/// What the role needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// By what callers are known.
    pub callers: Callers,
    /// What cursors are sealed with; all instances of both APIs share it.
    pub cursor_key: String,
    /// The limits of the listener.
    pub http: HttpSettings,
    /// How long a count waits for the `min_as_of` that its caller asks for.
    pub min_as_of_wait: Duration,
    /// How many callers are kept told of counts at most.
    pub stream_listeners: usize,
}

/// What the handlers share.
#[derive(Clone)]
struct ReadApi {
    reader: CountReader,
    /// The truth, for what is a user's. Counts never need it.
    mysql: Mysql,
    callers: Callers,
    cursors: Cursors,
    min_as_of_wait: Duration,
    streams: Streams,
}

impl HasCallers for ReadApi {
    fn callers(&self) -> &Callers {
        &self.callers
    }
}

fn routes() -> OpenApiRouter<ReadApi> {
    OpenApiRouter::new()
        .routes(routes!(counts::count))
        .routes(routes!(counts::counts))
        .routes(routes!(feed::feed))
        .routes(routes!(stream::stream))
        .routes(routes!(likers::likers))
}

fn described(document: OpenApi) -> OpenApi {
    describe(document, "Likewise read API", "Counts of likes, and how fresh they are.")
}

/// The OpenAPI document of this API.
pub fn openapi() -> OpenApi {
    described(routes().into_openapi())
}

/// Serves until `shutdown`. An error also where MongoDB is set so that counts could be lost.
pub async fn run(
    settings: Settings,
    store: Store,
    reader: CountReader,
    mysql: Mysql,
    listener: TcpListener,
    telemetry: &Telemetry,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let conditions = Conditions::look([Condition::new(
        "MongoDB",
        store.clone(),
        |store| async move { store.primary().await },
        |store| async move { store.check().await },
    )])
    .await?;
    let streams = Streams::new(settings.stream_listeners);
    let api = ReadApi {
        reader: reader.clone(),
        mysql: mysql.clone(),
        callers: settings.callers.clone(),
        cursors: Cursors::new(&settings.cursor_key),
        min_as_of_wait: settings.min_as_of_wait,
        streams: streams.clone(),
    };
    let readiness = {
        let (reader, met) = (reader.clone(), conditions.met());
        ready_when(move || {
            let (store, reader, met) = (store.clone(), reader.clone(), met.clone());
            async move {
                met.ready()?;
                store.ping().await.map_err(|error| error.to_string())?;
                reader.ready().map_err(|error| error.to_string())
            }
        })
    };
    let (router, document) = routes().with_state(api).split_for_parts();
    let router = router.merge(documentation(&described(document)));
    let app = app(router, readiness, telemetry, &settings.http);

    let mut tasks = Tasks::new(shutdown.clone());
    tasks.spawn("serving HTTP", serve(listener, app, settings.http, shutdown.clone()));
    let kept = reader.clone().keep(shutdown.clone());
    tasks.spawn("watching the counts", async move {
        kept.await;
        Ok(())
    });
    tasks.spawn("telling listeners", streams.keep(reader, shutdown.clone()));
    tasks.spawn("keeping the keys of callers", settings.callers.keep(shutdown.clone()));
    tasks.spawn("checking the settings of MongoDB", conditions.keep(shutdown));
    let outcome = tasks.join().await;
    mysql.close().await;
    outcome
}
