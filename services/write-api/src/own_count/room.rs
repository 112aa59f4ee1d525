//! How many changes all posts together may keep.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Places, which whoever takes them gives back.
#[derive(Debug)]
pub(super) struct Room {
    left: AtomicUsize,
}

impl Room {
    pub(super) fn of(places: usize) -> Self {
        Self { left: AtomicUsize::new(places) }
    }

    /// Takes a place; false where none is left.
    pub(super) fn take(&self) -> bool {
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        taken.is_ok()
    }

    pub(super) fn give(&self, places: usize) {
        self.left.fetch_add(places, Ordering::Relaxed);
    }
    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }
}
