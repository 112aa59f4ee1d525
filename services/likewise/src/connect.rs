//! Kafka Connect's REST interface, as far as the connector needs it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::{Client, Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The connector that comes with the project.
const DEFINITION: &str = include_str!("../../../debezium/connector.json");

/// A connector's name and settings.
#[derive(Debug, Deserialize)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) config: BTreeMap<String, String>,
}

impl Definition {
    pub(crate) fn load() -> anyhow::Result<Self> {
        serde_json::from_str(DEFINITION).context("debezium/connector.json is not valid")
    }
}

/// The state of a connector and of its tasks.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ConnectorStatus {
    pub(crate) name: String,
    pub(crate) connector: State,
    pub(crate) tasks: Vec<State>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct State {
    pub(crate) state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<String>,
}

impl ConnectorStatus {
    pub(crate) fn is_running(&self) -> bool {
        let mut states = self.tasks.iter().chain([&self.connector]);
        !self.tasks.is_empty() && states.all(|state| state.state == "RUNNING")
    }

    /// The state of the connector and of its tasks, in a few words.
    pub(crate) fn summary(&self) -> String {
        let tasks: Vec<_> = self.tasks.iter().map(|task| task.state.as_str()).collect();
        format!("{} (tasks: {})", self.connector.state, tasks.join(", "))
    }

    /// The first line of why it failed, where it did.
    pub(crate) fn failure(&self) -> Option<&str> {
        let mut states = self.tasks.iter().chain([&self.connector]);
        let failed = states.find(|state| state.state == "FAILED")?;
        failed.trace.as_deref().and_then(|trace| trace.lines().next()).or(Some("without a reason"))
    }
}

/// Talks to one worker; any worker of a cluster answers for all.
pub(crate) struct Connect {
    client: Client,
    url: String,
}

impl Connect {
    pub(crate) fn new(url: &str) -> anyhow::Result<Self> {
        let client = Client::builder()
            .timeout(Duration::from_secs(10))
            .build()
            .context("failed to make an HTTP client")?;
        Ok(Self { client, url: url.trim_end_matches('/').to_owned() })
    }

    /// The settings of a connector; none when it is not registered.
    pub(crate) async fn config(
        &self,
        name: &str,
    ) -> anyhow::Result<Option<BTreeMap<String, String>>> {
        self.ask(Method::GET, &format!("connectors/{name}/config"), None).await
    }

    /// The state of a connector; none when it is not registered.
    pub(crate) async fn status(&self, name: &str) -> anyhow::Result<Option<ConnectorStatus>> {
        self.ask(Method::GET, &format!("connectors/{name}/status"), None).await
    }

    /// Registers a connector, or gives it other settings.
    pub(crate) async fn put(&self, definition: &Definition) -> anyhow::Result<()> {
        let body =
            serde_json::to_value(&definition.config).context("failed to write the settings")?;
        let path = format!("connectors/{}/config", definition.name);
        self.ask::<Value>(Method::PUT, &path, Some(body)).await.map(drop)
    }

    /// Starts a connector's failed parts again.
    pub(crate) async fn restart_failed(&self, name: &str) -> anyhow::Result<()> {
        let path = format!("connectors/{name}/restart?includeTasks=true&onlyFailed=true");
        self.ask::<Value>(Method::POST, &path, None).await.map(drop)
    }

    /// None for 404.
    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Option<T>> {
        let mut request = self.client.request(method, format!("{}/{path}", self.url));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.context("Kafka Connect cannot be reached")?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => {
                let text = response.text().await.context("Kafka Connect's answer was cut off")?;
                let text = if text.is_empty() { "null" } else { &text };
                Ok(Some(serde_json::from_str(text).context("Kafka Connect's answer is not known")?))
            }
            status => {
                let text = response.text().await.unwrap_or_default();
                bail!("Kafka Connect answered {status}: {text}")
            }
        }
    }
}
