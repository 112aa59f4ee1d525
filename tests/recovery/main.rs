//! What puts every count in doubt, and the one command that ends it; what callers notice of a part that is
//! away; what was killed half done. Each of these disturbs the whole stack, so they run one after the other.

mod another_log;
mod deletion;
mod doubt;
mod outages;

use std::sync::LazyLock;

use tokio::sync::Mutex;

/// Held by the test that has the stack.
static STACK: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);
