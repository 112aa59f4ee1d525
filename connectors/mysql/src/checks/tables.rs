//! Our tables, and whether the binlog has them.

use likewise_core::{Finding, Severity};

use super::MYSQL;

const ENGINE: &str = "InnoDB";
const COLLATION: &str = "utf8mb4_0900_bin";
/// What a foreign key may do without changing a row by itself.
const HARMLESS: [&str; 2] = ["NO ACTION", "RESTRICT"];

#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    /// None for a view.
    pub(super) engine: Option<String>,
}

/// A column that holds an id.
#[derive(Clone, Debug)]
pub(super) struct IdColumn {
    pub(super) table: String,
    pub(super) name: String,
    /// None where it holds no text.
    pub(super) collation: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct ForeignKey {
    pub(super) table: String,
    pub(super) name: String,
    pub(super) on_delete: String,
    pub(super) on_update: String,
}

/// Tables that are missing are no finding: a migration makes them.
pub(super) fn check(
    database: &str,
    tables: &[Table],
    ids: &[IdColumn],
    foreign_keys: &[ForeignKey],
) -> Vec<Finding> {
    let engines = tables.iter().filter(|table| table.engine.as_deref() != Some(ENGINE));
    let engines = engines.map(|Table { name, engine }| Finding {
        severity: Severity::Refused,
        thing: format!("table {database}.{name}"),
        setting: "engine".to_owned(),
        found: engine.clone().unwrap_or_else(|| "none".to_owned()),
        needed: ENGINE.to_owned(),
        why: "without transactions a like is not in table and binlog alike".to_owned(),
        fix: format!("ALTER TABLE {database}.{name} ENGINE = {ENGINE};"),
    });
    let collations = ids.iter().filter(|id| id.collation.as_deref() != Some(COLLATION));
    let collations = collations.map(|IdColumn { table, name, collation }| Finding {
        severity: Severity::Refused,
        thing: format!("table {database}.{table}"),
        setting: format!("collation of {name}"),
        found: collation.clone().unwrap_or_else(|| "none".to_owned()),
        needed: COLLATION.to_owned(),
        why: "ids that differ only by case or a trailing space would be one edge".to_owned(),
        fix: format!(
            "ALTER TABLE {database}.{table} MODIFY {name} VARCHAR(64) \
             CHARACTER SET utf8mb4 COLLATE {COLLATION} NOT NULL;"
        ),
    });
    let acts = |key: &&ForeignKey| {
        [&key.on_delete, &key.on_update].iter().any(|rule| !HARMLESS.contains(&rule.as_str()))
    };
    let keys =
        foreign_keys.iter().filter(acts).map(|ForeignKey { table, name, on_delete, on_update }| {
            Finding {
                severity: Severity::Refused,
                thing: format!("table {database}.{table}"),
                setting: format!("foreign key {name}"),
                found: format!("ON DELETE {on_delete} ON UPDATE {on_update}"),
                needed: "none that changes rows by itself".to_owned(),
                why: "what a foreign key does to rows need not be in the binlog".to_owned(),
                fix: format!("ALTER TABLE {database}.{table} DROP FOREIGN KEY `{name}`;"),
            }
        });
    engines.chain(collations).chain(keys).collect()
}

/// `only` and `never` are lists of databases, with commas.
pub(super) fn check_filters(database: &str, only: &str, never: &str) -> Vec<Finding> {
    let names = |list: &str| list.split(',').any(|name| name.trim() == database);
    let finding = |setting: &str, found: &str, needed: &str| Finding {
        severity: Severity::Refused,
        thing: MYSQL.to_owned(),
        setting: setting.to_owned(),
        found: found.to_owned(),
        needed: needed.to_owned(),
        why: "what is not in the binlog is never counted".to_owned(),
        fix: format!("take `{setting}` out of MySQL's option file, and start MySQL again"),
    };
    let mut findings = Vec::new();
    if !only.is_empty() && !names(only) {
        findings.push(finding("binlog-do-db", only, &format!("none, or {database} among them,")));
    }
    if names(never) {
        findings.push(finding("binlog-ignore-db", never, &format!("none, or not {database},")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(collation: &str) -> IdColumn {
        IdColumn {
            table: "post_likes".to_owned(),
            name: "post_id".to_owned(),
            collation: Some(collation.to_owned()),
        }
    }

    fn key(on_delete: &str, on_update: &str) -> ForeignKey {
        ForeignKey {
            table: "post_likes".to_owned(),
            name: "of_post".to_owned(),
            on_delete: on_delete.to_owned(),
            on_update: on_update.to_owned(),
        }
    }

    /// L8
    #[test]
    fn ids_that_do_not_compare_byte_for_byte_are_refused() {
        assert_eq!(check("likewise", &[], &[id("utf8mb4_0900_bin")], &[]), []);
        for other in ["utf8mb4_0900_ai_ci", "utf8mb4_general_ci", "utf8mb4_bin", "latin1_bin"] {
            let [finding] = &check("likewise", &[], &[id(other)], &[])[..] else { panic!("one") };
            assert!(finding.is_refused() && finding.found == other);
            assert!(finding.fix.starts_with("ALTER TABLE likewise.post_likes MODIFY post_id"));
        }
    }

    /// L8
    #[test]
    fn a_foreign_key_that_changes_rows_is_refused() {
        for harmless in [key("NO ACTION", "NO ACTION"), key("RESTRICT", "NO ACTION")] {
            assert_eq!(check("likewise", &[], &[], &[harmless]), []);
        }
        for acts in [key("CASCADE", "NO ACTION"), key("NO ACTION", "CASCADE"), key("SET NULL", "")]
        {
            let findings = check("likewise", &[], &[], &[acts]);
            assert_eq!(
                findings[0].fix,
                "ALTER TABLE likewise.post_likes DROP FOREIGN KEY `of_post`;"
            );
        }
    }

    #[test]
    fn another_engine_is_refused() {
        let table = |engine: Option<&str>| Table {
            name: "post_likes".to_owned(),
            engine: engine.map(str::to_owned),
        };
        assert_eq!(check("likewise", &[table(Some("InnoDB"))], &[], &[]), []);
        assert_eq!(check("likewise", &[table(Some("MyISAM"))], &[], &[])[0].found, "MyISAM");
        assert_eq!(check("likewise", &[table(None)], &[], &[])[0].found, "none");
    }

    #[test]
    fn a_binlog_that_leaves_the_database_out_is_refused() {
        for (only, never, refused) in [
            ("", "", false),
            ("other,likewise", "", false),
            ("other", "", true),
            ("", "other", false),
            ("", "other,likewise", true),
        ] {
            let findings = check_filters("likewise", only, never);
            assert_eq!(!findings.is_empty(), refused, "{only:?} {never:?}");
        }
    }
}
