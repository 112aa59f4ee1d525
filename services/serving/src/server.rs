//! Listening, and ending well.

use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How long requests in flight may take to end once the role was asked to stop.
const GRACE: Duration = Duration::from_secs(10);

/// Serves until `shutdown`, then takes no new connection and lets requests in flight end.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let asked = shutdown.clone();
    let serving =
        axum::serve(listener, app).with_graceful_shutdown(async move { asked.cancelled().await });
    let overdue = async {
        shutdown.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        served = serving.into_future() => served.context("failed to serve"),
        () = overdue => {
            tracing::warn!("requests were still open after {} s and are cut off", GRACE.as_secs());
            Ok(())
        }
    }
}

/// A token that SIGTERM or SIGINT cancels.
pub fn shutdown_on_signal() -> anyhow::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    let shutdown = CancellationToken::new();
    let cancel = shutdown.clone();
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!("{name}: stopping; a second signal ends the process at once");
        cancel.cancel();
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        std::process::exit(1);
    });
    Ok(shutdown)
}
