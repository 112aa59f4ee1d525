//! One connection, from its first byte to its end.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::Calls;
use super::answer::Answering;
use super::progress::Progress;
use super::stream::Stream;
use crate::HttpSettings;

/// How much of one request's head is held. A target of 16 KiB and headers of as much are served; this is
/// more, so that the refusal of something larger is one of ours, which says what is too large.
const HEAD_BYTES: usize = 64 << 10;
/// How many calls one HTTP/2 connection may have at once.
const HTTP2_STREAMS: u32 = 32;
/// How much of all answers of an HTTP/2 connection waits to be sent, and how much content of all its
/// requests to be looked at: the protocol's own smallest window.
const HTTP2_WINDOW_BYTES: u32 = 65_535;
/// A connection above the limit owes its request sooner, and takes its answer sooner.
const RESERVED_DEADLINE: Duration = Duration::from_secs(1);
/// What is on its way when the listener closes arrives within this.
const LAST_BYTES: Duration = Duration::from_secs(1);
/// How exact deadlines are.
const LOOKS: u32 = 8;
const LOOK_AT_LEAST: Duration = Duration::from_millis(25);

/// What all connections share.
pub(super) struct Server {
    pub(super) app: Router,
    pub(super) settings: HttpSettings,
    /// The role was asked to stop.
    pub(super) stopping: CancellationToken,
    /// Nothing is accepted any more.
    pub(super) closed: CancellationToken,
    pub(super) calls: Calls,
}

/// A connection's place: within the limit, or of the reserve above it.
pub(super) type Permit = Result<OwnedSemaphorePermit, OwnedSemaphorePermit>;

/// Ends when the connection does. Whoever drops it cuts the connection.
pub(super) async fn serve_connection(
    server: Arc<Server>,
    tcp: TcpStream,
    peer: SocketAddr,
    permit: Permit,
) {
    let progress = Progress::new();
    let stream = TokioIo::new(Stream::new(tcp, progress.clone()));
    let answering = Answering::new(server.clone(), progress.clone(), peer, permit.is_err());
    let answering = TowerToHyperService::new(answering);
    let builder = builder(permit.is_err());
    let mut connection = pin!(builder.serve_connection(stream, answering));
    let mut watch = Watch::new(&server.settings, permit.is_err());
    let mut told = Told { stopping: false, closed: None };
    let outcome = loop {
        tokio::select! {
            outcome = connection.as_mut() => break outcome,
            () = tokio::time::sleep(watch.look_after) => match watch.look(&progress, &told) {
                Verdict::Stays => {}
                Verdict::Ends => connection.as_mut().graceful_shutdown(),
                Verdict::Cut(why) => {
                    metrics::counter!("likewise_http_connections_cut_total", "why" => why).increment(1);
                    return;
                }
            },
            () = server.stopping.cancelled(), if !told.stopping => {
                told.stopping = true;
                watch.look_after = LOOK_AT_LEAST;
            }
            () = server.closed.cancelled(), if told.closed.is_none() => {
                told.closed = Some(Instant::now());
                // One that has not called yet may have its request on its way.
                if progress.idle_for().is_some() {
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(error, %peer, "a connection failed");
    }
    drop(permit);
}

struct Told {
    stopping: bool,
    closed: Option<Instant>,
}

fn builder(reserved: bool) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // Watched here, since an idle connection's deadline is another one.
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES)
        .keep_alive(!reserved);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS)
        .initial_stream_window_size(HTTP2_WINDOW_BYTES)
        .initial_connection_window_size(HTTP2_WINDOW_BYTES)
        .max_send_buf_size(HTTP2_WINDOW_BYTES as usize)
        .max_header_list_size(u32::try_from(HEAD_BYTES).unwrap_or(u32::MAX));
    builder
}

enum Verdict {
    Stays,
    Ends,
    Cut(&'static str),
}

/// The deadlines of a connection.
struct Watch {
    header: Duration,
    idle: Duration,
    send: Duration,
    look_after: Duration,
    reserved: bool,
    ending: bool,
}

impl Watch {
    fn new(settings: &HttpSettings, reserved: bool) -> Self {
        let sooner = |deadline: Duration| {
            if reserved { deadline.min(RESERVED_DEADLINE) } else { deadline }
        };
        let (header, idle) = (sooner(settings.header_deadline), sooner(settings.idle_deadline));
        let send = sooner(settings.send_deadline);
        let look_after = (header.min(idle).min(send) / LOOKS).max(LOOK_AT_LEAST);
        Self { header, idle, send, look_after, reserved, ending: false }
    }

    fn look(&mut self, progress: &Progress, told: &Told) -> Verdict {
        let is_over =
            |since: Option<Duration>, deadline| since.is_some_and(|since| since >= deadline);
        if is_over(progress.sending_for(), self.send) {
            Verdict::Cut("send")
        } else if is_over(progress.reading_for(), self.header) {
            Verdict::Cut("header")
        } else if told.closed.is_some_and(|closed| closed.elapsed() >= LAST_BYTES)
            && !progress.is_busy()
        {
            Verdict::Cut("stopping")
        } else if is_over(progress.idle_for(), self.idle) {
            if self.ending {
                return Verdict::Cut("idle");
            }
            self.ending = true;
            Verdict::Ends
        } else if (self.reserved || told.stopping) && progress.is_http2() && !self.ending {
            // HTTP/2 has no answer that says that it is the connection's last one, as HTTP/1.1 has. Which of
            // them is spoken is known after the first bytes.
            self.ending = true;
            Verdict::Ends
        } else {
            Verdict::Stays
        }
    }
}
