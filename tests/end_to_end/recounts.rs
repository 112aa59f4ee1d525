//! Recounts: true at their place in the log, whatever races with them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use likewise_tests::{Api, Log, Oracle, fresh, likewise, setting};
use mongodb::bson::{Document, doc};
use rdkafka::Message as _;
use serde_json::Value;

async fn recount(posts: &[&str]) {
    let done = likewise(&[&["recount"], posts].concat()).await;
    assert!(done.status.success(), "{done:?}");
}

/// The stored counts, to be tampered with.
async fn counts() -> mongodb::Collection<Document> {
    let client = mongodb::Client::with_uri_str(setting("MONGODB_URI")).await.expect("a client");
    client.database("likewise").collection("counts_1")
}

#[tokio::test]
async fn a_count_that_is_wrong_is_set_to_the_truth() {
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    for user in ["ann", "ben", "cem"] {
        api.like(user, &post).await;
    }
    oracle.agrees(&[&post]).await;
    let counts = counts().await;
    let id = doc! { "_id": &post };
    counts.update_one(id.clone(), doc! { "$set": { "n": 77_i64 } }).await.expect("it is planted");
    assert_eq!(api.count(&post).await.json["count"], 77);
    recount(&[&post]).await;
    assert_eq!(oracle.agrees(&[&post]).await, [3]);

    // A count of a post that MySQL does not know becomes 0.
    let gone = fresh("gone");
    counts.insert_one(doc! { "_id": &gone, "n": 5_i64 }).await.expect("it is planted");
    recount(&[&gone]).await;
    assert_eq!(oracle.agrees(&[&gone]).await, [0]);
}

/// Every recount equals the fold of the log at its place, with likes and unlikes racing it.
#[tokio::test(flavor = "multi_thread")]
async fn a_recount_equals_the_fold_of_the_log_at_its_place() {
    let (oracle, log) = (Oracle::new(), Log::at_end().await);
    let posts = [fresh("race"), fresh("race"), fresh("race")];
    let stop = AtomicBool::new(false);
    let until = Instant::now() + Duration::from_secs(6);

    let likers = join_all((0..12).map(|user| {
        let (posts, api) = (&posts, Api::new());
        async move {
            let user = format!("user{user}");
            for round in 0.. {
                if Instant::now() >= until {
                    return;
                }
                let post = &posts[round % posts.len()];
                assert_eq!(api.like(&user, post).await.status, 200);
                assert_eq!(api.unlike(&user, &posts[(round + 1) % posts.len()]).await.status, 200);
            }
        }
    }));
    let recounters = async {
        let names: Vec<&str> = posts.iter().map(String::as_str).collect();
        while Instant::now() < until {
            recount(&names).await;
        }
    };
    let racing = async {
        tokio::join!(likers, recounters);
        // With one more recount of each post, behind which the reader may stop.
        stop.store(true, Ordering::Relaxed);
        recount(&posts.iter().map(String::as_str).collect::<Vec<_>>()).await;
    };
    let reading = async {
        let mut fold: HashMap<String, i64> = HashMap::new();
        let (mut recounts, mut edges) = (0, 0);
        let mut ended = HashSet::new();
        while ended.len() < posts.len() {
            let message = log.next().await;
            let key = String::from_utf8_lossy(message.key().unwrap_or_default()).into_owned();
            if !posts.contains(&key) {
                continue;
            }
            let value: Value =
                serde_json::from_slice(message.payload().expect("a value")).expect("JSON");
            let counted = fold.entry(key.clone()).or_insert(0);
            if value["source"]["table"] == "post_recounts" {
                assert_eq!(value["after"]["likes"], *counted, "a recount of {key}: {value}");
                recounts += 1;
                if stop.load(Ordering::Relaxed) {
                    ended.insert(key);
                }
            } else {
                edges += 1;
                *counted += value["after"]["liked"].as_i64().unwrap_or(0);
                *counted -= value["before"]["liked"].as_i64().unwrap_or(0);
            }
        }
        (recounts, edges)
    };
    let ((), (recounts, edges)) = tokio::join!(racing, reading);
    println!("{recounts} recounts among {edges} racing changes");
    assert!(recounts > 10 && edges > 500, "{recounts} recounts among {edges} changes are no race");
    let names: Vec<&str> = posts.iter().map(String::as_str).collect();
    oracle.agrees(&names).await;
}

/// Poison about a post puts its count in doubt, and the reconciler ends the doubt.
#[tokio::test]
async fn an_unreadable_record_is_kept_aside_and_its_post_is_repaired() {
    let (api, oracle, log, post) = (Api::new(), Oracle::new(), Log::at_end().await, fresh("post"));
    api.like("ann", &post).await;
    oracle.agrees(&[&post]).await;
    log.append(&post, Some(b"not json")).await;
    // A drain waits for repairs too.
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
    let client = mongodb::Client::with_uri_str(setting("MONGODB_URI")).await.expect("a client");
    let letters = client.database("likewise").collection::<Document>("dead_letters");
    let payload = mongodb::bson::Binary {
        subtype: mongodb::bson::spec::BinarySubtype::Generic,
        bytes: b"not json".to_vec(),
    };
    let letter = letters.find_one(doc! { "payload": payload }).await.expect("MongoDB answers");
    assert!(
        letter.is_some_and(|letter| letter.contains_key("reason") && letter.contains_key("offset"))
    );
}
