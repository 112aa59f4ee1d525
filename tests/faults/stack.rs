//! The processes: how they are killed, frozen, and started again.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use likewise_tests::{
    end, home, no_fail_point, setting, signal, signal_pid, start_what_is_missing,
};
use tokio::process::{Child, Command};

/// What `scripts/up` starts.
pub(crate) const ALL: [&str; 8] =
    ["mysql", "kafka", "mongodb", "connect", "write-api", "read-api", "aggregator", "reconciler"];

/// Kills a role or server as a power cut does, and returns when it is gone.
pub(crate) async fn kill(name: &str) {
    end(name, "KILL").await;
}

/// Asks a role or server to end, and returns when it has.
pub(crate) async fn terminate(name: &str) {
    end(name, "TERM").await;
}

/// Stops a process where it stands, for a while.
pub(crate) async fn freeze(name: &str, time: Duration) {
    signal(name, "STOP").await;
    tokio::time::sleep(time).await;
    signal(name, "CONT").await;
}

/// The stack's MongoDB, for a client that fail points know by this name.
pub(crate) fn mongodb_uri(app: &str) -> String {
    format!("{}&appName={app}", setting("MONGODB_URI"))
}

/// Makes everything run as it should, whatever was done to it.
pub(crate) async fn heal() {
    for name in ALL {
        if let Ok(pid) = std::fs::read_to_string(home().join(format!("run/{name}.pid"))) {
            let continued = Command::new("kill").args(["-CONT", pid.trim()]).output().await;
            continued.expect("kill starts");
        }
    }
    start_what_is_missing().await;
    no_fail_point().await;
}

/// An aggregator beside the stack's own; killed when it is dropped.
pub(crate) struct Aggregator {
    process: Child,
    log: PathBuf,
    url: String,
}

impl Aggregator {
    /// Starts the stack's binary with settings over those of the stack. The number makes its port.
    pub(crate) fn start(number: u16, settings: &[(&str, &str)]) -> Self {
        let url = setting("AGGREGATOR_URL");
        let (host, port) = url.rsplit_once(':').expect("a URL with a port");
        let port = port.parse::<u16>().expect("a port") + 100 + number;
        let log = home().join(format!("logs/aggregator-{number}.log"));
        let output = File::options().append(true).create(true).open(&log).expect("a log");
        let process = Command::new(home().join("bin/likewise"))
            .arg("aggregator")
            .env("LIKEWISE_AGGREGATOR_LISTEN", format!("127.0.0.1:{port}"))
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a log"))
            .stderr(output)
            .kill_on_drop(true)
            .spawn()
            .expect("the binary starts");
        Self { process, log, url: format!("{host}:{port}") }
    }

    /// Its admin port.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What it logs.
    pub(crate) fn log(&self) -> &PathBuf {
        &self.log
    }

    /// What it says as the owner of a partition.
    pub(crate) fn owner(&self) -> String {
        let address = self.url.trim_start_matches("http://");
        format!("{address}/{}", self.pid())
    }

    /// Sends it a signal.
    pub(crate) async fn signal(&self, signal: &str) {
        signal_pid(&self.pid(), signal).await;
    }

    /// Kills it as a power cut does.
    pub(crate) async fn kill(mut self) {
        self.process.kill().await.expect("it can be killed");
    }

    /// Asks it to end, and returns when it has.
    pub(crate) async fn terminate(mut self) {
        self.signal("TERM").await;
        let ended = tokio::time::timeout(Duration::from_secs(30), self.process.wait()).await;
        ended.expect("it ends").expect("its end is told");
    }

    fn pid(&self) -> String {
        self.process.id().expect("it has not ended").to_string()
    }
}
