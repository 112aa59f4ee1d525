//! Whether a role runs, and whether it can do its work.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::server::Arrival;
use crate::{Kind, Problem};

/// Asks a role whether it can do its work; the error is a sentence for the operator.
pub type Readiness =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync>;

/// Wraps a question.
pub fn ready_when<F>(question: impl Fn() -> F + Send + Sync + 'static) -> Readiness
where
    F: Future<Output = Result<(), String>> + Send + 'static,
{
    Arc::new(move || Box::pin(question()))
}

pub(crate) async fn livez() -> Json<serde_json::Value> {
    Json(json!({ "live": true }))
}

/// A role that stops is not ready: its last answers are for those who have not noticed yet.
pub(crate) async fn readyz(readiness: Readiness, arrival: Option<Arrival>) -> Response {
    if arrival.is_some_and(|arrival| arrival.stopping) {
        return Problem::new(Kind::Unavailable, "the role is stopping").into_response();
    }
    match readiness().await {
        Ok(()) => Json(json!({ "ready": true })).into_response(),
        Err(reason) => Problem::new(Kind::Unavailable, reason).into_response(),
    }
}
