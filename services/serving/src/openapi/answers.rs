//! What every call may answer, whichever it is.

use std::fmt::Write as _;

use axum::http::StatusCode;
use utoipa::ToSchema as _;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::Operation;
use utoipa::openapi::{
    ContentBuilder, Object, OpenApi, Ref, RefOr, Response, ResponseBuilder, Type,
};

use crate::layers::{CACHED_ROUTES, MAX_CONTENT_BYTES, MAX_TARGET_BYTES};
use crate::problem::{Kind, ProblemBody};
use crate::writes::LIMITED_ROUTE;

/// What any call of an API may be refused with; a route names what is its own.
const EVERY_CALL: [Kind; 9] = [
    Kind::BadRequest,
    Kind::Unauthorized,
    Kind::NotAcceptable,
    Kind::SlowRequest,
    Kind::ContentTooLarge,
    Kind::TargetTooLong,
    Kind::HeadersTooLarge,
    Kind::Internal,
    Kind::Unavailable,
];

/// The parameter of calls that are a user's.
const USER: &str = "X-User-Id";
const USER_DESCRIPTION: &str = "The user on whose behalf an app server calls: needed beside the service \
     token, and refused beside a user's own token, which names the user.";

/// What holds for all calls of an API, in words.
pub(super) fn about() -> String {
    let mut about =
        "A refusal is a problem (RFC 9457), of one of these types, which stay what they are:\n"
            .to_owned();
    for kind in Kind::ALL {
        let (slug, status, title) = (kind.slug(), kind.status().as_u16(), kind.title());
        let _ = write!(about, "\n- `urn:likewise:problem:{slug}` ({status}): {title}");
    }
    let _ = write!(
        about,
        "\n\nPath and query may have {MAX_TARGET_BYTES} bytes. No call takes content: what is sent all \
         the same is not looked at, and more than {MAX_CONTENT_BYTES} bytes of it are refused. What is no \
         HTTP, or has a head of more than 64 KiB, is answered 400 or 431 without a problem.\n\n\
         A version of the API that is to go is announced by `Deprecation` (RFC 9745) and `Sunset` \
         (RFC 8594) on its answers, a year before it goes. None is, so far."
    );
    about
}

/// Adds to every call the answers and headers that it shares with all others.
pub(super) fn complete(document: &mut OpenApi) {
    for (route, path) in &mut document.paths.paths {
        let is_counts = CACHED_ROUTES.contains(&route.as_str());
        let is_like = route == LIMITED_ROUTE;
        let operations = [
            (&mut path.get, is_counts, false),
            (&mut path.put, false, is_like),
            (&mut path.delete, false, is_like),
            (&mut path.post, false, false),
        ];
        for (operation, is_cached, is_limited) in operations {
            if let Some(operation) = operation {
                answer(operation, is_cached, is_limited);
            }
        }
    }
}

fn answer(operation: &mut Operation, is_cached: bool, is_limited: bool) {
    let answers = &mut operation.responses.responses;
    let users = operation.parameters.iter_mut().flatten().find_map(|parameter| match parameter {
        RefOr::T(parameter) if parameter.name == USER => Some(parameter),
        _ => None,
    });
    let is_users = users.is_some();
    if let Some(user) = users {
        user.description = Some(USER_DESCRIPTION.to_owned());
    }
    let own = [is_limited.then_some(Kind::TooManyWrites), is_users.then_some(Kind::Forbidden)];
    for kind in EVERY_CALL.into_iter().chain(own.into_iter().flatten()) {
        let status = kind.status().as_u16().to_string();
        answers.entry(status).or_insert_with(|| RefOr::T(problem(kind)));
    }
    if is_cached {
        let unchanged = "The caller has the answer, by its If-None-Match";
        let unchanged = ResponseBuilder::new().description(unchanged).build();
        answers.entry("304".to_owned()).or_insert(RefOr::T(unchanged));
    }
    for (status, answer) in answers {
        let RefOr::T(answer) = answer else { continue };
        if answer.description.is_empty() {
            let accepted = status == StatusCode::ACCEPTED.as_str();
            answer.description = if accepted { "It is begun" } else { "The answer" }.to_owned();
        }
        for (name, header) in headers(status, is_cached, is_limited) {
            answer.headers.entry(name.to_owned()).or_insert(RefOr::T(header));
        }
    }
}

fn problem(kind: Kind) -> Response {
    let description = match kind.status() {
        StatusCode::BAD_REQUEST => "The call is not valid",
        StatusCode::SERVICE_UNAVAILABLE => {
            "Something the call needs is away, it took too long, or there are more calls than can be served"
        }
        _ => kind.title(),
    };
    let body =
        ContentBuilder::new().schema(Some(Ref::from_schema_name(ProblemBody::name()))).build();
    ResponseBuilder::new()
        .description(description)
        .content("application/problem+json", body)
        .build()
}

fn headers(status: &str, is_cached: bool, is_limited: bool) -> Vec<(&'static str, Header)> {
    let text = |description| header(Type::String, description);
    let mut headers = vec![
        ("X-Request-Id", text("The caller's id of the request, or a fresh one")),
        ("Cache-Control", text("Who may keep the answer")),
    ];
    if is_cached && matches!(status, "200" | "304") {
        headers.push(("ETag", text("For If-None-Match; weak")));
    }
    if is_limited && matches!(status, "200" | "429") {
        headers.push(("RateLimit-Policy", text("The writes that a user may have in a minute")));
        headers.push((
            "RateLimit",
            text(
                "How many of them are left (r), and within how many seconds there is one more (t)",
            ),
        ));
    }
    match status {
        "401" => headers.push(("WWW-Authenticate", text("How to call: with a bearer token"))),
        "429" | "503" => {
            let seconds = "After how many seconds the call may be repeated";
            headers.push(("Retry-After", header(Type::Integer, seconds)));
        }
        _ => {}
    }
    headers
}

fn header(schema: Type, description: &str) -> Header {
    HeaderBuilder::new()
        .schema(Some(Object::with_type(schema)))
        .description(Some(description))
        .build()
}
