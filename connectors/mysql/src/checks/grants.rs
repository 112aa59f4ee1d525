//! What the roles' account may do to the tables beyond their rows.

use likewise_core::{Finding, Severity};

use super::MYSQL;

/// Reads the lines of `SHOW GRANTS`.
pub(super) fn check(database: &str, grants: &[String]) -> Vec<Finding> {
    grants.iter().filter_map(|grant| look(database, grant)).collect()
}

/// ``GRANT SELECT, INSERT ON `likewise`.* TO `likewise`@`%` ``. A granted role has no ` ON `.
fn look(database: &str, grant: &str) -> Option<Finding> {
    let (rights, rest) = grant.strip_prefix("GRANT ")?.split_once(" ON ")?;
    let (scope, account) = rest.split_once(" TO ")?;
    let account = account.split(" WITH ").next().unwrap_or(account);
    let ours = scope == "*.*" || scope.replace('\\', "").starts_with(&format!("`{database}`."));
    let truncates = |right: &str| ["DROP", "ALL PRIVILEGES"].contains(&right.trim());
    let right = rights.split(',').find(|right| truncates(right))?.trim();
    ours.then(|| Finding {
        severity: Severity::Warning,
        thing: MYSQL.to_owned(),
        setting: format!("right of {account} on {scope}"),
        found: right.to_owned(),
        needed: "SELECT, INSERT, UPDATE, DELETE at most".to_owned(),
        why: "a TRUNCATE empties the table without a change for each row".to_owned(),
        fix: format!("REVOKE DROP ON {scope} FROM {account};"),
    })
}

/// `account` is `likewise@%`, as `CURRENT_USER()` tells it.
pub(super) fn without_own_transactions(account: &str) -> Finding {
    let (user, host) = account.rsplit_once('@').unwrap_or((account, "%"));
    let account = format!("`{user}`@`{host}`");
    Finding {
        severity: Severity::Warning,
        thing: MYSQL.to_owned(),
        setting: format!("right of {account} on performance_schema.events_transactions_history"),
        found: "none".to_owned(),
        needed: "SELECT".to_owned(),
        why: "the answer to a like cannot tell whether its count has the like already".to_owned(),
        fix: format!(
            "GRANT SELECT ON performance_schema.events_transactions_history TO {account};"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(grant: &str) -> Vec<Finding> {
        check("likewise", &[grant.to_owned()])
    }

    #[test]
    fn an_account_that_has_rows_alone_is_as_it_should_be() {
        for grant in [
            "GRANT USAGE ON *.* TO `likewise`@`%`",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON `likewise`.* TO `likewise`@`%`",
            "GRANT ALL PRIVILEGES ON `likewise\\_test\\_%`.* TO `likewise`@`%`",
            "GRANT DROP ON `other`.* TO `likewise`@`%`",
            "GRANT `some_role`@`%` TO `likewise`@`%`",
        ] {
            assert_eq!(found(grant), [], "{grant}");
        }
    }

    /// L9
    #[test]
    fn an_account_that_may_truncate_is_told_of() {
        for (grant, fix) in [
            (
                "GRANT SELECT, DROP ON `likewise`.* TO `likewise`@`%`",
                "REVOKE DROP ON `likewise`.* FROM `likewise`@`%`;",
            ),
            (
                "GRANT ALL PRIVILEGES ON `likewise`.`post_likes` TO `likewise`@`%` WITH GRANT OPTION",
                "REVOKE DROP ON `likewise`.`post_likes` FROM `likewise`@`%`;",
            ),
            (
                "GRANT SELECT, CREATE, DROP, RELOAD ON *.* TO `root`@`localhost`",
                "REVOKE DROP ON *.* FROM `root`@`localhost`;",
            ),
        ] {
            let [finding] = &found(grant)[..] else { panic!("{grant}") };
            assert!(!finding.is_refused() && finding.fix == fix, "{finding}");
        }
    }
}
