//! The write API: likes and unlikes into MySQL, and the marks that tell how fresh the counts are.

mod deletions;
mod edges;
mod likes;
mod marks;
mod own_count;
mod seq;
mod work;

use std::sync::Arc;
use std::time::Duration;

use likewise_mongodb::{CountReader, Store};
use likewise_mysql::Mysql;
use likewise_serving::{
    Callers, Condition, Conditions, Cursors, HasCallers, HttpSettings, Tasks, Telemetry,
    WriteLimit, app, describe, documentation, ready_when, serve,
};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::own_count::OwnCounts;

/// What the role needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// By what callers are known.
    pub callers: Callers,
    /// How many writes a minute a user may have.
    pub write_limit: WriteLimit,
    /// The limits of the listener.
    pub http: HttpSettings,
    /// What cursors are sealed with; all instances of both APIs share it.
    pub cursor_key: String,
    /// How long a row that only remembers a `seq` is kept.
    pub seq_retention: Duration,
    /// How long after a write its mark may be set.
    pub mark_interval: Duration,
    /// How often marks are set while nobody writes.
    pub idle_mark_interval: Duration,
    /// How long the answer to a write waits for the post's count.
    pub own_count_wait: Duration,
}

/// What the handlers share.
#[derive(Clone)]
struct WriteApi {
    mysql: Mysql,
    /// For the receipts of deletions.
    store: Store,
    /// For the answers to writes. A write never needs them.
    counts: Arc<OwnCounts>,
    callers: Callers,
    cursors: Cursors,
    /// Told of each write, which needs a mark.
    written: Arc<Notify>,
    /// Told of each deletion that was asked for.
    deletions: Arc<Notify>,
}

impl HasCallers for WriteApi {
    fn callers(&self) -> &Callers {
        &self.callers
    }
}

fn routes() -> OpenApiRouter<WriteApi> {
    OpenApiRouter::new()
        .routes(routes!(edges::like, edges::unlike, edges::liked))
        .routes(routes!(likes::likes, deletions::of_user))
        .routes(routes!(deletions::of_post))
        .routes(routes!(deletions::deletion))
}

fn described(document: OpenApi) -> OpenApi {
    describe(document, "Likewise write API", "Likes and unlikes, and what is read from the truth.")
}

/// The OpenAPI document of this API.
pub fn openapi() -> OpenApi {
    described(routes().into_openapi())
}

/// Serves until `shutdown`. An error also where MySQL is set so that likes could be lost.
pub async fn run(
    settings: Settings,
    mysql: Mysql,
    store: Store,
    reader: CountReader,
    listener: TcpListener,
    telemetry: &Telemetry,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let conditions = Conditions::look([Condition::new(
        "MySQL",
        mysql.clone(),
        |mysql| async move { mysql.server().await },
        |mysql| async move { mysql.check().await },
    )])
    .await?;
    let api = WriteApi {
        mysql: mysql.clone(),
        store,
        counts: Arc::new(OwnCounts::new(reader.clone(), settings.own_count_wait)),
        callers: settings.callers.clone(),
        cursors: Cursors::new(&settings.cursor_key),
        written: Arc::default(),
        deletions: Arc::default(),
    };
    let readiness = {
        let (mysql, met) = (mysql.clone(), conditions.met());
        ready_when(move || {
            let (mysql, met) = (mysql.clone(), met.clone());
            async move {
                met.ready()?;
                mysql.ready().await.map_err(|error| error.to_string())
            }
        })
    };
    let (router, document) = routes().with_state(api.clone()).split_for_parts();
    let router = settings.write_limit.limit(router, api.clone());
    let router = router.merge(documentation(&described(document)));
    let app = app(router, readiness, telemetry, &settings.http);

    let mut tasks = Tasks::new(shutdown.clone());
    // What the calls need goes on until the last of them was served.
    let served = CancellationToken::new();
    let serving = serve(listener, app, settings.http, shutdown.clone());
    let ended = served.clone().drop_guard();
    tasks.spawn("serving HTTP", async move {
        let _ended = ended;
        serving.await
    });
    tasks.spawn("keeping the keys of callers", settings.callers.keep(shutdown.clone()));
    tasks.spawn("forgetting idle users", settings.write_limit.keep(shutdown.clone()));
    tasks.spawn(
        "working deletions off",
        work::delete(mysql.clone(), api.deletions, api.written.clone(), shutdown.clone()),
    );
    tasks.spawn("sweeping", work::sweep(mysql.clone(), settings.seq_retention, shutdown.clone()));
    tasks.spawn(
        "setting marks",
        marks::keep(
            mysql.clone(),
            api.written,
            settings.mark_interval,
            settings.idle_mark_interval,
            served.clone(),
        ),
    );
    tasks.spawn("watching the counts", async move {
        reader.keep(served).await;
        Ok(())
    });
    tasks.spawn("checking the settings of MySQL", conditions.keep(shutdown));
    let outcome = tasks.join().await;
    mysql.close().await;
    outcome
}
