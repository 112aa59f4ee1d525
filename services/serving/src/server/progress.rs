//! What a connection is doing, and since when: for the deadlines that no call sees.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
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
        })
    }

    /// A request's headers are read. It is in flight until the guard is dropped.
    pub(super) fn call(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Relaxed);
        self.reading.store(0, Relaxed);
        self.idle.store(0, Relaxed);
        InFlight(self.clone())
    }

    /// Bytes arrived. Between requests they are the begin of one; HTTP/2 has other frames too.
    pub(super) fn received(&self) {
        if self.in_flight() == 0 && !self.is_http2() {
            since(&self.reading, self.now());
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

    /// How long the client has taken nothing.
    pub(super) fn sending_for(&self) -> Option<Duration> {
        self.passed(&self.sending)
    }

    /// How long there has been no request.
    pub(super) fn idle_for(&self) -> Option<Duration> {
        self.passed(&self.idle)
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
pub(super) struct InFlight(Arc<Progress>);

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.0.in_flight.fetch_sub(1, Relaxed) == 1 {
            self.0.idle.store(self.0.now(), Relaxed);
        }
    }
}
