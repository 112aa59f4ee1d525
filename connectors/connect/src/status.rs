//! What Kafka Connect says of a connector. A task may say RUNNING and be silent.

use serde::{Deserialize, Serialize};

/// The state of a connector and of its tasks.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ConnectorStatus {
    /// Its name.
    pub name: String,
    /// The connector itself.
    pub connector: State,
    /// Its tasks.
    pub tasks: Vec<State>,
}

/// One state.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct State {
    /// RUNNING, FAILED, PAUSED, STOPPED, UNASSIGNED or RESTARTING.
    pub state: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

impl ConnectorStatus {
    fn states(&self) -> impl Iterator<Item = &State> {
        self.tasks.iter().chain([&self.connector])
    }

    /// Whether the connector and each of its tasks says so, and there is one.
    pub fn is_running(&self) -> bool {
        !self.tasks.is_empty() && self.states().all(|state| state.state == "RUNNING")
    }

    /// Whether somebody has stopped it.
    pub fn is_stopped(&self) -> bool {
        ["PAUSED", "STOPPED"].contains(&self.connector.state.as_str())
    }

    /// The first line of why it failed, where it did.
    pub fn failure(&self) -> Option<&str> {
        let failed = self.states().find(|state| state.state == "FAILED")?;
        failed.trace.as_deref().and_then(|trace| trace.lines().next()).or(Some("without a reason"))
    }

    /// The state of the connector and of its tasks, in a few words.
    pub fn summary(&self) -> String {
        let tasks: Vec<_> = self.tasks.iter().map(|task| task.state.as_str()).collect();
        format!("{} (tasks: {})", self.connector.state, tasks.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(connector: &str, tasks: &[&str]) -> ConnectorStatus {
        let state = |state: &&str| State {
            state: (*state).to_owned(),
            trace: (*state == "FAILED").then(|| "broken\n\tat some.java".to_owned()),
        };
        ConnectorStatus {
            name: "likewise".to_owned(),
            connector: state(&connector),
            tasks: tasks.iter().map(state).collect(),
        }
    }

    #[test]
    fn a_connector_without_a_task_does_not_run() {
        assert!(status("RUNNING", &["RUNNING"]).is_running());
        assert!(!status("RUNNING", &[]).is_running());
        assert!(!status("RUNNING", &["UNASSIGNED"]).is_running());
    }

    #[test]
    fn a_failure_is_told_in_one_line() {
        assert_eq!(status("RUNNING", &["FAILED"]).failure(), Some("broken"));
        assert_eq!(status("RUNNING", &["RUNNING"]).failure(), None);
    }
}
