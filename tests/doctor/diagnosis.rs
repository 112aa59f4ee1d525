//! What `likewise doctor`, and a role that does not start, print.

use std::process::Output;
use std::time::Duration;

use likewise_tests::likewise_told;

use crate::free_port;

/// A role that is not refused serves for ever.
const REFUSED_WITHIN: Duration = Duration::from_secs(30);

/// One run of `likewise doctor`.
pub(crate) struct Diagnosis {
    pub(crate) code: Option<i32>,
    pub(crate) text: String,
}

/// Runs it with some settings of its own.
pub(crate) async fn diagnose(told: &[(&str, &str)]) -> Diagnosis {
    let Output { status, stdout, stderr } = likewise_told(&["doctor"], told).await;
    let text = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
    Diagnosis { code: status.code(), text }
}

impl Diagnosis {
    pub(crate) fn is_fit(&self) {
        assert_eq!(self.code, Some(0), "{}", self.text);
    }

    pub(crate) fn says(&self, start: &str) {
        assert!(self.text.lines().any(|line| line.starts_with(start)), "{start}: {}", self.text);
    }

    /// `found` is the setting with its value.
    pub(crate) fn refuses(&self, found: &str, fix: &str) {
        assert_eq!(self.code, Some(1), "{found}: {}", self.text);
        self.names("refused ", found, fix);
    }

    pub(crate) fn warns(&self, found: &str, fix: &str) {
        self.is_fit();
        self.names("warning ", found, fix);
    }

    fn names(&self, severity: &str, found: &str, fix: &str) {
        let (found, fix) = (format!(": {found}, "), format!("; fix: {fix}"));
        let named =
            |line: &str| line.starts_with(severity) && line.contains(&found) && line.contains(&fix);
        assert!(self.text.lines().any(named), "{severity}{found}{fix}:\n{}", self.text);
    }
}

/// Starts a role that must end by itself with 1, and name the setting and what puts it right.
pub(crate) async fn role_is_refused(role: &str, told: &[(&str, &str)], found: &str, fix: &str) {
    let (name, address) = listener(role);
    let mut told = told.to_vec();
    told.push((&name, &address));
    let ended = tokio::time::timeout(REFUSED_WITHIN, likewise_told(&[role], &told)).await;
    let ended = ended.unwrap_or_else(|_| panic!("{role} has started with {found}"));
    let text = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{role}: {text}");
    for expected in [found, fix] {
        assert!(text.contains(expected), "{role}: {expected}: {text}");
    }
}

/// The setting that gives a role an address of its own.
pub(crate) fn listener(role: &str) -> (String, String) {
    let name = format!("LIKEWISE_{}_LISTEN", role.to_uppercase().replace('-', "_"));
    (name, format!("127.0.0.1:{}", free_port()))
}
