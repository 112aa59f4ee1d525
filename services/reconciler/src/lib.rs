//! The reconciler: has the posts recounted whose count is in doubt, watches the connector, and compares
//! MySQL's history with what was counted of it.

mod conditions;
mod connector;
mod history;
mod negative;
mod repairs;
mod silence;

use axum::Router;
use likewise_connect::{Connect, Definition};
use likewise_core::SourceName;
use likewise_kafka::Bounds;
use likewise_mongodb::Store;
use likewise_mysql::Mysql;
use likewise_serving::{Conditions, HttpSettings, Tasks, Telemetry, app, ready_when, serve};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// What the role needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The limits of the admin port.
    pub http: HttpSettings,
    /// The MySQL account of the connector.
    pub connector_user: String,
}

/// The servers that it works with.
pub struct Servers {
    /// Through the application's account.
    pub mysql: Mysql,
    /// Through an account that sees who reads the binlog.
    pub mysql_admin: Mysql,
    /// The counts.
    pub store: Store,
    /// The change log.
    pub log: Bounds,
    /// Kafka Connect.
    pub connect: Connect,
}

/// Works until `shutdown`. An error also where MySQL, MongoDB or the connector is set so that likes
/// could be lost or counted twice.
pub async fn run(
    settings: Settings,
    servers: Servers,
    listener: TcpListener,
    telemetry: &Telemetry,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let conditions = Conditions::look(conditions::of(&servers)).await?;
    let Servers { mysql, mysql_admin, store, log, connect } = servers;
    let readiness = {
        let (mysql, store, met) = (mysql.clone(), store.clone(), conditions.met());
        ready_when(move || {
            let (mysql, store, met) = (mysql.clone(), store.clone(), met.clone());
            async move {
                met.ready()?;
                mysql.ready().await.map_err(|error| error.to_string())?;
                store.ping().await.map_err(|error| error.to_string())
            }
        })
    };
    let app = app(Router::new(), readiness, telemetry, &settings.http);
    let definition = Definition::of_project();
    let watched = connector::Watched {
        connect,
        name: definition.name.clone(),
        mysql: mysql_admin,
        user: settings.connector_user,
        log,
    };

    let mut tasks = Tasks::new(shutdown.clone());
    tasks.spawn("serving HTTP", serve(listener, app, settings.http, shutdown.clone()));
    let source = SourceName(definition.source().into());
    let comparing = history::watch(mysql.clone(), store.clone(), source, shutdown.clone());
    tasks.spawn("comparing MySQL's history", comparing);
    let negative = negative::watch(store.clone(), shutdown.clone());
    tasks.spawn("looking for sums below zero", negative);
    tasks.spawn("repairing counts", repairs::work_off(mysql, store, shutdown.clone()));
    tasks.spawn("watching the connector", connector::watch(watched, shutdown.clone()));
    tasks.spawn("checking the settings of its servers", conditions.keep(shutdown));
    tasks.join().await
}
