//! What stands between the connection and the handlers, the same for every call.

mod caching;
mod client;
mod compression;
mod cors;
mod finish;
mod limits;
mod media;
mod observe;
mod request_id;
mod trace;

pub(crate) use caching::{CACHED_ROUTES, cached};
pub(crate) use compression::{GZIP, compressed, gzip, takes_gzip};
pub(crate) use cors::cors;
pub(crate) use finish::finished;
pub(crate) use limits::{Capacity, Limits, MAX_CONTENT_BYTES, MAX_TARGET_BYTES};
pub(crate) use media::is_stream;
pub(crate) use observe::{Observer, Seen};
