//! What the look at a server's settings found.

use std::fmt;

use serde::Serialize;

/// What a finding means for whoever found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It can lose or double count: no role works with it.
    Refused,
    /// It is worth a thought, and nothing stops for it.
    Warning,
}

/// A setting that is not as it is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it means.
    pub severity: Severity,
    /// Whose setting: `MySQL`, `topic likewise.changes`.
    pub thing: String,
    /// Which setting.
    pub setting: String,
    /// What it has. Never a secret.
    pub found: String,
    /// What it needs.
    pub needed: String,
    /// What would be lost, doubled or hidden otherwise, in a clause.
    pub why: String,
    /// The statement or command that puts it right.
    pub fix: String,
}

impl Finding {
    /// Whether no role works with it.
    pub fn is_refused(&self) -> bool {
        self.severity == Severity::Refused
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "refused",
            Self::Warning => "warning",
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity: _, thing, setting, found, needed, why, fix } = self;
        write!(f, "{thing}: {setting} is {found}, {needed} is needed: {why}; fix: {fix}")
    }
}
