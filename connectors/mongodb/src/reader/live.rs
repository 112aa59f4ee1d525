//! Which generation is read, whether all of its counts are in doubt, and whether MongoDB is there.

use std::time::Duration;

use tokio::time::timeout;

use crate::reader::Reader;
use crate::reader::flights::Failure;
use crate::{Error, Live};

/// For how long a switch of the live generation, or that MongoDB is back, may go unnoticed.
const REFRESH: Duration = Duration::from_millis(500);
/// The pause between two looks, however many reads fail meanwhile.
const AT_LEAST: Duration = Duration::from_millis(50);

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
        // Away is what did not answer two looks in a row: the first may have met a pause of this process.
        let mut slow = false;
        loop {
            let patience = self.settings.patience / if slow { 2 } else { 1 };
            match timeout(patience, self.look_at_live()).await {
                Ok(Ok(seen)) => {
                    slow = false;
                    self.live.send_if_modified(|last| std::mem::replace(last, seen) != seen);
                    self.set_away(false);
                }
                Ok(Err(error)) => {
                    slow = false;
                    if self.failed(&error) == Failure::Away {
                        self.set_away(true);
                    }
                }
                Err(_) if slow => {
                    slow = false;
                    self.set_away(true);
                }
                Err(_) => {
                    slow = true;
                    continue;
                }
            }
            tokio::time::sleep(AT_LEAST).await;
            tokio::select! {
                () = tokio::time::sleep(REFRESH - AT_LEAST) => {}
                () = self.doubted.notified(), if !self.is_away() => {}
            }
        }
    }

    async fn look_at_live(&self) -> Result<Option<Readable>, Error> {
        let Some(live) = self.store.live().await? else { return Ok(None) };
        Ok(Some(Readable { live, in_doubt: self.store.stands(live.generation).await? }))
    }
}
