//! What an API says of itself: its OpenAPI document, and a page that shows it without any other server.

use axum::Router;
use axum::http::StatusCode;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, InfoBuilder, License, OpenApi, Ref, RefOr, Response, ResponseBuilder,
};
use utoipa::{PartialSchema as _, ToSchema};
use utoipa_swagger_ui::SwaggerUi;

use crate::problem::{Kind, ProblemBody};

/// The id of a user or of a post, as the documents describe it: 1 to 64 ASCII characters from letters,
/// digits and `-._~:@+=`, except `.` and `..`.
#[derive(Debug, ToSchema)]
#[schema(
    value_type = String, min_length = 1, max_length = 64, examples("p1"),
    pattern = r"^(?!\.{1,2}$)[A-Za-z0-9\-._~:@+=]{1,64}$",
)]
pub struct Id(#[allow(dead_code, reason = "only its description is used")] String);

const BEARER: &str = "bearer";

/// What any call of an API may be refused with; a route names what is its own.
const EVERY_CALL: [Kind; 4] =
    [Kind::InvalidQuery, Kind::Unauthorized, Kind::Unavailable, Kind::Internal];

/// Completes the document that an API's routes make: title, callers, and the problems that every call may
/// answer with.
pub fn describe(mut document: OpenApi, title: &str, description: &str) -> OpenApi {
    document.info = InfoBuilder::new()
        .title(title)
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(description))
        .license(Some(License::new("Apache-2.0")))
        .build();
    let components = document.components.get_or_insert_default();
    components.schemas.insert(ProblemBody::name().into_owned(), ProblemBody::schema());
    // The schemas of parameters are not collected from the routes.
    components.schemas.insert(Id::name().into_owned(), Id::schema());
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
    for path in document.paths.paths.values_mut() {
        let operations = [&mut path.get, &mut path.put, &mut path.delete, &mut path.post];
        for operation in operations.into_iter().flatten() {
            add_problems(operation);
        }
    }
    document
}

fn add_problems(operation: &mut Operation) {
    for kind in EVERY_CALL {
        let status = kind.status().as_u16().to_string();
        operation.responses.responses.entry(status).or_insert_with(|| RefOr::T(problem(kind)));
    }
}

fn problem(kind: Kind) -> Response {
    let description = match kind.status() {
        StatusCode::BAD_REQUEST => "The call is not valid",
        _ => kind.title(),
    };
    let body =
        ContentBuilder::new().schema(Some(Ref::from_schema_name(ProblemBody::name()))).build();
    ResponseBuilder::new()
        .description(description)
        .content("application/problem+json", body)
        .build()
}

/// `/openapi.json`, and `/docs`, which needs no other server.
pub fn documentation(document: OpenApi) -> Router {
    SwaggerUi::new("/docs").url("/openapi.json", document).into()
}
