//! A role's router, with what every role answers.

use std::any::Any;
use std::sync::Arc;

use axum::http::Method;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use tower_http::catch_panic::CatchPanicLayer;

use crate::health::{livez, readyz};
use crate::layers::{Capacity, Limits, Observer, cached, compressed, cors, finished};
use crate::server::Arrival;
use crate::{HttpSettings, Kind, Problem, Readiness, Telemetry};

/// What an operator's machines ask: answered above every limit, and logged at `debug` alone.
pub(crate) const OPERATIONS: [&str; 3] = ["/livez", "/readyz", "/metrics"];

/// Completes a role's routes: `/livez`, `/readyz`, `/metrics`, problems for unknown addresses and
/// methods and for panics, limits and a deadline for every call, a request id in and out, and a line in
/// the access log. Every answer that is no success is a problem.
pub fn app(
    api: Router,
    readiness: Readiness,
    telemetry: &Telemetry,
    settings: &HttpSettings,
) -> Router {
    let metrics = telemetry.clone();
    let capacity = Arc::new(Capacity::new(settings.max_concurrent_requests));
    let limits = Arc::new(Limits::new(settings));
    let observer = Arc::new(Observer::new(settings.trusted_proxies.clone()));
    let api = api
        .layer(from_fn(cached))
        .layer(from_fn(compressed))
        .layer(from_fn(move |request, next| capacity.clone().admit(request, next)));
    let [live, ready, measured] = OPERATIONS;
    let app = api
        .route(live, get(livez))
        .route(
            ready,
            get(move |arrival: Option<Extension<Arrival>>| {
                readyz(readiness.clone(), arrival.map(|Extension(arrival)| arrival))
            }),
        )
        .route(measured, get(async move || metrics.render()))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(move |request, next| limits.clone().hold(request, next)));
    cors(app, &settings.cors_origins)
        .layer(from_fn(finished))
        .layer(from_fn(move |request, next| observer.clone().watch(request, next)))
}

async fn not_found() -> Problem {
    Problem::new(
        Kind::NotFound,
        "look at the address; likes are at /v1/posts/{post_id}/like on the write API, counts at /v1/posts/{post_id}/count on the read API",
    )
}

/// The Allow header comes from the routes themselves. OPTIONS asks for nothing else.
async fn method_not_allowed(method: Method) -> Response {
    if method == Method::OPTIONS {
        return axum::http::StatusCode::NO_CONTENT.into_response();
    }
    Problem::new(Kind::MethodNotAllowed, "the Allow header names the methods of this address")
        .into_response()
}

fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let what = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("unknown");
    tracing::error!(panic = what, "a request handler panicked");
    Problem::failed().into_response()
}
