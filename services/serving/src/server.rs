//! Listening, and ending well.

mod answer;
mod connection;
mod progress;
mod stream;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::HttpSettings;
pub(crate) use answer::Arrival;
use connection::{Server, serve_connection};

/// How many connections are accepted above the limit, for health and to be told that they are too many.
const RESERVED_CONNECTIONS: usize = 64;
/// While it stops, the role goes on accepting until nobody has called for so long ...
const QUIET: Duration = Duration::from_millis(100);
/// ... and no longer than this: by then a balancer that asks for readiness every second has noticed.
const LAST_CALLS: Duration = Duration::from_secs(2);
/// Without file descriptors a connection cannot be accepted; some become free in a while.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `shutdown`. Then it goes on accepting until nobody has called for 100 ms, 2 s at most, each
/// answer telling the client that it was the last one on its connection; serves what stands in the
/// listener's queue; closes; and lets requests in flight end within the grace. Connections that are idle
/// or owe a request do not hold it up.
///
/// No request fails of a caller that heeds `Connection: close` and GOAWAY and calls more often than every
/// 100 ms, so that it is told. Whoever calls on an old connection just when it is closed sees it closed, and
/// whoever connects later is refused; both may repeat the call elsewhere.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    settings: HttpSettings,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let grace = settings.shutdown_grace;
    let accepting = Accepting {
        connections: Arc::new(Semaphore::new(settings.max_connections)),
        reserved: Arc::new(Semaphore::new(RESERVED_CONNECTIONS)),
        server: Arc::new(Server {
            app,
            settings,
            stopping: shutdown.clone(),
            closed: CancellationToken::new(),
            calls: Calls::new(),
        }),
        served: TaskTracker::new(),
    };
    tokio::select! {
        () = accepting.accept(&listener) => {}
        () = shutdown.cancelled() => {}
    }
    let began = Instant::now();
    tokio::select! {
        () = accepting.accept(&listener) => {}
        () = accepting.server.calls.end(began) => {}
    }
    accepting.empty(listener).context("failed to empty the listener's queue")?;
    accepting.server.closed.cancel();
    accepting.served.close();
    if tokio::time::timeout(grace, accepting.served.wait()).await.is_err() {
        tracing::warn!("requests were still open after {} s and are cut off", grace.as_secs());
    }
    Ok(())
}

/// When somebody called last.
pub(crate) struct Calls {
    began: Instant,
    last: AtomicU64,
}

impl Calls {
    fn new() -> Self {
        Self { began: Instant::now(), last: AtomicU64::new(0) }
    }

    pub(crate) fn another(&self) {
        self.last.store(self.now(), Relaxed);
    }

    /// Waits until nobody calls any more, or for as long as that is waited for.
    async fn end(&self, stopping_since: Instant) {
        loop {
            let stopping = stopping_since.elapsed();
            let last = Duration::from_micros(self.now().saturating_sub(self.last.load(Relaxed)));
            let quiet = QUIET.saturating_sub(last.min(stopping));
            if quiet.is_zero() || stopping >= LAST_CALLS {
                return;
            }
            tokio::time::sleep(quiet).await;
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

struct Accepting {
    connections: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    server: Arc<Server>,
    served: TaskTracker,
}

impl Accepting {
    /// Accepts for ever, but no more than can be served or refused.
    async fn accept(&self, listener: &TcpListener) {
        loop {
            // Above the limit and its reserve, connections wait in the listener's queue.
            let Ok(permit) = self.reserved.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((tcp, peer)) => {
                    let permit = self.connections.clone().try_acquire_owned().map_err(|_| permit);
                    self.serve(tcp, peer, permit);
                }
                // The client is gone already.
                Err(error) if is_of_connection(&error) => {}
                Err(error) => {
                    tracing::error!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Serves what stands in the queue, and closes it.
    fn empty(&self, listener: TcpListener) -> io::Result<()> {
        // The runtime's own listener may not know yet of a connection that the queue holds.
        let listener = listener.into_std()?;
        while let Ok(permit) = self.reserved.clone().try_acquire_owned() {
            match listener.accept() {
                Ok((tcp, peer)) => {
                    tcp.set_nonblocking(true)?;
                    let permit = self.connections.clone().try_acquire_owned().map_err(|_| permit);
                    self.serve(TcpStream::from_std(tcp)?, peer, permit);
                }
                Err(error) if is_of_connection(&error) => {}
                Err(_) => break,
            }
        }
        Ok(())
    }

    fn serve(&self, tcp: TcpStream, peer: SocketAddr, permit: connection::Permit) {
        self.server.calls.another();
        // An answer is written in one go: there is nothing to gather.
        if let Err(error) = tcp.set_nodelay(true) {
            tracing::debug!(%error, "the connection is gone already");
        }
        self.served.spawn(serve_connection(self.server.clone(), tcp, peer, permit));
    }
}

fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionRefused | ConnectionAborted | ConnectionReset)
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
