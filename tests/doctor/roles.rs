//! Roles and a MySQL that is, or comes back, broken.

use std::process::Stdio;
use std::time::Duration;

use likewise_tests::eventually;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

use crate::alone;
use crate::diagnosis::{listener, role_is_refused};
use crate::mysqld::Mysqld;

const LIMIT: Duration = Duration::from_secs(60);
const BROKEN: &str = "sync-binlog = 0";
const FOUND: &str = "sync_binlog is 0, 1 is needed";
const FIX: &str = "SET PERSIST sync_binlog = 1;";

/// A write API of this test's.
struct WriteApi {
    process: Child,
    url: String,
}

impl WriteApi {
    fn start(mysqld: &Mysqld) -> Self {
        let (name, address) = listener("write-api");
        let process = Command::new(likewise_tests::setting("HOME") + "/bin/likewise")
            .arg("write-api")
            .envs(mysqld.told())
            .env(name, &address)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary starts");
        Self { process, url: format!("http://{address}/readyz") }
    }

    /// Waits for readiness, or for a reason against it.
    async fn says(&self, status: u16, text: &str) {
        eventually(text, LIMIT, async || {
            let answer = reqwest::get(&self.url).await.ok()?;
            let (found, body) = (answer.status(), answer.text().await.ok()?);
            (found == status && body.contains(text)).then_some(())
        })
        .await;
    }

    async fn ends_refused(mut self) {
        let ended = tokio::time::timeout(LIMIT, self.process.wait()).await.expect("it ends");
        assert_eq!(ended.expect("it has a status").code(), Some(1));
        let mut text = String::new();
        let mut stderr = self.process.stderr.take().expect("it is piped");
        stderr.read_to_string(&mut text).await.expect("text");
        assert!(text.contains(FOUND) && text.contains(FIX), "{text}");
    }
}

#[tokio::test]
async fn a_role_does_not_start_with_a_broken_server_nor_go_on_when_it_comes_back_broken() {
    let _alone = alone().await;
    let mut mysqld = Mysqld::new().await;
    mysqld.start("").await;
    mysqld.migrate().await;
    mysqld.stop().await;

    // It starts without MySQL, and refuses it when it has seen it.
    let early = WriteApi::start(&mysqld);
    early.says(503, "the settings of MySQL could not be checked").await;
    mysqld.start(BROKEN).await;
    early.ends_refused().await;
    role_is_refused("write-api", &mysqld.told(), FOUND, FIX).await;
    role_is_refused("reconciler", &mysqld.told(), FOUND, FIX).await;

    // It starts without MySQL, is ready when it has seen it, and looks again after it was away.
    mysqld.stop().await;
    let late = WriteApi::start(&mysqld);
    late.says(503, "the settings of MySQL could not be checked").await;
    mysqld.start("").await;
    late.says(200, "true").await;
    mysqld.stop().await;
    late.says(503, "the settings of MySQL could not be checked").await;
    mysqld.start(BROKEN).await;
    late.ends_refused().await;
}
