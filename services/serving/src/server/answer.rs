//! A call on a connection, until its answer is handed over.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request, Response, Version};
use http_body::{Frame, SizeHint};
use tokio_util::sync::WaitForCancellationFutureOwned;
use tower::{Service, ServiceExt as _};

use super::connection::Server;
use super::progress::{InFlight, Progress};
use crate::layers::is_stream;

/// What one part of an answer takes at most on HTTP/2: a client that takes less within the send deadline
/// takes nothing.
const PART_BYTES: usize = 16 << 10;

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
        let until = is_stream(response.headers())
            .then(|| Box::pin(self.server.stopping.clone().cancelled_owned()));
        let is_parted = !is_http1;
        response.map(|body| Handed { body, rest: Bytes::new(), is_parted, until, call })
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
    /// What is left of a frame whose first parts were handed over.
    rest: Bytes,
    is_parted: bool,
    until: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    call: InFlight,
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
        self.call.asked();
        if self.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let part = if self.is_parted { self.rest.len().min(PART_BYTES) } else { self.rest.len() };
        self.call.handed();
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(part)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let mut hint = self.body.size_hint();
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}
