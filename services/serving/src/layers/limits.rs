//! What a request may be, how long it may take, and how many are worked on at once.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_LENGTH};
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use tokio::sync::Semaphore;

use super::media::accepts_ours;
use crate::server::Arrival;
use crate::{HttpSettings, Kind, Problem};

/// The longest target that is read. A batch of 100 ids of 64 characters takes less than half.
pub(crate) const MAX_TARGET_BYTES: usize = 16 << 10;
/// All names and values of a request's headers.
const MAX_HEADER_BYTES: usize = 16 << 10;
/// No call takes content. What a client sends all the same is read, so that its connection can go on.
pub(crate) const MAX_CONTENT_BYTES: usize = 16 << 10;

/// The limits of each request by itself.
pub(crate) struct Limits {
    deadline: Duration,
    content_deadline: Duration,
    /// How many requests may owe content at once: each holds its head for as long.
    arriving: Semaphore,
}

impl Limits {
    pub(crate) fn new(settings: &HttpSettings) -> Self {
        Self {
            deadline: settings.request_deadline,
            content_deadline: settings.header_deadline,
            arriving: Semaphore::new(settings.max_concurrent_requests),
        }
    }

    /// Refuses what is too large, reads content away, and answers in time.
    pub(crate) async fn hold(self: Arc<Self>, request: Request, next: Next) -> Response {
        if let Err(problem) = sized(request.uri(), request.headers()) {
            return refused(problem);
        }
        let request = match self.without_content(request).await {
            Ok(request) => request,
            Err(problem) => return refused(problem),
        };
        match tokio::time::timeout(self.deadline, next.run(request)).await {
            Ok(response) => response,
            Err(_) => Problem::new(
                Kind::Timeout,
                "no answer within the deadline; the call may have taken effect, and may be repeated",
            )
            .into_response(),
        }
    }

    async fn without_content(&self, request: Request) -> Result<Request, Problem> {
        if request.body().is_end_stream() {
            return Ok(request);
        }
        let Ok(_place) = self.arriving.try_acquire() else {
            return Err(Problem::new(
                Kind::Overloaded,
                "more requests owe their content than this process waits for; send none",
            ));
        };
        let (parts, body) = request.into_parts();
        match tokio::time::timeout(self.content_deadline, read_away(body)).await {
            Ok(Content::Whole) => Ok(Request::from_parts(parts, Body::empty())),
            Ok(Content::TooLarge) => Err(too_much_content()),
            // A client that went away hears nothing of it.
            Ok(Content::Broken) => {
                Err(Problem::new(Kind::BadRequest, "the content ends before its end"))
            }
            Err(_) => Err(Problem::new(
                Kind::SlowRequest,
                "the content did not arrive within the deadline",
            )),
        }
    }
}

/// What became of a request's content.
enum Content {
    Whole,
    TooLarge,
    /// It is not framed as HTTP wants it, or its client went away.
    Broken,
}

/// Reads content, and keeps none of it.
async fn read_away(body: Body) -> Content {
    let mut content = body.into_data_stream();
    let mut left = MAX_CONTENT_BYTES;
    while let Some(part) = content.next().await {
        let Ok(part) = part else { return Content::Broken };
        match left.checked_sub(part.len()) {
            Some(still) => left = still,
            None => return Content::TooLarge,
        }
    }
    Content::Whole
}

fn sized(uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let target = uri.path_and_query().map_or(0, |target| target.as_str().len());
    if target > MAX_TARGET_BYTES {
        return Err(Problem::new(
            Kind::TargetTooLong,
            "path and query may have 16 KiB; ask for fewer ids in one call",
        ));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > MAX_HEADER_BYTES {
        return Err(Problem::new(Kind::HeadersTooLarge, "all headers may have 16 KiB together"));
    }
    let length: Option<u64> =
        headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    match length {
        Some(length) if length > MAX_CONTENT_BYTES as u64 => Err(too_much_content()),
        _ => Ok(()),
    }
}

fn too_much_content() -> Problem {
    Problem::new(Kind::ContentTooLarge, "no call takes content, and more than 16 KiB is not read")
}

fn refused(problem: Problem) -> Response {
    let reason = problem.kind().slug();
    metrics::counter!("likewise_refused_calls_total", "reason" => reason).increment(1);
    problem.into_response()
}

/// How many calls are worked on at once.
pub(crate) struct Capacity {
    places: Semaphore,
}

impl Capacity {
    pub(crate) fn new(calls: usize) -> Self {
        Self { places: Semaphore::new(calls) }
    }

    /// Answers 503 at once where there is no place: a queue would only make everybody late. A stream holds
    /// its place until it begins.
    pub(crate) async fn admit(self: Arc<Self>, request: Request, next: Next) -> Response {
        if request.extensions().get::<Arrival>().is_some_and(|arrival| arrival.reserved) {
            return refused(Problem::new(
                Kind::Overloaded,
                "more connections than this process serves at once; repeat the call later",
            ));
        }
        let Ok(_place) = self.places.try_acquire() else {
            return refused(Problem::new(
                Kind::Overloaded,
                "more calls than this process works on at once; repeat the call later",
            ));
        };
        if !accepts_ours(request.uri().path(), request.headers().get_all(ACCEPT)) {
            return refused(Problem::new(
                Kind::NotAcceptable,
                "calls answer with application/json, streams with text/event-stream",
            ));
        }
        next.run(request).await
    }
}
