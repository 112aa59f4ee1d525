//! Comparing the connector that is registered with the one that comes with the project. Every
//! difference is refused, and every property that the project does not set, but for those that cannot
//! lose or double a change.

use std::collections::{BTreeMap, BTreeSet};

use likewise_core::{Finding, Severity};

use crate::{Connect, ConnectorStatus, Definition, Error};

/// Addresses, accounts, how often and how much at once, and what is logged.
const MAY_DIFFER: [&str; 22] = [
    "name", // Kafka Connect adds it
    "connect.timeout.ms",
    "database.hostname",
    "database.password",
    "database.port",
    "database.server.id",
    "database.user",
    "errors.log.enable",
    "errors.log.include.messages",
    "heartbeat.interval.ms",
    "max.batch.size",
    "max.queue.size",
    "max.queue.size.in.bytes",
    "poll.interval.ms",
    "producer.override.batch.size",
    "producer.override.bootstrap.servers",
    "producer.override.buffer.memory",
    "producer.override.linger.ms",
    "producer.override.max.request.size",
    "producer.override.security.protocol",
    "schema.history.internal.kafka.bootstrap.servers",
    "transaction.boundary.interval.ms",
];

/// TLS and logins, the driver's own properties, and compression.
const MAY_DIFFER_BEHIND: [&str; 9] = [
    "database.ssl.",
    "driver.",
    "producer.override.compression.",
    "producer.override.sasl.",
    "producer.override.ssl.",
    "schema.history.internal.consumer.sasl.",
    "schema.history.internal.consumer.ssl.",
    "schema.history.internal.producer.sasl.",
    "schema.history.internal.producer.ssl.",
];

/// Properties whose own reason is worth more than the general one.
const WHY: [(&str, &str); 8] = [
    (
        "connect.keep.alive",
        "its reconnect inside a task repeats rows and then loses the rest of a transaction",
    ),
    (
        "exactly.once.support",
        "a worker that is killed repeats changes, and the aggregator alone keeps them from counting twice",
    ),
    ("key.converter", "posts move to other partitions and are counted out of their order"),
    ("skipped.operations", "a TRUNCATE, or a change of that kind, is left out without a word"),
    ("snapshot.mode", "rows that are read as state are no changes and are never counted"),
    ("tombstones.on.delete", "null values after deletions are for compacted topics"),
    (
        "topic.prefix",
        "the connector loses its place, and its changes come from a source that nobody knows",
    ),
    ("errors.tolerance", "a change that cannot be written is left out without a word"),
];

/// Off, repeats reach the log; the aggregator's own check holds without it.
const SECOND_LINE_HOLDS: &str = "exactly.once.support";

impl Connect {
    /// What is not as it must be in the connector's settings and state; none when it is not registered.
    pub async fn check(&self, definition: &Definition) -> Result<Option<Vec<Finding>>, Error> {
        let Some(registered) = self.config(&definition.name).await? else { return Ok(None) };
        let mut findings = definition.check(&registered);
        let status = self.status(&definition.name).await?;
        findings.extend(status.and_then(|status| state(&status, self.url())));
        Ok(Some(findings))
    }
}

impl Definition {
    /// What a registered connector has otherwise.
    pub fn check(&self, registered: &BTreeMap<String, String>) -> Vec<Finding> {
        let keys: BTreeSet<&String> = self.config.keys().chain(registered.keys()).collect();
        let differs = |key: &&String| self.config.get(*key) != registered.get(*key);
        let found = keys.into_iter().filter(differs).filter(|key| !may_differ(key));
        found.map(|key| self.finding(key, registered.get(key))).collect()
    }

    fn finding(&self, key: &str, found: Option<&String>) -> Finding {
        let why = WHY.iter().find(|(known, _)| *known == key).map(|(_, why)| *why);
        let severity = if key == SECOND_LINE_HOLDS { Severity::Warning } else { Severity::Refused };
        let secret = ["password", "secret", "jaas"].iter().any(|word| key.contains(word));
        let text = |value: Option<&String>| match value {
            None => "not set".to_owned(),
            Some(_) if secret => "***".to_owned(),
            Some(value) => value.clone(),
        };
        Finding {
            severity,
            thing: format!("connector {}", self.name),
            setting: key.to_owned(),
            found: text(found),
            needed: text(self.config.get(key)),
            why: why.unwrap_or("nothing shows that it cannot lose or double changes").to_owned(),
            fix: "likewise connector apply".to_owned(),
        }
    }
}

fn may_differ(key: &str) -> bool {
    MAY_DIFFER.contains(&key) || MAY_DIFFER_BEHIND.iter().any(|prefix| key.starts_with(prefix))
}

/// A connector that does not run loses nothing; it delivers nothing either.
fn state(status: &ConnectorStatus, url: &str) -> Option<Finding> {
    let fix = if status.is_stopped() {
        format!("curl -X PUT {url}/connectors/{}/resume", status.name)
    } else if status.failure().is_some() {
        format!(
            "curl -X POST '{url}/connectors/{}/restart?includeTasks=true&onlyFailed=true'",
            status.name
        )
    } else {
        return None;
    };
    Some(Finding {
        severity: Severity::Warning,
        thing: format!("connector {}", status.name),
        setting: "state".to_owned(),
        found: status.summary(),
        needed: "RUNNING".to_owned(),
        why: status.failure().unwrap_or("likes wait in the binlog meanwhile").to_owned(),
        fix,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings about the project's connector after `change`, as `severity setting`.
    fn after(change: impl FnOnce(&mut BTreeMap<String, String>)) -> Vec<String> {
        let definition = Definition::of_project();
        let mut registered = definition.config.clone();
        registered.insert("name".to_owned(), definition.name.clone());
        change(&mut registered);
        let findings = definition.check(&registered);
        findings.iter().map(|found| format!("{} {}", found.severity, found.setting)).collect()
    }

    fn with(key: &str, value: &str) -> Vec<String> {
        after(|registered| {
            registered.insert(key.to_owned(), value.to_owned());
        })
    }

    #[test]
    fn the_projects_own_connector_has_no_finding() {
        assert_eq!(after(|_| ()), Vec::<String>::new());
    }

    #[test]
    fn every_property_that_is_missing_or_differs_is_found_but_for_those_that_lose_nothing() {
        for key in Definition::of_project().config.keys().filter(|key| !may_differ(key)) {
            let severity = if key == "exactly.once.support" { "warning" } else { "refused" };
            let expected = [format!("{severity} {key}")];
            assert_eq!(with(key, "other"), expected);
            let missing = after(|registered| {
                registered.remove(key);
            });
            assert_eq!(missing, expected);
        }
    }

    #[test]
    fn what_a_fleet_sets_otherwise_is_its_own_business() {
        for key in [
            "database.hostname",
            "database.ssl.mode",
            "database.ssl.truststore",
            "driver.allowPublicKeyRetrieval",
            "max.queue.size",
            "producer.override.compression.type",
        ] {
            assert_eq!(with(key, "other"), Vec::<String>::new(), "{key}");
        }
    }

    #[test]
    fn a_property_that_the_project_does_not_set_is_refused() {
        for key in ["message.key.columns", "producer.override.acks", "column.exclude.list"] {
            assert_eq!(with(key, "other"), [format!("refused {key}")]);
        }
    }

    #[test]
    fn a_finding_says_what_would_be_lost_and_hides_secrets() {
        let definition = Definition::of_project();
        let registered = |key: &str| BTreeMap::from([(key.to_owned(), "true".to_owned())]);
        let text = |key: &str| {
            let found = definition.check(&registered(key));
            found.iter().find(|found| found.setting == key).expect("it is found").to_string()
        };
        assert_eq!(
            text("connect.keep.alive"),
            "connector likewise: connect.keep.alive is true, false is needed: its reconnect inside a \
             task repeats rows and then loses the rest of a transaction; fix: likewise connector apply"
        );
        assert!(text("some.password").contains("is ***, not set is needed"));
    }
}
