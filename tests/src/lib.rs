//! The running stack as tests see it: from outside, through HTTP, SQL and Kafka.
//!
//! Everything comes from the environment that `scripts/test` sets; a missing name or server fails
//! the test.

mod api;
mod fail_point;
mod log;
mod oracle;
mod record;
mod roles;
mod stream;

use std::env;
use std::time::{Duration, Instant};

pub use api::{Answer, Api};
pub use fail_point::{FailPoint, no_fail_point};
pub use log::Log;
pub use oracle::Oracle;
pub use record::{CallId, Record, States};
pub use roles::{
    drain, end, home, is_gone, likewise, likewise_told, lives, mark_of, metric, metric_at, pid_of,
    signal, signal_pid, start_what_is_missing, start_with,
};
pub use stream::{Heard, Listener};

/// A setting of the stack under test.
///
/// # Panics
/// If it is not set.
pub fn setting(name: &str) -> String {
    env::var(format!("LIKEWISE_{name}")).unwrap_or_else(|_| {
        panic!("LIKEWISE_{name} is not set: run the tests through scripts/test")
    })
}

/// An id that no other test has.
pub fn fresh(what: &str) -> String {
    format!("{what}-{}", uuid::Uuid::new_v4().simple())
}

/// Waits until a condition holds.
///
/// # Panics
/// If it does not within `limit`.
pub async fn eventually<T>(
    what: &str,
    limit: Duration,
    mut holds: impl AsyncFnMut() -> Option<T>,
) -> T {
    let until = Instant::now() + limit;
    loop {
        if let Some(value) = holds().await {
            return value;
        }
        assert!(Instant::now() < until, "{what}: not within {} s", limit.as_secs());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
