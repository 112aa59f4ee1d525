//! Which page of a list a call asks for.

use std::future::Future;

use likewise_core::{Place, bare_number};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use utoipa::IntoParams;

use crate::{Cursors, List, Problem};

const DEFAULT_LIMIT: u32 = 20;
const MAX_LIMIT: u64 = 100;

/// The query of a list.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Page {
    /// The `next_cursor` of the page before; without it the list begins. Opaque, and good for this list
    /// alone.
    #[serde(default, deserialize_with = "given")]
    #[param(
        nullable = false,
        min_length = 1,
        max_length = 512,
        pattern = "^[A-Za-z0-9_-]{1,512}$"
    )]
    pub cursor: Option<String>,
    /// How many entries at most.
    #[serde(default = "default_limit", deserialize_with = "limit")]
    #[param(value_type = Option<u32>, nullable = false, minimum = 1, maximum = 100, default = 20)]
    pub limit: u32,
}

impl Page {
    /// The entries of this page of a list, and the cursor of the next one. `read` gives up to so many
    /// entries from the one behind a place on.
    pub async fn of<E, F>(
        &self,
        cursors: &Cursors,
        list: List<'_>,
        read: impl FnOnce(Option<Place>, u32) -> F,
    ) -> Result<(Vec<Place>, Option<String>), Problem>
    where
        Problem: From<E>,
        F: Future<Output = Result<Vec<Place>, E>>,
    {
        let after = cursors.open(list, self.cursor.as_deref())?;
        // One more than is shown tells whether any follows.
        let mut found = read(after, self.limit + 1).await?;
        let next_cursor = cursors.cut(list, &mut found, self.limit);
        Ok((found, next_cursor))
    }
}

fn default_limit() -> u32 {
    DEFAULT_LIMIT
}

/// An empty cursor is one, and not a valid one.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    String::deserialize(deserializer).map(Some)
}

fn limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let text = String::deserialize(deserializer)?;
    let number = bare_number(&text).filter(|number| (1..=MAX_LIMIT).contains(number));
    let number = number.and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| D::Error::custom("limit must be 1 to 100 in bare digits"))
}
