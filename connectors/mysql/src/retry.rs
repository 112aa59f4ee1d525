//! Running a statement again that another transaction was in the way of.

use mysql_async::Error as Driver;

use crate::error::is_conflict;

/// How often one call may still be run again. The deadline of the call bounds the whole.
pub(crate) struct Attempts {
    left: u32,
}

impl Attempts {
    /// So many in all, the first included.
    pub(crate) fn new(all: u32) -> Self {
        Self { left: all.saturating_sub(1) }
    }

    /// Whether to run the call again: it was chosen as a deadlock's victim or waited for a lock too long, so
    /// MySQL rolled the statement back.
    pub(crate) fn again(&mut self, error: &Driver) -> bool {
        let again = self.left > 0 && is_conflict(error);
        if again {
            self.left -= 1;
            tracing::debug!(%error, left = self.left, "a statement met a deadlock and is run again");
        }
        again
    }
}
