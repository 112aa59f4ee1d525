//! The processes of the stack under test.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::process::Command;

const GONE_WITHIN: Duration = Duration::from_secs(60);

/// The stack's folder.
pub fn home() -> PathBuf {
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
    likewise_told(arguments, &[]).await
}

/// Runs a command with some settings of its own.
///
/// # Panics
/// If it cannot be started.
pub async fn likewise_told(arguments: &[&str], told: &[(&str, &str)]) -> Output {
    Command::new(home().join("bin/likewise"))
        .args(arguments)
        .envs(told.iter().copied())
        .kill_on_drop(true)
        .stdin(Stdio::null())
        .output()
        .await
        .expect("the binary starts")
}

/// Waits until every like committed before is counted: every count of the time that it answers with has
/// them all.
///
/// # Panics
/// If that takes longer than four minutes: a busy machine recounts some thousand posts in one.
pub async fn drain() -> String {
    let drained = likewise(&["drain", "--json", "--timeout-s", "240"]).await;
    assert!(drained.status.success(), "{drained:?}");
    mark_of(&drained)
}

/// The time that a drain with `--json` waited for.
///
/// # Panics
/// If it does not say so.
pub fn mark_of(drained: &Output) -> String {
    let drained: serde_json::Value =
        serde_json::from_slice(&drained.stdout).unwrap_or_else(|_| panic!("{drained:?}"));
    drained["mark"].as_str().expect("a mark").to_owned()
}

/// Sends a process of the stack a signal: `KILL`, `STOP`, `CONT`, `TERM`.
///
/// # Panics
/// If there is no such process.
pub async fn signal(name: &str, signal: &str) {
    signal_pid(&pid_of(name), signal).await;
}

/// The same to any process.
///
/// # Panics
/// If there is none.
pub async fn signal_pid(pid: &str, signal: &str) {
    let sent = Command::new("kill").args([&format!("-{signal}"), pid]).status().await;
    assert!(sent.expect("kill starts").success(), "no process {pid} to send {signal}");
}

/// Sends a process of the stack a signal that ends it, and returns when it is gone.
///
/// # Panics
/// If there is no such process, or it stays.
pub async fn end(name: &str, signal: &str) {
    let pid = pid_of(name);
    signal_pid(&pid, signal).await;
    is_gone(&pid).await;
}

/// Waits until a process is gone.
///
/// # Panics
/// If it stays.
pub async fn is_gone(pid: &str) {
    let what = format!("process {pid} is gone");
    crate::eventually(&what, GONE_WITHIN, async || (!lives(pid)).then_some(())).await;
}

/// Whether a process is there and not just waiting to be reaped.
pub fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

/// Starts what was killed, as an operator does.
///
/// # Panics
/// If that fails.
pub async fn start_what_is_missing() {
    start_with(&[]).await;
}

/// The same, with settings over those of the stack.
///
/// # Panics
/// If that fails.
pub async fn start_with(settings: &[(&str, &str)]) {
    let up = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/up");
    let starting = Command::new(up).envs(settings.iter().copied()).stdin(Stdio::null()).output();
    let started = starting.await.expect("scripts/up starts");
    assert!(started.status.success(), "{started:?}");
}

/// A counter or gauge of the role at `LIKEWISE_<role>_URL`; 0 before its first event.
///
/// # Panics
/// If the role does not answer.
pub async fn metric(role: &str, name: &str) -> f64 {
    metric_at(&crate::setting(&format!("{role}_URL")), name).await
}

/// A counter or gauge of the role at an address.
///
/// # Panics
/// If it does not answer.
pub async fn metric_at(url: &str, name: &str) -> f64 {
    let answer = reqwest::get(format!("{url}/metrics")).await.expect("it answers");
    let text = answer.text().await.expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or(0.0)
}
