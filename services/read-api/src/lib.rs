//! The read API: counts out of MongoDB.

mod counts;
mod likers;
mod live;

use std::time::Duration;

use likewise_core::Micros;
use likewise_mongodb::Store;
use likewise_mysql::Mysql;
use likewise_serving::{
    Callers, Condition, Conditions, Cursors, HasCallers, Tasks, Telemetry, app, describe,
    documentation, ready_when, serve,
};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::live::Readable;

/// What the role needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The token of trusted app servers.
    pub service_token: String,
    /// The token of operators.
    pub operator_token: Option<String>,
    /// What cursors are sealed with; all instances of both APIs share it.
    pub cursor_key: String,
    /// The topic whose changes are counted.
    pub topic: String,
    /// How long a call may take.
    pub request_deadline: Duration,
    /// A count whose `as_of` is older than this is stale.
    pub stale_after: Duration,
}

/// What the handlers share.
#[derive(Clone)]
struct ReadApi {
    store: Store,
    /// The truth, for what is a user's. Counts never need it.
    mysql: Mysql,
    callers: Callers,
    cursors: Cursors,
    topic: String,
    stale_after: Duration,
    live: watch::Receiver<Option<Readable>>,
}

impl HasCallers for ReadApi {
    fn callers(&self) -> &Callers {
        &self.callers
    }
}

impl ReadApi {
    /// Whether an `as_of` is too old to be trusted.
    fn is_old(&self, as_of: Option<Micros>, now: Micros) -> bool {
        let limit = i64::try_from(self.stale_after.as_micros()).unwrap_or(i64::MAX);
        as_of.is_none_or(|as_of| now.0.saturating_sub(as_of.0) > limit)
    }
}

fn routes() -> OpenApiRouter<ReadApi> {
    OpenApiRouter::new().routes(routes!(counts::count)).routes(routes!(likers::likers))
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
    let (publish, live) = watch::channel(None);
    let api = ReadApi {
        store: store.clone(),
        mysql: mysql.clone(),
        callers: Callers::new(&settings.service_token, settings.operator_token.as_deref()),
        cursors: Cursors::new(&settings.cursor_key),
        topic: settings.topic,
        stale_after: settings.stale_after,
        live,
    };
    let readiness = {
        let (api, met) = (api.clone(), conditions.met());
        ready_when(move || {
            let (api, met) = (api.clone(), met.clone());
            async move {
                met.ready()?;
                api.store.ping().await.map_err(|error| error.to_string())?;
                api.live.borrow().map(drop).ok_or_else(|| live::NO_GENERATION.to_owned())
            }
        })
    };
    let (router, document) = routes().with_state(api).split_for_parts();
    let router = router.merge(documentation(described(document)));
    let app = app(router, readiness, telemetry, settings.request_deadline);

    let mut tasks = Tasks::new(shutdown.clone());
    tasks.spawn("serving HTTP", serve(listener, app, shutdown.clone()));
    tasks.spawn("watching the live generation", live::watch(store, publish, shutdown.clone()));
    tasks.spawn("checking the settings of MongoDB", conditions.keep(shutdown));
    let outcome = tasks.join().await;
    mysql.close().await;
    outcome
}
