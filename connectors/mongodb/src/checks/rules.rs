//! What MongoDB needs, and why.

use likewise_core::{Finding, Severity};
use mongodb::bson::{Bson, Document};
use mongodb::options::{
    Acknowledgment, ClientOptions, ReadConcern, ReadPreference, SelectionCriteria, WriteConcern,
};

/// How findings name the address.
const ADDRESS: &str = "LIKEWISE_MONGODB_URI";
/// A frozen aggregator's transaction keeps its successor from claiming for that long.
const LONGEST_TRANSACTION_S: f64 = 20.0;
pub(super) const LIFETIME: &str = "transactionLifetimeLimitSeconds";
const JOURNAL: &str = "writeConcernMajorityJournalDefault";

/// What one server says of itself.
pub(super) struct Answers {
    pub(super) hello: Document,
    /// None where it cannot be read.
    pub(super) lifetime: Option<Document>,
    /// The configuration of its replica set; none where it cannot be read.
    pub(super) set: Option<Document>,
}

/// What the address asks for that the counts cannot do with. What is merely overridden is a warning.
pub(crate) fn asked(options: &ClientOptions) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |severity, setting: &str, found: String, needed: &str, why: &str| {
        findings.push(Finding {
            severity,
            thing: ADDRESS.to_owned(),
            setting: setting.to_owned(),
            found,
            needed: needed.to_owned(),
            why: why.to_owned(),
            fix: format!("take `{setting}` out of {ADDRESS}"),
        });
    };
    if let Some(WriteConcern { w, journal, .. }) = &options.write_concern {
        let why = "a failover or a crash would take back counts that were acknowledged";
        if let Some(w) = w.as_ref().filter(|w| **w != Acknowledgment::Majority) {
            let found = match w {
                Acknowledgment::Nodes(nodes) => nodes.to_string(),
                other => format!("{other:?}"),
            };
            add(Severity::Refused, "w", found, "majority", why);
        }
        if *journal == Some(false) {
            add(Severity::Refused, "journal", "false".to_owned(), "true", why);
        }
    }
    let overridden = "counts are read from the primary with majority, whatever the address says";
    let majority = ReadConcern::majority();
    if let Some(other) = options.read_concern.as_ref().filter(|asked| **asked != majority) {
        let found = first_word(&other.level);
        add(Severity::Warning, "readConcernLevel", found, "majority", overridden);
    }
    if let Some(SelectionCriteria::ReadPreference(preference)) = &options.selection_criteria
        && *preference != ReadPreference::Primary
    {
        let found = first_word(preference);
        add(Severity::Warning, "readPreference", found, "primary", overridden);
    }
    findings
}

/// The driver names its levels and modes to itself alone.
fn first_word(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.split([' ', '{', '(']).next().unwrap_or_default().to_owned()
}

pub(super) fn answered(host: &str, answers: &Answers) -> Vec<Finding> {
    let finding = |severity, setting: &str, found: String, needed: &str, why: &str, fix: &str| {
        let thing = format!("MongoDB at {host}");
        let (setting, needed) = (setting.to_owned(), needed.to_owned());
        let (why, fix) = (why.to_owned(), fix.to_owned());
        Finding { severity, thing, setting, found, needed, why, fix }
    };
    let mut findings = Vec::new();
    let router = answers.hello.get_str("msg").is_ok_and(|msg| msg == "isdbgrid");
    // A member whose set is not initiated, or whose configuration is not read yet, has no name for it.
    let member = answers.hello.get_bool("isreplicaset").unwrap_or(false);
    if !router && !member && answers.hello.get_str("setName").is_err() {
        findings.push(finding(
            Severity::Refused,
            "replication.replSetName",
            "none".to_owned(),
            "a replica set",
            "without transactions counts and checkpoint cannot be written together",
            "start mongod with --replSet rs0, and once: mongosh --eval 'rs.initiate()'",
        ));
    }
    let set = answers.set.as_ref().and_then(|set| set.get_document("config").ok());
    if set.is_some_and(|set| matches!(set.get_bool(JOURNAL), Ok(false))) {
        findings.push(finding(
            Severity::Refused,
            JOURNAL,
            "false".to_owned(),
            "true",
            "a crash of a majority would take back counts that were acknowledged",
            "mongosh --eval 'cfg = rs.conf(); cfg.writeConcernMajorityJournalDefault = true; \
             rs.reconfig(cfg)'",
        ));
    }
    let seconds = answers.lifetime.as_ref().and_then(|lifetime| seconds(lifetime.get(LIFETIME)?));
    if let Some(seconds) = seconds.filter(|seconds| *seconds > LONGEST_TRANSACTION_S) {
        findings.push(finding(
            Severity::Warning,
            LIFETIME,
            seconds.to_string(),
            &format!("{LONGEST_TRANSACTION_S} or less"),
            "an aggregator that is frozen keeps its successor from counting for that long",
            "mongosh --eval 'db.adminCommand({ setParameter: 1, \
             transactionLifetimeLimitSeconds: 5 })', and --setParameter at every start",
        ));
    }
    findings
}

fn seconds(value: &Bson) -> Option<f64> {
    match value {
        Bson::Int32(seconds) => Some(f64::from(*seconds)),
        #[expect(clippy::cast_precision_loss, reason = "it is compared with a small number")]
        Bson::Int64(seconds) => Some(*seconds as f64),
        Bson::Double(seconds) => Some(*seconds),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::doc;

    async fn found(query: &str) -> Vec<String> {
        let uri = format!("mongodb://127.0.0.1:27017/?{query}");
        let options = ClientOptions::parse(&uri).await.expect("it is valid");
        let findings = asked(&options);
        findings.iter().map(|found| format!("{} {}", found.severity, found.setting)).collect()
    }

    #[tokio::test]
    async fn an_address_that_asks_for_less_than_majority_is_refused() {
        for fine in ["replicaSet=rs0", "w=majority&journal=true", "readPreference=primary"] {
            assert_eq!(found(fine).await, Vec::<String>::new(), "{fine}");
        }
        assert_eq!(found("w=1").await, ["refused w"]);
        assert_eq!(found("w=2&journal=false").await, ["refused w", "refused journal"]);
        assert_eq!(found("w=datacenters").await, ["refused w"]);
    }

    #[tokio::test]
    async fn what_is_overridden_is_told() {
        assert_eq!(found("readConcernLevel=local").await, ["warning readConcernLevel"]);
        assert_eq!(found("readPreference=secondaryPreferred").await, ["warning readPreference"]);
    }

    fn of(hello: Document, lifetime: Option<Bson>, journal: Option<bool>) -> Vec<Finding> {
        let lifetime = lifetime.map(|lifetime| doc! { LIFETIME: lifetime });
        let set = journal.map(|journal| doc! { "config": { JOURNAL: journal } });
        answered("h:1", &Answers { hello, lifetime, set })
    }

    #[test]
    fn a_server_on_its_own_is_refused_and_a_router_is_not() {
        let refused = |hello| of(hello, None, None).iter().any(Finding::is_refused);
        assert!(refused(doc! { "isWritablePrimary": true }));
        assert!(!refused(doc! { "setName": "rs0" }));
        assert!(!refused(doc! { "isreplicaset": true }), "it is not initiated yet");
        assert!(!refused(doc! { "msg": "isdbgrid" }));
    }

    #[test]
    fn a_majority_that_need_not_have_written_is_refused() {
        let member = || doc! { "setName": "rs0" };
        assert!(of(member(), None, Some(false))[0].is_refused());
        assert_eq!(of(member(), None, Some(true)), []);
    }

    #[test]
    fn a_long_life_of_transactions_is_told_of() {
        for (lifetime, warned) in
            [(Bson::Int32(60), true), (Bson::Int64(60), true), (Bson::Int32(20), false)]
        {
            let findings = of(doc! { "setName": "rs0" }, Some(lifetime), None);
            assert_eq!(!findings.is_empty(), warned);
        }
    }
}
