//! A role of a test's own, with settings of its own, on the servers of the stack.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use likewise_tests::{eventually, home, setting};
use reqwest::{Method, RequestBuilder};
use tokio::process::{Child, Command};

const LIMIT: Duration = Duration::from_secs(30);

/// Ends with the test.
pub(crate) struct Role {
    process: Child,
    pub(crate) address: String,
    client: reqwest::Client,
}

impl Role {
    /// A write API that is ready.
    pub(crate) async fn write_api(settings: &[(&str, &str)]) -> Self {
        Self::start("write-api", settings).await
    }

    /// Any role that is ready.
    pub(crate) async fn start(role: &str, settings: &[(&str, &str)]) -> Self {
        let free = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let address = free.local_addr().expect("it has an address").to_string();
        drop(free);
        let listen = format!("LIKEWISE_{}_LISTEN", role.replace('-', "_").to_uppercase());
        let process = Command::new(home().join("bin/likewise"))
            .arg(role)
            .env(listen, &address)
            .env("LIKEWISE_LOG", "warn")
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary starts");
        let this = Self { process, address, client: reqwest::Client::new() };
        eventually("the role is ready", LIMIT, async || {
            let answer = this.client.get(this.url("/readyz")).send().await.ok()?;
            answer.status().is_success().then_some(())
        })
        .await;
        this
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A call with the service token.
    pub(crate) fn call(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(path)).bearer_auth(setting("SERVICE_TOKEN"))
    }

    /// Likes as an app server does.
    pub(crate) async fn like(&self, user: &str, post: &str) -> reqwest::Response {
        let like = self.call(Method::PUT, &format!("/v1/posts/{post}/like"));
        like.header("X-User-Id", user).send().await.expect("it answers")
    }

    /// A metric, with its labels.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        likewise_tests::metric_at(&self.url(""), name).await
    }

    /// Asks it to stop.
    pub(crate) async fn terminate(&self) {
        let pid = self.process.id().expect("it runs").to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().await;
        assert!(sent.expect("kill starts").success());
    }

    /// Waits until it has ended.
    pub(crate) async fn end(&mut self) -> ExitStatus {
        let ended = tokio::time::timeout(LIMIT, self.process.wait()).await;
        ended.expect("it ends").expect("it has a status")
    }
}
