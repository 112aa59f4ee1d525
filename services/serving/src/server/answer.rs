//! A call on a connection, until its answer is handed over.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderValue, Request, Response, Version};
use http_body::{Frame, SizeHint};
use tokio_util::sync::WaitForCancellationFutureOwned;
use tower::{Service, ServiceExt as _};

use super::connection::Server;
use super::progress::{InFlight, Progress};

/// How a request came, in its extensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// The address of whoever connected.
    pub(crate) peer: SocketAddr,
    /// The connection is one too many: health is answered, and nothing else.
    pub(crate) reserved: bool,
    /// The role was asked to stop.
    pub(crate) stopping: bool,
}

/// Answers the calls of one connection.
#[derive(Clone)]
pub(super) struct Answering {
    server: Arc<Server>,
    progress: Arc<Progress>,
    peer: SocketAddr,
    reserved: bool,
}

impl Answering {
    pub(super) fn new(
        server: Arc<Server>,
        progress: Arc<Progress>,
        peer: SocketAddr,
        reserved: bool,
    ) -> Self {
        Self { server, progress, peer, reserved }
    }

    async fn answer<B>(self, request: Request<B>, call: InFlight) -> Response<Handed>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let is_http1 = request.version() < Version::HTTP_2;
        let mut request = request.map(Body::new);
        let arrival = Arrival {
            peer: self.peer,
            reserved: self.reserved,
            stopping: self.server.stopping.is_cancelled(),
        };
        request.extensions_mut().insert(arrival);
        let app: Router = self.server.app.clone();
        let mut response = app.oneshot(request).await.unwrap_or_else(|never| match never {});
        let stopping = self.server.stopping.is_cancelled();
        if is_http1 && (stopping || self.reserved) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let is_stream = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|media| media.as_bytes().starts_with(b"text/event-stream"));
        let until = is_stream.then(|| Box::pin(self.server.stopping.clone().cancelled_owned()));
        response.map(|body| Handed { body, until, _call: call })
    }
}

impl<B> Service<Request<B>> for Answering
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    type Response = Response<Handed>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.server.calls.another();
        let call = self.progress.call();
        let this = self.clone();
        Box::pin(async move { Ok(this.answer(request, call).await) })
    }
}

/// An answer's content. A stream ends when the role stops: its reader comes back to another one.
pub(super) struct Handed {
    body: Body,
    until: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    _call: InFlight,
}

impl HttpBody for Handed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(until) = &mut self.until
            && until.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
