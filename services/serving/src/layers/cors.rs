//! Pages of other origins.

use std::time::Duration;

use axum::Router;
use axum::http::header::{AUTHORIZATION, ETAG, IF_NONE_MATCH, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, Method};
use tower_http::cors::CorsLayer;

use super::request_id::REQUEST_ID;
use crate::caller::USER_HEADER;
use crate::writes::{RATE_LIMIT, RATE_LIMIT_POLICY};

/// How long a browser remembers what it may do.
const MAX_AGE: Duration = Duration::from_secs(600);

/// Lets pages of these origins call, with a token and without cookies. Without an origin nothing is said,
/// which is a browser's no.
pub(crate) fn cors(app: Router, origins: &[HeaderValue]) -> Router {
    if origins.is_empty() {
        return app;
    }
    let traceparent = HeaderName::from_static("traceparent");
    let user = HeaderName::from_static(USER_HEADER);
    let layer = CorsLayer::new()
        .allow_origin(origins.to_vec())
        .allow_methods([Method::GET, Method::HEAD, Method::PUT, Method::DELETE])
        .allow_headers([AUTHORIZATION, IF_NONE_MATCH, user, REQUEST_ID, traceparent])
        .expose_headers([REQUEST_ID, ETAG, RETRY_AFTER, RATE_LIMIT, RATE_LIMIT_POLICY])
        .max_age(MAX_AGE);
    app.layer(layer)
}
