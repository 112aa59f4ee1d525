//! The connector that comes with the project.

use std::collections::BTreeMap;

use serde::Deserialize;

const DEFINITION: &str = include_str!("../../../debezium/connector.json");

/// A connector's name and settings.
#[derive(Clone, Debug, Deserialize)]
pub struct Definition {
    /// Under which it is registered.
    pub name: String,
    /// Every setting, as `debezium/README.md` explains them.
    pub config: BTreeMap<String, String>,
}

impl Definition {
    /// `debezium/connector.json`.
    ///
    /// # Panics
    /// If that file, which is part of the program, is not of the known shape.
    pub fn of_project() -> Self {
        serde_json::from_str(DEFINITION).expect("debezium/connector.json is valid")
    }

    /// Its name as a source, in every change that comes through it.
    ///
    /// # Panics
    /// If `debezium/connector.json` has no `topic.prefix`.
    pub fn source(&self) -> &str {
        self.config.get("topic.prefix").expect("debezium/connector.json names its source")
    }

    /// The same where the workers do without exactly-once support.
    #[must_use]
    pub fn without_exactly_once(mut self) -> Self {
        self.config.insert("exactly.once.support".to_owned(), "requested".to_owned());
        self
    }

    /// Whether a registered connector has these settings. Kafka Connect adds the name to them.
    pub fn equals(&self, registered: &BTreeMap<String, String>) -> bool {
        let settings = |config: &BTreeMap<String, String>| {
            let settings = config.iter().filter(|(key, _)| key.as_str() != "name");
            settings.map(|(key, value)| (key.clone(), value.clone())).collect::<BTreeMap<_, _>>()
        };
        settings(registered) == settings(&self.config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_projects_definition_is_valid_and_known_again_with_its_name_added() {
        let definition = Definition::of_project();
        assert_eq!(definition.source(), "likewise");
        let mut registered = definition.config.clone();
        registered.insert("name".to_owned(), definition.name.clone());
        assert!(definition.equals(&registered));
        assert!(!definition.clone().without_exactly_once().equals(&registered));
        registered.insert("connect.keep.alive".to_owned(), "true".to_owned());
        assert!(!definition.equals(&registered));
    }
}
