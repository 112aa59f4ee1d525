//! What a connection is doing, and since when: for the deadlines that no call sees.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Shared by a connection's stream, its calls, and whoever watches over its deadlines.
pub(super) struct Progress {
    began: Instant,
    in_flight: AtomicUsize,
    http2: AtomicBool,
    /// Microseconds since `began`; 0 where nothing waits.
    reading: AtomicU64,
    sending: AtomicU64,
    idle: AtomicU64,
    /// For each call: since when a part of its answer has waited for the client's window.
    windows: Mutex<Vec<Arc<AtomicU64>>>,
}

impl Progress {
    /// A new connection, which owes a request.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            in_flight: AtomicUsize::new(0),
            http2: AtomicBool::new(false),
            reading: AtomicU64::new(1),
            sending: AtomicU64::new(0),
            idle: AtomicU64::new(0),
            windows: Mutex::default(),
        })
    }

    /// A request's headers are read. It is in flight until the guard is dropped.
    pub(super) fn call(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Relaxed);
        self.reading.store(0, Relaxed);
        self.idle.store(0, Relaxed);
        let window = Arc::new(AtomicU64::new(0));
        self.windows().push(window.clone());
        InFlight { progress: self.clone(), window }
    }

    /// Bytes arrived. Between requests they are the begin of one; HTTP/2 has other frames too.
    pub(super) fn received(&self) {
        if self.in_flight() == 0 && !self.is_http2() {
            since(&self.reading, self.now());
            self.idle.store(0, Relaxed);
        }
    }

    /// The client speaks HTTP/2, and owes no request.
    pub(super) fn speaks_http2(&self) {
        self.http2.store(true, Relaxed);
        self.reading.store(0, Relaxed);
        since(&self.idle, self.now());
    }

    /// An answer waits for the client to take it.
    pub(super) fn send_waits(&self) {
        since(&self.sending, self.now());
    }

    /// The client took something.
    pub(super) fn sent(&self) {
        self.sending.store(0, Relaxed);
    }

    pub(super) fn is_http2(&self) -> bool {
        self.http2.load(Relaxed)
    }

    /// Whether a call is worked on, or its answer not yet taken.
    pub(super) fn is_busy(&self) -> bool {
        self.in_flight() > 0 || self.sending.load(Relaxed) > 0
    }

    /// How long a request has been arriving.
    pub(super) fn reading_for(&self) -> Option<Duration> {
        self.passed(&self.reading)
    }

    /// How long the client has taken nothing: of the connection, or of one of its answers.
    pub(super) fn sending_for(&self) -> Option<Duration> {
        let windows = self.windows().iter().filter_map(|window| self.passed(window)).max();
        self.passed(&self.sending).max(windows)
    }

    /// How long there has been no request.
    pub(super) fn idle_for(&self) -> Option<Duration> {
        // On HTTP/2 a call may begin on one thread while the last one ends on another.
        if self.in_flight() > 0 { None } else { self.passed(&self.idle) }
    }

    fn windows(&self) -> MutexGuard<'_, Vec<Arc<AtomicU64>>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_flight(&self) -> usize {
        self.in_flight.load(Relaxed)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX).max(1)
    }

    fn passed(&self, began: &AtomicU64) -> Option<Duration> {
        let began = began.load(Relaxed);
        (began > 0).then(|| Duration::from_micros(self.now().saturating_sub(began)))
    }
}

fn since(began: &AtomicU64, now: u64) {
    // What waits already has waited since then.
    let _ = began.compare_exchange(0, now, Relaxed, Relaxed);
}

/// A call until its answer is handed over whole.
pub(super) struct InFlight {
    progress: Arc<Progress>,
    window: Arc<AtomicU64>,
}

impl InFlight {
    /// A part of the answer is handed over. On HTTP/2 it waits for the stream's window, which TCP knows
    /// nothing of.
    pub(super) fn handed(&self) {
        if self.progress.is_http2() {
            self.window.store(self.progress.now(), Relaxed);
        }
    }

    /// The next part is asked for: the last one was taken.
    pub(super) fn asked(&self) {
        self.window.store(0, Relaxed);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.progress.windows().retain(|window| !Arc::ptr_eq(window, &self.window));
        if self.progress.in_flight.fetch_sub(1, Relaxed) == 1 {
            self.progress.idle.store(self.progress.now(), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_calls_is_not_idle() {
        let progress = Progress::new();
        let first = progress.call();
        // As when a second call begins on another thread while the first one ends.
        let second = progress.call();
        progress.idle.store(1, Relaxed);
        assert_eq!(progress.idle_for(), None);
        drop((first, second));
        assert!(progress.idle_for().is_some());
        progress.received();
        assert_eq!((progress.idle_for(), progress.reading_for().is_some()), (None, true));
    }

    #[test]
    fn an_answer_waits_from_one_part_to_the_next_and_no_longer_than_its_call() {
        let progress = Progress::new();
        let call = progress.call();
        call.handed();
        assert_eq!(progress.sending_for(), None, "HTTP/1.1 has no windows");
        progress.speaks_http2();
        call.handed();
        assert!(progress.sending_for().is_some());
        call.asked();
        assert_eq!(progress.sending_for(), None);
        call.handed();
        drop(call);
        assert_eq!(progress.sending_for(), None);
    }
}
