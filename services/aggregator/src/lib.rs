//! The aggregator: from the change log to the counts, exactly once.
//!
//! `group` follows what the consumer group gives this process; for each partition one `worker`
//! claims it, gathers batches and commits them.

mod board;
mod gather;
mod group;
mod stop;
mod telemetry;
mod worker;

use std::sync::Arc;

use axum::Router;
use likewise_core::GenerationId;
use likewise_kafka::{ChangeLog, ChangeLogSettings, Topics};
use likewise_mongodb::Store;
use likewise_serving::{
    Condition, Conditions, HttpSettings, Tasks, Telemetry, app, ready_when, serve,
};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::board::Board;
pub use crate::gather::BatchLimits;

/// What the role needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the change log is.
    pub log: ChangeLogSettings,
    /// Which generation is counted.
    pub generation: GenerationId,
    /// When a batch is full.
    pub limits: BatchLimits,
    /// Who this process is, for the operator.
    pub owner: String,
    /// The limits of the admin port.
    pub http: HttpSettings,
}

/// What every worker shares.
struct Shared {
    settings: Settings,
    store: Store,
    log: ChangeLog,
    board: Board,
    /// Why no partition may be counted at the moment.
    stop: watch::Receiver<Option<String>>,
}

/// Counts until `shutdown`, then ends the batch in hand and leaves the group. An error also where the
/// topic or MongoDB is set so that changes or counts could be lost.
pub async fn run(
    settings: Settings,
    store: Store,
    listener: TcpListener,
    telemetry: &Telemetry,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    telemetry::describe();
    let conditions = conditions(&settings, &store)?;
    let conditions = Conditions::look(conditions).await?;
    let (log, events) = ChangeLog::join(&settings.log)?;
    let http = settings.http.clone();
    let (tell, stop) = watch::channel(None);
    let shared = Arc::new(Shared { settings, store, log, board: Board::default(), stop });

    let readiness = {
        let (shared, met) = (shared.clone(), conditions.met());
        ready_when(move || {
            let (shared, met) = (shared.clone(), met.clone());
            async move {
                met.ready()?;
                shared.store.ping().await.map_err(|error| error.to_string())?;
                shared.log.partitions().await.map_err(|error| error.to_string())?;
                shared.board.ready()
            }
        })
    };
    let app = app(Router::new(), readiness, telemetry, &http);

    let mut tasks = Tasks::new(shutdown.clone());
    tasks.spawn("serving HTTP", serve(listener, app, http, shutdown.clone()));
    let watching = stop::watch(shared.clone(), tell, shutdown.clone());
    tasks.spawn("watching for reasons to stop", watching);
    tasks.spawn("counting", group::follow(shared.clone(), events, shutdown.clone()));
    tasks.spawn("checking the settings of Kafka and MongoDB", conditions.keep(shutdown));
    let outcome = tasks.join().await;
    // Whoever still holds it has ended by now; if not, the group notices the silence by itself.
    if let Some(shared) = Arc::into_inner(shared) {
        shared.log.leave().await;
    }
    outcome
}

fn conditions(settings: &Settings, store: &Store) -> anyhow::Result<[Condition; 2]> {
    let topics = Arc::new(Topics::new(settings.log.brokers.clone())?);
    Ok([
        Condition::new(
            "Kafka",
            topics,
            |topics| async move { topics.ping().await.map(|()| String::new()) },
            |topics| async move { topics.check_changes().await },
        ),
        Condition::new(
            "MongoDB",
            store.clone(),
            |store| async move { store.primary().await },
            |store| async move { store.check().await },
        ),
    ])
}
