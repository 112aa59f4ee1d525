//! The document, and the page that shows it, as they are sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use utoipa::openapi::OpenApi;
use utoipa_swagger_ui::{Config, serve};

use crate::layers::{GZIP, gzip, takes_gzip};
use crate::{Kind, Problem};

const DOCUMENT: &str = "/openapi.json";
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Anybody may ask for them, without a token and as often as they like: so they are made once, and every
/// answer shares them.
#[derive(Clone)]
struct Page {
    media: HeaderValue,
    plain: Bytes,
    gzip: Bytes,
}

impl Page {
    fn new(media: HeaderValue, plain: Bytes) -> Self {
        Self { media, gzip: gzip(&plain), plain }
    }

    fn answer(&self, headers: &HeaderMap) -> Response {
        let media = [(CONTENT_TYPE, self.media.clone())];
        if takes_gzip(headers) {
            (media, [(CONTENT_ENCODING, GZIP)], self.gzip.clone()).into_response()
        } else {
            (media, self.plain.clone()).into_response()
        }
    }
}

pub(super) fn pages(document: &OpenApi) -> Router {
    let json = document.to_json().expect("a document of our own can be written");
    let document = Page::new(JSON, json.into());
    let docs = Arc::new(Docs {
        config: Arc::new(Config::from(DOCUMENT).validator_url("none")),
        pages: Mutex::default(),
    });
    let index = docs.clone();
    Router::new()
        .route(DOCUMENT, get(async move |headers: HeaderMap| document.answer(&headers)))
        .route("/docs", get(async || Redirect::to("/docs/")))
        .route("/docs/", get(async move |headers: HeaderMap| index.answer("", &headers)))
        .route(
            "/docs/{*path}",
            get(async move |Path(path): Path<String>, headers: HeaderMap| {
                docs.answer(&path, &headers)
            }),
        )
}

/// The files of the page: as many as there are in the library.
struct Docs {
    config: Arc<Config<'static>>,
    pages: Mutex<HashMap<String, Page>>,
}

impl Docs {
    fn answer(&self, path: &str, headers: &HeaderMap) -> Response {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = pages.get(path) {
            return page.answer(headers);
        }
        let file = serve(path, self.config.clone()).ok().flatten();
        let page = file.and_then(|file| {
            let media = HeaderValue::try_from(file.content_type).ok()?;
            Some(Page::new(media, file.bytes.into_owned().into()))
        });
        let Some(page) = page else {
            return Problem::new(Kind::NotFound, "no such page").into_response();
        };
        let answer = page.answer(headers);
        pages.insert(path.to_owned(), page);
        answer
    }
}
