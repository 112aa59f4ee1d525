//! A gap in the log, a TRUNCATE, a server that lost what was counted.

use std::time::Duration;

use likewise_tests::{Api, Log, Oracle, eventually, fresh, likewise, metric, setting};
use mongodb::bson::{Document, doc};
use mysql_async::prelude::Queryable as _;
use rdkafka::Message as _;
use reqwest::{Client, Method};
use serde_json::Value;

use crate::STACK;

const LIMIT: Duration = Duration::from_secs(60);

async fn connect(method: Method, path: &str) {
    let url = format!("{}/connectors/likewise{path}", setting("CONNECT_URL"));
    eventually(&format!("{method} {url}"), LIMIT, async || {
        let answer = Client::new().request(method.clone(), &url).send().await.expect("it answers");
        answer.status().is_success().then_some(())
    })
    .await;
}

async fn admin() -> mysql_async::Conn {
    let admin = mysql_async::Pool::new(setting("MYSQL_ADMIN_URL").as_str());
    admin.get_conn().await.expect("MySQL answers")
}

async fn status() -> Value {
    let output = likewise(&["status", "--json"]).await;
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Recounts everything, after which nothing is in doubt.
async fn recount_all(arguments: &[&str]) {
    let done = likewise(&[&["recount", "--all"], arguments].concat()).await;
    assert!(done.status.success(), "{done:?}");
    let partitions = status().await["partitions"].take();
    let partitions = partitions.as_array().expect("partitions").clone();
    assert!(
        partitions.iter().all(|partition| partition["stands_since"].is_null()),
        "{partitions:?}"
    );
}

async fn nothing_differs() {
    let verified = likewise(&["verify"]).await;
    assert!(verified.status.success(), "{verified:?}");
}

/// L12a: the connector is deleted and registered again under its name without its offsets, with changes
/// in between.
#[tokio::test]
async fn a_gap_in_the_log_stops_as_of_until_everything_is_recounted() {
    let _stack = STACK.lock().await;
    forget_and_register(Registered::ByApply).await;
}

/// The same by hand and within two seconds, past the command that sets marks before it registers.
#[tokio::test]
async fn a_short_gap_that_somebody_made_by_hand_is_noticed_too() {
    let _stack = STACK.lock().await;
    forget_and_register(Registered::ByHand).await;
}

#[derive(Clone, Copy)]
enum Registered {
    ByApply,
    ByHand,
}

async fn forget_and_register(how: Registered) {
    let client = Client::new();
    let url = format!("{}/connectors/likewise/config", setting("CONNECT_URL"));
    let config: Value =
        client.get(&url).send().await.expect("it answers").json().await.expect("JSON");
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    api.like("ann", &post).await;
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
    let gaps = metric("AGGREGATOR", "likewise_log_gaps_total").await;

    connect(Method::PUT, "/stop").await;
    connect(Method::DELETE, "/offsets").await;
    connect(Method::DELETE, "").await;
    let mut conn = oracle.mysql().await;
    let rows: Vec<_> = (0..500).map(|n| (format!("user{n}"), post.clone())).collect();
    let insert =
        "INSERT INTO post_likes (user_id, post_id, liked, liked_at) VALUES (?, ?, 1, NOW(6))";
    conn.exec_batch(insert, rows).await.expect("MySQL takes them");
    match how {
        Registered::ByApply => {
            let applied = likewise(&["connector", "apply"]).await;
            assert!(applied.status.success(), "{applied:?}");
        }
        Registered::ByHand => {
            let put = client.put(&url).json(&config).send().await.expect("it answers");
            assert!(put.status().is_success(), "{put:?}");
        }
    }

    eventually("the gap is noticed", LIMIT, async || {
        (metric("AGGREGATOR", "likewise_log_gaps_total").await > gaps).then_some(())
    })
    .await;
    eventually("answers say so", LIMIT, async || {
        (api.count(&post).await.json["stale"] == true).then_some(())
    })
    .await;
    assert_eq!(api.count(&post).await.json["count"], 1, "the log has nothing of the 500");
    let drained = likewise(&["drain", "--timeout-s", "2"]).await;
    let text = String::from_utf8_lossy(&drained.stdout).into_owned();
    assert!(!drained.status.success() && text.contains("recount --all"), "{text}");

    let doctor = likewise(&["doctor"]).await;
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(text.contains("standing still") && text.contains("recount --all"), "{text}");
    recount_all(&[]).await;
    assert_eq!(oracle.agrees(&[&post]).await, [501]);
    nothing_differs().await;
}

/// A mark of another source says that it is a source, and `as_of` waits for its next one for ever. New
/// positions forget it.
#[tokio::test]
async fn a_source_that_is_gone_is_forgotten_by_new_positions() {
    let _stack = STACK.lock().await;
    let (api, oracle, log, post) = (Api::new(), Oracle::new(), Log::at_end().await, fresh("post"));
    api.like("ann", &post).await;
    let mark = loop {
        let record = log.next().await;
        let key = String::from_utf8_lossy(record.key().unwrap_or_default()).into_owned();
        if key.starts_with("mark-") {
            break (key, record);
        }
    };
    let value = mark.1.payload().expect("a value");
    let mut value: Value = serde_json::from_slice(value).expect("JSON");
    value["source"]["name"] = "somebody-else".into();
    log.append(&mark.0, Some(value.to_string().as_bytes())).await;
    let drained = likewise(&["drain", "--timeout-s", "3"]).await;
    assert!(!drained.status.success(), "{drained:?}");
    recount_all(&["--new-positions"]).await;
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
    nothing_differs().await;
}

/// L9: every count is in doubt, also those of other partitions, until everything is recounted.
#[tokio::test]
async fn a_truncate_puts_every_count_in_doubt_until_everything_is_recounted() {
    let _stack = STACK.lock().await;
    let (api, oracle) = (Api::new(), Oracle::new());
    let posts: Vec<String> = (0..20).map(|_| fresh("post")).collect();
    let names: Vec<&str> = posts.iter().map(String::as_str).collect();
    for post in &posts {
        api.like("ann", post).await;
    }
    oracle.agrees(&names).await;
    let truncates = metric("AGGREGATOR", "likewise_truncates_total").await;
    for post in &posts {
        api.like("ben", post).await;
    }
    admin().await.query_drop("TRUNCATE TABLE post_likes").await.expect("the admin may");
    api.like("cem", &posts[0]).await;
    eventually("every answer says so", LIMIT, async || {
        for post in &posts {
            if api.count(post).await.json["stale"] != true {
                return None;
            }
        }
        Some(())
    })
    .await;
    assert!(metric("AGGREGATOR", "likewise_truncates_total").await > truncates);
    recount_all(&[]).await;
    let counts = oracle.agrees(&names).await;
    assert_eq!((counts[0], counts[1..].iter().sum::<u64>()), (1, 0));
    nothing_differs().await;
}

/// A server that was restored or reset under its old UUID gives numbers out again that were counted: its
/// changes would be taken for repeats. Here the checkpoint is ahead of the server instead.
#[tokio::test]
async fn a_server_that_lost_what_was_counted_halts_counting_until_new_positions_begin() {
    let _stack = STACK.lock().await;
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    api.like("ann", &post).await;
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
    let client = mongodb::Client::with_uri_str(setting("MONGODB_URI")).await.expect("a client");
    let checkpoints = client.database("likewise").collection::<Document>("checkpoints");
    let ahead = doc! {
        "$set": {
            "positions.$[].transaction": 1_000_000_000_i64, "positions.$[].file": "binlog.999999",
        },
        "$inc": { "epoch": 1_i64 },
    };
    checkpoints.update_many(doc! {}, ahead).await.expect("it is planted");
    api.like("ben", &post).await;
    eventually("counting is halted", LIMIT, async || {
        let halted = status().await["halted"].take();
        let halted = halted.as_str()?.to_owned();
        assert!(halted.contains("recount --all --new-positions"), "{halted}");
        Some(())
    })
    .await;
    eventually("a gauge says so", LIMIT, async || {
        (metric("RECONCILER", "likewise_generation_halted").await > 0.0).then_some(())
    })
    .await;
    let ready = format!("{}/readyz", setting("AGGREGATOR_URL"));
    eventually("the aggregator says so", LIMIT, async || {
        let answer = reqwest::get(&ready).await.expect("it answers").text().await.expect("text");
        answer.contains("is halted").then_some(())
    })
    .await;
    let doctor = likewise(&["doctor"]).await;
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(!doctor.status.success() && text.contains("--new-positions"), "{text}");
    recount_all(&["--new-positions"]).await;
    assert!(likewise(&["doctor"]).await.status.success());
    assert_eq!(oracle.agrees(&[&post]).await, [2]);
    nothing_differs().await;
}
