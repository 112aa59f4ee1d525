//! What a fault finds: a running load, chance, and a place for what it did.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;

use crate::load::Load;
use crate::progress::Progress;

/// One run of one fault.
pub(crate) struct Scene {
    pub(crate) rng: StdRng,
    pub(crate) load: Arc<Load>,
    pub(crate) progress: Progress,
    /// How often the fault was provoked.
    pub(crate) provoked: u64,
    /// The rare paths, and how often each was taken.
    pub(crate) reached: Vec<(&'static str, u64)>,
}

impl Scene {
    /// Waits for a moment that nobody chose.
    pub(crate) async fn any_moment(&mut self, range_ms: std::ops::Range<u64>) {
        let pause = Duration::from_millis(self.rng.random_range(range_ms));
        tokio::time::sleep(pause).await;
    }

    /// Notes how often a rare path was taken.
    pub(crate) fn reach(&mut self, what: &'static str, times: u64) {
        match self.reached.iter_mut().find(|(known, _)| *known == what) {
            Some((_, known)) => *known += times,
            None => self.reached.push((what, times)),
        }
    }
}
