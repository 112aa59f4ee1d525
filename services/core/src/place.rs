//! Places in a list of likes.

use compact_str::CompactString;

use crate::Micros;

/// An entry of a list, and where it stands: newest first, and of equal times the later id first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// When it was liked.
    pub liked_at: Micros,
    /// The user or the post, as it stands in MySQL, where an import may have put any text.
    pub id: CompactString,
}
