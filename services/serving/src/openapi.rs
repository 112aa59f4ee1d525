//! What an API says of itself: its OpenAPI document, and a page that shows it without any other server.

mod answers;
mod pages;

use axum::Router;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{InfoBuilder, License, OpenApi};
use utoipa::{PartialSchema as _, ToSchema};

use crate::problem::ProblemBody;

/// The id of a user or of a post, as the documents describe it: 1 to 64 ASCII characters from letters,
/// digits and `-._~:@+=`, except `.` and `..`.
#[derive(Debug, ToSchema)]
#[schema(
    value_type = String, min_length = 1, max_length = 64, examples("p1"),
    pattern = r"^(?!\.{1,2}$)[A-Za-z0-9\-._~:@+=]{1,64}$",
)]
pub struct Id(#[allow(dead_code, reason = "only its description is used")] String);

const BEARER: &str = "bearer";

/// Completes the document that an API's routes make: title, callers, and the problems that every call may
/// answer with.
pub fn describe(mut document: OpenApi, title: &str, description: &str) -> OpenApi {
    document.info = InfoBuilder::new()
        .title(title)
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(format!("{description}\n\n{}", answers::about())))
        .license(Some(License::new("Apache-2.0")))
        .build();
    let components = document.components.get_or_insert_default();
    components.schemas.insert(ProblemBody::name().into_owned(), ProblemBody::schema());
    // The schemas of parameters are not collected from the routes.
    components.schemas.insert(Id::name().into_owned(), Id::schema());
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "An app server's token, an operator's, or a user's own: a JWT whose `sub` is the user's id",
        ))
        .build();
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
    answers::complete(&mut document);
    document
}

/// `/openapi.json`, and `/docs`, which needs no other server.
pub fn documentation(document: &OpenApi) -> Router {
    pages::pages(document)
}
