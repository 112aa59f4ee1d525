//! The connector, stopped, registered with one setting after the other broken, and put right again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use likewise_tests::{Api, Oracle, eventually, fresh, likewise, setting};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::diagnosis::{Diagnosis, diagnose, role_is_refused};
use crate::{alone, then_put_right};

const FIX: &str = "likewise connector apply";
const LIMIT: Duration = Duration::from_secs(60);

/// A setting, and a value that Kafka Connect takes and that could lose or double changes.
const REFUSED: [(&str, &str); 43] = [
    ("connect.keep.alive", "true"),
    ("bigint.unsigned.handling.mode", "precise"),
    ("database.include.list", "other"),
    ("decimal.handling.mode", "string"),
    ("errors.max.retries", "0"),
    ("errors.tolerance", "all"),
    ("event.converting.failure.handling.mode", "warn"),
    ("event.processing.failure.handling.mode", "warn"),
    ("include.schema.changes", "true"),
    ("inconsistent.schema.handling.mode", "skip"),
    ("key.converter", "org.apache.kafka.connect.json.JsonConverter"),
    ("predicates", "aboutPartition"),
    ("predicates.aboutPartition.pattern", "other"),
    (
        "predicates.aboutPartition.type",
        "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    ),
    ("predicates.aboutPost.pattern", "likewise\\.likewise\\.post_likes"),
    (
        "predicates.aboutPost.type",
        "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    ),
    ("provide.transaction.metadata", "false"),
    ("schema.history.internal.kafka.topic", "other"),
    ("schema.history.internal.skip.unparseable.ddl", "true"),
    ("schema.history.internal.store.only.captured.tables.ddl", "false"),
    ("skipped.operations", "t"),
    ("snapshot.max.threads", "2"),
    ("snapshot.mode", "initial"),
    ("table.include.list", "likewise\\.post_likes"),
    ("tasks.max", "2"),
    ("time.precision.mode", "connect"),
    ("tombstones.on.delete", "true"),
    ("topic.prefix", "other"),
    ("transaction.boundary", "interval"),
    ("transforms", "oneTopic"),
    ("transforms.markKey.field", "other"),
    ("transforms.markKey.predicate", "aboutPost"),
    ("transforms.markKey.type", "org.apache.kafka.connect.transforms.HoistField$Key"),
    ("transforms.oneTopic.regex", "other"),
    ("transforms.oneTopic.replacement", "likewise.other"),
    ("transforms.oneTopic.type", "org.apache.kafka.connect.transforms.TimestampRouter"),
    ("transforms.postKey.field", "other"),
    ("transforms.postKey.predicate", "aboutPartition"),
    ("transforms.postKey.type", "org.apache.kafka.connect.transforms.HoistField$Key"),
    ("value.converter", "org.apache.kafka.connect.storage.StringConverter"),
    ("value.converter.schemas.enable", "true"),
    // What the project does not set.
    ("message.key.columns", "likewise.post_likes:post_id"),
    ("producer.override.acks", "1"),
];

/// What a fleet may set otherwise.
const FINE: [(&str, &str); 9] = [
    ("connect.timeout.ms", "5000"),
    ("database.server.id", "5401"),
    ("database.ssl.mode", "required"),
    ("driver.allowPublicKeyRetrieval", "false"),
    ("errors.log.enable", "false"),
    ("heartbeat.interval.ms", "1000"),
    ("max.batch.size", "4096"),
    ("poll.interval.ms", "50"),
    ("producer.override.compression.type", "zstd"),
];

/// Kafka Connect takes no other class, and no address where nobody answers; the first line has a test of
/// its own below.
const UNTRIED: [&str; 7] = [
    "connector.class",
    "database.hostname",
    "database.password",
    "database.port",
    "database.user",
    "exactly.once.support",
    "schema.history.internal.kafka.bootstrap.servers",
];

async fn ask(method: Method, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
    let url = format!("{}/connectors/likewise{path}", setting("CONNECT_URL"));
    let mut request = Client::new().request(method, url);
    if let Some(body) = body {
        request = request.json(body);
    }
    let answer = request.send().await.expect("Kafka Connect answers");
    (answer.status(), answer.json().await.unwrap_or(Value::Null))
}

type Settings = BTreeMap<String, String>;

async fn settings() -> Settings {
    let (status, config) = ask(Method::GET, "/config", None).await;
    assert_eq!(status, StatusCode::OK, "{config}");
    serde_json::from_value(config).expect("texts")
}

async fn put(config: &Settings) {
    let (status, answer) = ask(Method::PUT, "/config", Some(&json!(config))).await;
    assert!(status.is_success(), "{answer}");
    eventually("the workers agree on it", LIMIT, async || {
        (settings().await == *config).then_some(())
    })
    .await;
}

async fn stop() {
    let (status, answer) = ask(Method::PUT, "/stop", None).await;
    assert!(status.is_success(), "{answer}");
    eventually("it stops", LIMIT, async || {
        let (_, status) = ask(Method::GET, "/status", None).await;
        let stopped = status["connector"]["state"] == "STOPPED";
        (stopped && status["tasks"] == json!([])).then_some(())
    })
    .await;
}

/// Registers it with this setting changed, and asks.
async fn diagnose_with(right: &Settings, key: &str, value: &str) -> Diagnosis {
    let mut config = right.clone();
    config.insert(key.to_owned(), value.to_owned());
    put(&config).await;
    diagnose(&[]).await
}

async fn each_is_refused(right: &Settings) {
    let known: BTreeSet<&str> =
        REFUSED.iter().chain(&FINE).map(|(key, _)| *key).chain(UNTRIED).chain(["name"]).collect();
    let forgotten: Vec<_> = right.keys().filter(|key| !known.contains(key.as_str())).collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
    diagnose(&[]).await.warns("state is STOPPED (tasks: )", "curl -X PUT ");
    for (key, value) in REFUSED {
        let diagnosis = diagnose_with(right, key, value).await;
        diagnosis.refuses(&format!("{key} is {value}"), FIX);
        if key == "connect.keep.alive" {
            let why = "false is needed: its reconnect inside a task repeats rows";
            assert!(diagnosis.text.contains(why), "{}", diagnosis.text);
            role_is_refused("reconciler", &[], "connect.keep.alive is true", FIX).await;
        }
    }
    // The second line holds without the first.
    let diagnosis = diagnose_with(right, "exactly.once.support", "requested").await;
    diagnosis.warns("exactly.once.support is requested", FIX);
    for (key, value) in FINE {
        let diagnosis = diagnose_with(right, key, value).await;
        diagnosis.is_fit();
        assert!(!diagnosis.text.contains(key), "{}", diagnosis.text);
    }
    let mut missing = right.clone();
    missing.remove("skipped.operations");
    put(&missing).await;
    diagnose(&[]).await.refuses("skipped.operations is not set", FIX);
}

/// Its settings, and then its registration, which the fix brings back to where it was.
#[tokio::test]
async fn each_setting_that_loses_or_doubles_changes_is_refused_and_the_fix_helps() {
    let _alone = alone().await;
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    let right = settings().await;
    stop().await;
    api.like("while-stopped", &post).await;
    then_put_right(each_is_refused(&right), async {
        put(&right).await;
        ask(Method::PUT, "/resume", None).await;
        eventually("it runs", LIMIT, async || {
            likewise(&["connector", "apply"]).await.status.success().then_some(())
        })
        .await;
    })
    .await;
    diagnose(&[]).await.is_fit();

    let (status, answer) = ask(Method::DELETE, "", None).await;
    assert!(status.is_success(), "{answer}");
    api.like("while-deleted", &post).await;
    let diagnosis = diagnose(&[]).await;
    let applied = likewise(&["connector", "apply"]).await;
    assert!(applied.status.success(), "{applied:?}");
    diagnosis.refuses("registration is missing", FIX);
    diagnose(&[]).await.is_fit();
    assert_eq!(oracle.agrees(&[&post]).await, [2]);
}
