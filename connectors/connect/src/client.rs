//! Talking to a worker.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{ConnectorStatus, Definition};

const DEADLINE: Duration = Duration::from_secs(10);

/// A failed call. While the workers agree on who runs what, they refuse with 409: try again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No worker answers.
    #[error("Kafka Connect cannot be reached: {0}")]
    Unreachable(reqwest::Error),
    /// A worker said no.
    #[error("Kafka Connect answered {status}: {text}")]
    Refused {
        /// How.
        status: StatusCode,
        /// Why.
        text: String,
    },
    /// An answer of another shape.
    #[error("Kafka Connect's answer is not known: {0}")]
    Unknown(serde_json::Error),
}

/// Talks to one worker; any worker of a cluster answers for all.
#[derive(Clone, Debug)]
pub struct Connect {
    client: Client,
    url: String,
}

impl Connect {
    /// Waits for no server.
    pub fn new(url: &str) -> Result<Self, Error> {
        let client = Client::builder().timeout(DEADLINE).build().map_err(Error::Unreachable)?;
        Ok(Self { client, url: url.trim_end_matches('/').to_owned() })
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The settings of a connector; none when it is not registered.
    pub async fn config(&self, name: &str) -> Result<Option<BTreeMap<String, String>>, Error> {
        self.ask(Method::GET, &format!("connectors/{name}/config"), None).await
    }

    /// The state of a connector; none when it is not registered.
    pub async fn status(&self, name: &str) -> Result<Option<ConnectorStatus>, Error> {
        self.ask(Method::GET, &format!("connectors/{name}/status"), None).await
    }

    /// Registers a connector, or gives it other settings, which restarts its tasks.
    pub async fn put(&self, definition: &Definition) -> Result<(), Error> {
        let path = format!("connectors/{}/config", definition.name);
        self.ask::<Value>(Method::PUT, &path, Some(json!(definition.config))).await.map(drop)
    }

    /// Starts a connector's failed parts again.
    pub async fn restart_failed(&self, name: &str) -> Result<(), Error> {
        self.restart(name, "true").await
    }

    /// Starts a connector and its tasks again, from the durable place.
    pub async fn restart_all(&self, name: &str) -> Result<(), Error> {
        self.restart(name, "false").await
    }

    async fn restart(&self, name: &str, only_failed: &str) -> Result<(), Error> {
        let path = format!("connectors/{name}/restart?includeTasks=true&onlyFailed={only_failed}");
        self.ask::<Value>(Method::POST, &path, None).await.map(drop)
    }

    /// None for 404.
    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Option<T>, Error> {
        let mut request = self.client.request(method, format!("{}/{path}", self.url));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let unreachable = |error: reqwest::Error| Error::Unreachable(error.without_url());
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let text = response.text().await.map_err(unreachable)?;
        if !status.is_success() {
            return Err(Error::Refused { status, text });
        }
        let text = if text.is_empty() { "null" } else { &text };
        serde_json::from_str(text).map(Some).map_err(Error::Unknown)
    }
}
