//! What a topic needs, and why.

use std::collections::BTreeMap;

use likewise_core::{Finding, Severity};

use crate::CHANGES;
use crate::topics::Topic;

/// From it the connector knows at a start how to read an old row.
const SCHEMA_HISTORY: &str = "likewise.schema-history";
/// With two of them in sync, an acknowledged change outlives a broker.
const REPLICAS: u32 = 3;
/// The keys that have rules of their own, for the two topics that are kept for ever.
const KEPT: [&str; 3] = ["cleanup.policy", "retention.ms", "retention.bytes"];

/// A topic as Kafka has it.
pub(super) struct Seen {
    pub(super) name: String,
    pub(super) partitions: u32,
    /// Of the partition that has fewest.
    pub(super) replicas: u32,
    pub(super) config: BTreeMap<String, String>,
}

impl Seen {
    fn get(&self, setting: &str) -> &str {
        self.config.get(setting).map_or("unknown", String::as_str)
    }
}

/// Findings about one topic.
struct Findings<'a> {
    seen: &'a Seen,
    brokers: &'a str,
    found: Vec<Finding>,
}

impl Findings<'_> {
    fn add(&mut self, severity: Severity, setting: &str, found: &str, needed: &str, why: &str) {
        let Self { seen: Seen { name, .. }, brokers, .. } = self;
        let fix = format!(
            "kafka-configs.sh --bootstrap-server {brokers} --alter --entity-type topics \
             --entity-name {name} --add-config {setting}={needed}"
        );
        self.push(severity, setting, found, needed, why, fix);
    }

    fn push(
        &mut self,
        severity: Severity,
        setting: &str,
        found: &str,
        needed: &str,
        why: &str,
        fix: String,
    ) {
        self.found.push(Finding {
            severity,
            thing: format!("topic {}", self.seen.name),
            setting: setting.to_owned(),
            found: found.to_owned(),
            needed: needed.to_owned(),
            why: why.to_owned(),
            fix,
        });
    }

    fn never_compacted(&mut self, why: &str) {
        let found = self.seen.get("cleanup.policy");
        if found.split(',').any(|policy| policy.trim() == "compact") {
            self.add(Severity::Refused, "cleanup.policy", found, "delete", why);
        }
    }

    fn kept_for_ever(&mut self, severity: Severity, why: &str) {
        for setting in ["retention.ms", "retention.bytes"] {
            let found = self.seen.get(setting);
            if found != "-1" {
                self.add(severity, setting, found, "-1", why);
            }
        }
    }

    /// Acknowledged changes outlive a broker.
    fn spread(&mut self) {
        let (seen, brokers) = (self.seen, self.brokers);
        if seen.get("unclean.leader.election.enable") == "true" {
            let why = "a leader that missed acknowledged changes would take them out of the log";
            self.add(Severity::Refused, "unclean.leader.election.enable", "true", "false", why);
        }
        if seen.replicas == 1 {
            let fix = format!(
                "kafka-reassign-partitions.sh --bootstrap-server {brokers} --execute \
                 --reassignment-json-file FILE, which gives each partition of {} {REPLICAS} replicas",
                seen.name
            );
            let why = "the log is gone with its only broker";
            let needed = REPLICAS.to_string();
            self.push(Severity::Warning, "replication factor", "1", &needed, why, fix);
        } else if seen.get("min.insync.replicas") == "1" {
            let why = "a change that one broker alone has acknowledged is gone with it";
            self.add(Severity::Warning, "min.insync.replicas", "1", "2", why);
        }
    }
}

pub(super) fn check_changes(seen: &Seen, brokers: &str) -> Vec<Finding> {
    let mut findings = Findings { seen, brokers, found: Vec::new() };
    findings.never_compacted("compaction keeps the last like of a post, not all of them");
    findings.kept_for_ever(
        Severity::Warning,
        "what is deleted cannot be counted again: a rebuild needs recounts of all posts then",
    );
    findings.spread();
    findings.found
}

/// `partitions` is what the settings and the definition ask for.
pub(super) fn check(topic: &Topic, partitions: u32, seen: &Seen, brokers: &str) -> Vec<Finding> {
    let (changes, history) = (topic.name == CHANGES, topic.name == SCHEMA_HISTORY);
    let mut findings = Findings { seen, brokers, found: Vec::new() };
    if changes {
        findings.found = check_changes(seen, brokers);
    } else if history {
        let why = "without its whole history the connector cannot start again";
        findings.never_compacted(why);
        findings.kept_for_ever(Severity::Refused, why);
        findings.spread();
    }
    if seen.partitions != partitions {
        let (found, needed) = (seen.partitions.to_string(), partitions.to_string());
        let (severity, why, fix) = if changes {
            let why = "a post moves to another partition and out of its order where it is changed";
            (Severity::Refused, why, format!("set LIKEWISE_PARTITIONS={found}"))
        } else {
            let severity = if history { Severity::Refused } else { Severity::Warning };
            let fix = format!(
                "kafka-topics.sh --bootstrap-server {brokers} --delete --topic {}; likewise topics",
                seen.name
            );
            (severity, "it has an order in one partition only", fix)
        };
        findings.push(severity, "partitions", &found, &needed, why, fix);
    }
    for (setting, needed) in &topic.config {
        let found = seen.get(setting);
        if found != needed && !((changes || history) && KEPT.contains(&setting.as_str())) {
            let why = "kafka/README.md says what it is for";
            findings.add(Severity::Warning, setting, found, needed, why);
        }
    }
    findings.found
}

pub(super) fn missing(name: &str) -> Finding {
    Finding {
        severity: Severity::Refused,
        thing: format!("topic {name}"),
        setting: "topic".to_owned(),
        found: "missing".to_owned(),
        needed: "one as kafka/topics.json has it".to_owned(),
        why: "the connector stops where it cannot write".to_owned(),
        fix: "likewise topics".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TopicSettings, Topics};

    const SETTINGS: TopicSettings = TopicSettings { partitions: 4, replication_factor: 3 };

    /// The findings about a topic of the definition after `change`, as `severity setting`.
    fn after(name: &str, change: impl FnOnce(&mut Seen)) -> Vec<String> {
        let topics = Topics::new("broker:9092").expect("the definition is valid");
        let topic = topics.topics.iter().find(|topic| topic.name == name).expect("it is defined");
        let mut config = topic.config.clone();
        config.insert("min.insync.replicas".to_owned(), "2".to_owned());
        let partitions = topic.partitions(SETTINGS);
        let mut seen = Seen { name: name.to_owned(), partitions, replicas: 3, config };
        change(&mut seen);
        let findings = check(topic, partitions, &seen, "broker:9092");
        findings.iter().map(|found| format!("{} {}", found.severity, found.setting)).collect()
    }

    fn with(name: &str, setting: &str, value: &str) -> Vec<String> {
        after(name, |seen| {
            seen.config.insert(setting.to_owned(), value.to_owned());
        })
    }

    #[test]
    fn topics_as_they_are_defined_have_no_finding() {
        for name in
            [CHANGES, SCHEMA_HISTORY, "likewise.transaction", "__debezium-heartbeat.likewise"]
        {
            assert_eq!(after(name, |_| ()), Vec::<String>::new(), "{name}");
        }
    }

    /// L8
    #[test]
    fn a_compacted_log_is_refused() {
        for policy in ["compact", "delete,compact", "compact, delete"] {
            assert_eq!(with(CHANGES, "cleanup.policy", policy), ["refused cleanup.policy"]);
            assert_eq!(with(SCHEMA_HISTORY, "cleanup.policy", policy), ["refused cleanup.policy"]);
        }
    }

    #[test]
    fn a_log_that_ends_some_day_is_told_of_and_a_schema_history_refused() {
        for setting in ["retention.ms", "retention.bytes"] {
            assert_eq!(with(CHANGES, setting, "604800000"), [format!("warning {setting}")]);
            assert_eq!(with(SCHEMA_HISTORY, setting, "1"), [format!("refused {setting}")]);
        }
        assert_eq!(with("likewise.transaction", "retention.ms", "1"), ["warning retention.ms"]);
    }

    /// L11
    #[test]
    fn another_number_of_partitions_is_refused() {
        let raised = |seen: &mut Seen| seen.partitions = 8;
        assert_eq!(after(CHANGES, raised), ["refused partitions"]);
        assert_eq!(after(SCHEMA_HISTORY, raised), ["refused partitions"]);
    }

    #[test]
    fn a_change_that_does_not_outlive_a_broker_is_told_of() {
        assert_eq!(with(CHANGES, "min.insync.replicas", "1"), ["warning min.insync.replicas"]);
        assert_eq!(after(CHANGES, |seen| seen.replicas = 1), ["warning replication factor"]);
        assert_eq!(
            with(CHANGES, "unclean.leader.election.enable", "true"),
            ["refused unclean.leader.election.enable"]
        );
    }

    #[test]
    fn a_fix_is_a_command() {
        let mut config = BTreeMap::new();
        config.insert("cleanup.policy".to_owned(), "compact".to_owned());
        let seen = Seen { name: CHANGES.to_owned(), partitions: 4, replicas: 3, config };
        assert_eq!(
            check_changes(&seen, "broker:9092")[0].fix,
            "kafka-configs.sh --bootstrap-server broker:9092 --alter --entity-type topics \
             --entity-name likewise.changes --add-config cleanup.policy=delete"
        );
    }
}
