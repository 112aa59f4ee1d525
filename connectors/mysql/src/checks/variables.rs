//! The server's variables, each with what it needs and why.

use std::collections::BTreeMap;

use likewise_core::{Finding, Severity};

use super::MYSQL;

#[derive(Clone, Copy)]
enum Needed {
    Is(&'static str),
    AtLeast(u64),
    /// 0 stands for ever.
    AtLeastOrZero(u64),
    /// None, or an empty one.
    Nothing,
}

#[derive(Clone, Copy)]
enum Fix {
    /// `SET PERSIST`, which also outlives a restart.
    Persist,
    /// It cannot be changed while the server runs.
    OptionFile(&'static str),
    /// One step after the other.
    GtidSteps,
    Statements(&'static str),
}

struct Rule {
    severity: Severity,
    name: &'static str,
    needed: Needed,
    why: &'static str,
    fix: Fix,
}

const fn refused(name: &'static str, needed: Needed, why: &'static str, fix: Fix) -> Rule {
    Rule { severity: Severity::Refused, name, needed, why, fix }
}

const fn warning(name: &'static str, needed: Needed, why: &'static str) -> Rule {
    Rule { severity: Severity::Warning, name, needed, why, fix: Fix::Persist }
}

const RULES: [Rule; 16] = [
    refused(
        "log_bin",
        Needed::Is("ON"),
        "without a binlog no like is ever counted",
        Fix::OptionFile("log-bin = binlog"),
    ),
    refused(
        "log_replica_updates",
        Needed::Is("ON"),
        "a server that takes over would have its predecessor's likes in no binlog",
        Fix::OptionFile("log-replica-updates = ON"),
    ),
    refused(
        "gtid_mode",
        Needed::Is("ON"),
        "without GTIDs a repeat of a change cannot be told from a new one after a failover",
        Fix::GtidSteps,
    ),
    refused(
        "enforce_gtid_consistency",
        Needed::Is("ON"),
        "a statement could be written without a GTID of its own",
        Fix::Persist,
    ),
    refused(
        "binlog_format",
        Needed::Is("ROW"),
        "a change that is logged as a statement is never counted",
        Fix::Persist,
    ),
    refused(
        "binlog_row_image",
        Needed::Is("FULL"),
        "a change without its whole row does not tell whether the edge was liked before",
        Fix::Persist,
    ),
    refused(
        "binlog_transaction_compression",
        Needed::Is("OFF"),
        "all rows of a compressed transaction share one position, by which repeats are told apart",
        Fix::Persist,
    ),
    refused(
        "binlog_order_commits",
        Needed::Is("ON"),
        "a mark could overtake a like that was committed before it",
        Fix::Persist,
    ),
    refused(
        "replica_preserve_commit_order",
        Needed::Is("ON"),
        "a server that takes over could have the likes in another order than its predecessor",
        Fix::Statements(
            "SET PERSIST replica_preserve_commit_order = ON; \
             -- on a replica between STOP REPLICA SQL_THREAD and START REPLICA SQL_THREAD",
        ),
    ),
    refused(
        "sync_binlog",
        Needed::Is("1"),
        "a crash would lose likes from the binlog that the table has",
        Fix::Persist,
    ),
    refused(
        "innodb_flush_log_at_trx_commit",
        Needed::Is("1"),
        "a crash would lose likes from the table that were acknowledged and counted",
        Fix::Persist,
    ),
    refused(
        "group_replication_group_name",
        Needed::Nothing,
        "nobody has tested yet how Group Replication numbers and orders changes",
        Fix::Statements("STOP GROUP_REPLICATION; UNINSTALL PLUGIN group_replication;"),
    ),
    Rule {
        severity: Severity::Warning,
        name: "performance_schema",
        needed: Needed::Is("ON"),
        why: "the answer to a like could not tell whether its count has the like already",
        fix: Fix::OptionFile("performance-schema = ON"),
    },
    warning(
        "binlog_row_metadata",
        Needed::Is("FULL"),
        "the binlog does not name its columns, and only the connector's own history does",
    ),
    warning(
        "net_write_timeout",
        Needed::AtLeast(600),
        "MySQL cuts a connector off that Kafka holds up for longer",
    ),
    warning(
        "binlog_expire_logs_seconds",
        Needed::AtLeastOrZero(7 * 24 * 3600),
        "a connector that is away for longer loses its place, and everything must be recounted",
    ),
];

/// A server that knows no other format has no variable for it.
const GONE_WHERE_FIXED: &str = "binlog_format";

/// Shows the variables that are looked at; those that the server does not know are left out.
pub(super) fn query() -> String {
    let names: Vec<String> = RULES.iter().map(|rule| format!("'{}'", rule.name)).collect();
    format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})", names.join(", "))
}

pub(super) fn check(variables: &BTreeMap<String, String>) -> Vec<Finding> {
    let look = |rule| look(rule, variables.get(rule.name).map(String::as_str));
    RULES.iter().filter_map(look).collect()
}

fn look(rule: &Rule, found: Option<&str>) -> Option<Finding> {
    let number = || found.and_then(|found| found.parse::<u64>().ok());
    let (met, needed, value) = match rule.needed {
        Needed::Is(value) => {
            let fixed = found.is_none() && rule.name == GONE_WHERE_FIXED;
            (fixed || found == Some(value), value.to_owned(), value.to_owned())
        }
        Needed::AtLeast(least) => (
            number().is_some_and(|number| number >= least),
            format!("{least} or more"),
            least.to_string(),
        ),
        Needed::AtLeastOrZero(least) => (
            number().is_some_and(|number| number == 0 || number >= least),
            format!("{least} or more, or 0 for ever,"),
            least.to_string(),
        ),
        Needed::Nothing => (found.unwrap_or_default().is_empty(), "none".to_owned(), String::new()),
    };
    let fix = || match rule.fix {
        Fix::Persist => format!("SET PERSIST {} = {value};", rule.name),
        Fix::OptionFile(line) => {
            format!("put `{line}` into MySQL's option file, and start MySQL again")
        }
        Fix::GtidSteps => gtid_steps(found.unwrap_or_default()),
        Fix::Statements(statements) => statements.to_owned(),
    };
    (!met).then(|| Finding {
        severity: rule.severity,
        thing: MYSQL.to_owned(),
        setting: rule.name.to_owned(),
        found: found.unwrap_or("unknown to this server").to_owned(),
        needed,
        why: rule.why.to_owned(),
        fix: fix(),
    })
}

/// The mode moves one step at a time, and only where consistency is enforced.
fn gtid_steps(found: &str) -> String {
    let steps = ["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"];
    let at = steps.iter().position(|step| *step == found).unwrap_or_default();
    let modes = steps.iter().skip(at + 1).map(|step| format!(" SET PERSIST gtid_mode = {step};"));
    format!("SET PERSIST enforce_gtid_consistency = ON;{}", modes.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_needed() -> BTreeMap<String, String> {
        let value = |rule: &Rule| match rule.needed {
            Needed::Is(value) => value.to_owned(),
            Needed::AtLeast(least) | Needed::AtLeastOrZero(least) => least.to_string(),
            Needed::Nothing => String::new(),
        };
        RULES.iter().map(|rule| (rule.name.to_owned(), value(rule))).collect()
    }

    fn with(name: &str, value: &str) -> Vec<Finding> {
        let mut variables = as_needed();
        variables.insert(name.to_owned(), value.to_owned());
        check(&variables)
    }

    #[test]
    fn a_server_as_it_is_needed_has_no_finding() {
        assert_eq!(check(&as_needed()), []);
        assert_eq!(with("binlog_expire_logs_seconds", "0"), [], "for ever");
        assert_eq!(with("net_write_timeout", "1000"), []);
    }

    /// L8: named with what was found, what is needed, and the statement.
    #[test]
    fn each_other_value_is_found_with_its_fix() {
        for rule in &RULES {
            let findings = with(rule.name, "17");
            let [finding] = &findings[..] else { panic!("{}: {findings:?}", rule.name) };
            assert_eq!((finding.setting.as_str(), finding.found.as_str()), (rule.name, "17"));
            assert!(!finding.fix.is_empty());
        }
        let [finding] = &with("sync_binlog", "0")[..] else { panic!("one") };
        assert_eq!(
            finding.to_string(),
            "MySQL: sync_binlog is 0, 1 is needed: a crash would lose likes from the binlog that \
             the table has; fix: SET PERSIST sync_binlog = 1;"
        );
        assert!(finding.is_refused());
        assert!(!with("net_write_timeout", "60")[0].is_refused());
    }

    #[test]
    fn a_variable_that_is_missing_is_refused_but_for_a_format_that_is_fixed() {
        let mut variables = as_needed();
        variables.remove("group_replication_group_name");
        variables.remove("binlog_format");
        assert_eq!(check(&variables), []);
        variables.remove("gtid_mode");
        assert_eq!(check(&variables)[0].found, "unknown to this server");
    }

    #[test]
    fn the_gtid_mode_goes_on_from_where_it_is() {
        assert!(gtid_steps("OFF").ends_with(
            "= OFF_PERMISSIVE; SET PERSIST gtid_mode = ON_PERMISSIVE; SET PERSIST gtid_mode = ON;"
        ));
        assert_eq!(
            gtid_steps("ON_PERMISSIVE"),
            "SET PERSIST enforce_gtid_consistency = ON; SET PERSIST gtid_mode = ON;"
        );
    }
}
