//! The processes of the stack under test.

use std::path::PathBuf;
use std::process::{Output, Stdio};

use tokio::process::Command;

fn home() -> PathBuf {
    crate::setting("HOME").into()
}

/// The process of a role or server.
///
/// # Panics
/// If it does not run.
pub fn pid_of(name: &str) -> String {
    let file = home().join("run").join(format!("{name}.pid"));
    let pid = std::fs::read_to_string(&file);
    pid.unwrap_or_else(|error| panic!("{}: {error}", file.display())).trim().to_owned()
}

/// Runs an operator command.
///
/// # Panics
/// If it cannot be started.
pub async fn likewise(arguments: &[&str]) -> Output {
    Command::new(home().join("bin/likewise"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .await
        .expect("the binary starts")
}

/// Waits until every like committed before is counted.
///
/// # Panics
/// If that takes longer than a minute.
pub async fn drain() {
    let drained = likewise(&["drain", "--timeout-s", "60"]).await;
    assert!(drained.status.success(), "{drained:?}");
}

/// Starts what was killed, as an operator does.
///
/// # Panics
/// If that fails.
pub async fn start_what_is_missing() {
    let up = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/up");
    let started = Command::new(up).stdin(Stdio::null()).output().await.expect("scripts/up starts");
    assert!(started.status.success(), "{started:?}");
}
