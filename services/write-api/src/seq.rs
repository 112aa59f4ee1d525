//! The sequence number that a client may give a like or an unlike.

use likewise_core::Seq;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use utoipa::IntoParams;

/// The query of a like or an unlike.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Numbered {
    /// Applied only if it is greater than the highest that this user sent for this post; without it the last
    /// request to arrive wins. Bare digits: no sign, no leading zero.
    #[serde(default, deserialize_with = "bare")]
    #[param(value_type = Option<i64>, minimum = 1, maximum = 9_223_372_036_854_775_807_i64, nullable = false)]
    pub(crate) seq: Option<Seq>,
}

fn bare<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Seq>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let refused = || D::Error::custom("seq must be 1 to 9223372036854775807 in bare digits");
    Seq::parse(&text).map(Some).ok_or_else(refused)
}
