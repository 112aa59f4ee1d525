//! A role's router, with what every role answers.

use std::any::Any;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::HeaderName;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::{
    MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer,
};
use uuid::Uuid;

use crate::health::{livez, readyz};
use crate::{Kind, Problem, Readiness, Telemetry};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Completes a role's routes: `/livez`, `/readyz`, `/metrics`, problems for unknown addresses and
/// methods and for panics, a deadline for every call, and a request id in and out.
pub fn app(api: Router, readiness: Readiness, telemetry: &Telemetry, deadline: Duration) -> Router {
    let metrics = telemetry.clone();
    api.route("/livez", get(livez))
        .route("/readyz", get(move || readyz(readiness.clone())))
        .route("/metrics", get(async move || metrics.render()))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(move |request, next| within(deadline, request, next)))
        .layer(from_fn(access_log))
        .layer(PropagateRequestIdLayer::new(REQUEST_ID))
        .layer(SetRequestIdLayer::new(REQUEST_ID, FreshId))
}

#[derive(Clone, Copy)]
struct FreshId;

impl MakeRequestId for FreshId {
    fn make_request_id<B>(&mut self, _: &axum::http::Request<B>) -> Option<RequestId> {
        Uuid::new_v4().to_string().parse().ok().map(RequestId::new)
    }
}

async fn within(deadline: Duration, request: Request, next: Next) -> Response {
    match tokio::time::timeout(deadline, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::new(
            Kind::Timeout,
            "no answer within the deadline; the call may have taken effect, and may be repeated",
        )
        .into_response(),
    }
}

/// One line a request; no header is logged, so no token is.
async fn access_log(request: Request, next: Next) -> Response {
    let started = std::time::Instant::now();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let id = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
    let response = next.run(request).await;
    tracing::debug!(
        target: "access",
        %method,
        path,
        status = response.status().as_u16(),
        elapsed_us = started.elapsed().as_micros(),
        request_id = id,
    );
    response
}

async fn not_found() -> Problem {
    Problem::new(
        Kind::NotFound,
        "look at the address; likes are at /v1/posts/{post_id}/like on the write API, counts at /v1/posts/{post_id}/count on the read API",
    )
}

async fn method_not_allowed() -> Problem {
    Problem::new(Kind::MethodNotAllowed, "the Allow header names the methods of this address")
}

fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let what = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("unknown");
    tracing::error!(panic = what, "a request handler panicked");
    Problem::new(Kind::Internal, "the call failed; it may be repeated").into_response()
}
