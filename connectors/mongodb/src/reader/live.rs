//! Which generation is read, whether all of its counts are in doubt, and whether MongoDB is there.

use std::time::Duration;

use crate::reader::Reader;
use crate::{Error, Live};

/// For how long a switch of the live generation, or that MongoDB is back, may go unnoticed.
const REFRESH: Duration = Duration::from_millis(500);

/// The generation that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Readable {
    pub(super) live: Live,
    /// A table was truncated, or the log has a gap: until everything was recounted, any count may be wrong.
    pub(super) in_doubt: bool,
}

impl Reader {
    /// Publishes the live generation. While MongoDB is away the last one stands.
    pub(super) async fn watch_live(&self) {
        loop {
            match self.look_at_live().await {
                Ok(seen) => {
                    self.live.send_if_modified(|last| std::mem::replace(last, seen) != seen);
                    self.set_away(false);
                }
                Err(error) => {
                    self.failed(&error);
                }
            }
            tokio::time::sleep(REFRESH).await;
        }
    }

    async fn look_at_live(&self) -> Result<Option<Readable>, Error> {
        let Some(live) = self.store.live().await? else { return Ok(None) };
        Ok(Some(Readable { live, in_doubt: self.store.stands(live.generation).await? }))
    }
}
