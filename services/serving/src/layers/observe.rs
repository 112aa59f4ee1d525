//! The access log and the metrics of calls.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::http::header::{AUTHORIZATION, Entry};
use axum::middleware::Next;
use axum::response::Response;
use ipnet::IpNet;

use super::client::client;
use super::request_id::{REQUEST_ID, request_id};
use super::trace::trace_id;
use crate::app::OPERATIONS;
use crate::server::Arrival;
use crate::telemetry::CALL_SECONDS;

/// The route of an address that there is not.
const NO_ROUTE: &str = "none";

/// What a call's handler learns about it, for the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// What kind of caller it was.
    pub(crate) caller: Arc<OnceLock<&'static str>>,
}

/// Writes the access log: one line a call, with the route and never the address itself, so that no id,
/// no query and no token is in it.
pub(crate) struct Observer {
    trusted_proxies: Vec<IpNet>,
}

impl Observer {
    pub(crate) fn new(trusted_proxies: Vec<IpNet>) -> Self {
        Self { trusted_proxies }
    }

    pub(crate) async fn watch(self: Arc<Self>, mut request: Request, next: Next) -> Response {
        let started = Instant::now();
        let method = request.method().clone();
        let route = request.extensions().get::<MatchedPath>().cloned();
        let id = request_id(request.headers());
        let trace = trace_id(request.headers()).map(str::to_owned);
        let arrival = request.extensions().get::<Arrival>();
        let client =
            arrival.map(|from| client(from.peer.ip(), request.headers(), &self.trusted_proxies));
        let seen = Seen::default();
        request.extensions_mut().insert(seen.clone());
        if let Entry::Occupied(mut tokens) = request.headers_mut().entry(AUTHORIZATION) {
            tokens.iter_mut().for_each(|token| token.set_sensitive(true));
        }
        request.headers_mut().insert(REQUEST_ID, id.clone());

        let mut response = next.run(request).await;

        let elapsed = started.elapsed();
        let status = response.status();
        let route = route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
        metrics::counter!(
            "likewise_http_requests_total",
            "method" => label(&method), "route" => route.to_owned(), "status" => status.as_str().to_owned(),
        )
        .increment(1);
        metrics::histogram!(
            CALL_SECONDS,
            "method" => label(&method), "route" => route.to_owned(),
        )
        .record(elapsed);
        let caller = seen.caller.get().copied().unwrap_or("none");
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    target: "access",
                    method = label(&method),
                    route,
                    status = status.as_u16(),
                    elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
                    caller,
                    client = client.map(tracing::field::display),
                    request_id = id.to_str().unwrap_or_default(),
                    trace_id = trace,
                )
            };
        }
        if OPERATIONS.contains(&route) {
            line!(debug);
        } else {
            line!(info);
        }
        response.headers_mut().insert(REQUEST_ID, id);
        response
    }
}

/// A method's name, of which a caller can make up any number.
fn label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "POST" => "POST",
        "PATCH" => "PATCH",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}
