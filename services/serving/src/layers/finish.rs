//! What every answer has in common.

use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::app::OPERATIONS;
use crate::problem::PROBLEM_JSON;
use crate::{Kind, Problem};

/// What is a user's, and whatever went wrong, is nobody else's and of no use later.
const NO_STORE: HeaderValue = HeaderValue::from_static("private, no-store");

/// Makes a problem of every refusal that a library wrote, and says what no handler said about caching.
pub(crate) async fn finished(request: Request, next: Next) -> Response {
    let is_operation = OPERATIONS.contains(&request.uri().path());
    let mut response = next.run(request).await;
    let status = response.status();
    if (status.is_client_error() || status.is_server_error()) && !is_problem(&response) {
        response = problem_of(response);
    }
    let headers = response.headers_mut();
    if !is_operation || status != StatusCode::OK {
        headers.entry(CACHE_CONTROL).or_insert(NO_STORE);
    }
    response
}

fn is_problem(response: &Response) -> bool {
    response.headers().get(CONTENT_TYPE) == Some(&PROBLEM_JSON)
}

/// Its headers stay, its words do not: they were not written for callers.
fn problem_of(response: Response) -> Response {
    let kind = match response.status() {
        StatusCode::NOT_FOUND => Kind::NotFound,
        StatusCode::NOT_ACCEPTABLE => Kind::NotAcceptable,
        StatusCode::METHOD_NOT_ALLOWED => Kind::MethodNotAllowed,
        StatusCode::PAYLOAD_TOO_LARGE => Kind::ContentTooLarge,
        status if status.is_client_error() => Kind::BadRequest,
        _ => Kind::Internal,
    };
    // Of a failure nothing is known, so nothing is said of what it did.
    let detail = if response.status().is_server_error() {
        "the call failed; it may have taken effect, and may be repeated"
    } else {
        "the call was refused before it reached its handler"
    };
    let mut problem = Problem::new(kind, detail).into_response();
    for (name, value) in response.headers() {
        if name != CONTENT_TYPE && name != CONTENT_LENGTH {
            problem.headers_mut().entry(name).or_insert_with(|| value.clone());
        }
    }
    problem
}
