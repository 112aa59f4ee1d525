//! Recounts: true at their place in the log, whatever races with them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use likewise_tests::{Api, Log, Oracle, eventually, fresh, likewise, setting};
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
    is_told(&api, &post, 77).await;
    recount(&[&post]).await;
    assert_eq!(oracle.agrees(&[&post]).await, [3]);

    // A count of a post that MySQL does not know becomes 0.
    let gone = fresh("gone");
    counts.insert_one(doc! { "_id": &gone, "n": 5_i64 }).await.expect("it is planted");
    recount(&[&gone]).await;
    assert_eq!(oracle.agrees(&[&gone]).await, [0]);
}

/// How often each of 12 users likes one post and unlikes another.
const ROUNDS: usize = 40;

/// Answers with how many of the calls changed an edge.
async fn like_and_unlike(user: usize, posts: &[String]) -> usize {
    let (api, user) = (Api::new(), format!("user{user}"));
    let mut changed = 0;
    for round in 0..ROUNDS {
        let post = |at: usize| &posts[at % posts.len()];
        for answer in [api.like(&user, post(round)).await, api.unlike(&user, post(round + 1)).await]
        {
            assert_eq!(answer.status, 200, "{answer:?}");
            changed += usize::from(answer.json["changed"] == true);
        }
    }
    changed
}

/// Every recount equals the fold of the log at its place, with likes and unlikes racing it.
#[tokio::test(flavor = "multi_thread")]
async fn a_recount_equals_the_fold_of_the_log_at_its_place() {
    let (oracle, log) = (Oracle::new(), Log::at_end().await);
    let posts = [fresh("race"), fresh("race"), fresh("race")];
    let names: Vec<&str> = posts.iter().map(String::as_str).collect();
    let racing = AtomicBool::new(true);
    let likers = async {
        let changed = join_all((0..12).map(|user| like_and_unlike(user, &posts))).await;
        racing.store(false, Ordering::Relaxed);
        changed.iter().sum::<usize>()
    };
    let recounters = async {
        while racing.load(Ordering::Relaxed) {
            recount(&names).await;
        }
    };
    let (changed, ()) = tokio::join!(likers, recounters);

    let mut fold: HashMap<String, i64> = HashMap::new();
    let (mut recounts, mut edges) = (0, 0);
    while edges < changed {
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
        } else {
            edges += 1;
            *counted += value["after"]["liked"].as_i64().unwrap_or(0);
            *counted -= value["before"]["liked"].as_i64().unwrap_or(0);
        }
    }
    println!("{recounts} recounts among {edges} racing changes");
    assert!(recounts > 10 && edges > 500, "{recounts} recounts among {edges} changes are no race");
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

    let listed = json_of(&["dead-letters", "list", "--limit", "100000", "--json"]).await;
    let letters = listed.as_array().expect("a list");
    let letter = letters.iter().find(|letter| letter["post_id"] == *post).expect("it is kept");
    assert_eq!(letter["payload"], "not json");
    let place = format!("{}/{}", letter["partition"], letter["offset"]);
    assert_eq!(json_of(&["dead-letters", "show", &place, "--json"]).await, *letter);

    // Retrying means a recount, never applying it.
    counts()
        .await
        .update_one(doc! { "_id": &post }, doc! { "$set": { "n": 5_i64 } })
        .await
        .expect("it is planted");
    let retried = likewise(&["dead-letters", "retry", &place]).await;
    assert!(retried.status.success(), "{retried:?}");
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
    let gone = likewise(&["dead-letters", "show", &place]).await;
    assert!(!gone.status.success() && String::from_utf8_lossy(&gone.stderr).contains(&place));
}

async fn json_of(arguments: &[&str]) -> Value {
    let output = likewise(arguments).await;
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A count that was read before is told for a moment longer.
async fn is_told(api: &Api, post: &str, count: u64) {
    eventually("the count is told", Duration::from_secs(10), async || {
        (api.count(post).await.json["count"] == count).then_some(())
    })
    .await;
}

/// A sum below zero is answered as 0, and recounted when it stays.
#[tokio::test]
async fn a_sum_that_stays_below_zero_is_recounted() {
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    api.like("ann", &post).await;
    oracle.agrees(&[&post]).await;
    let counts = counts().await;
    counts
        .update_one(doc! { "_id": &post }, doc! { "$set": { "n": -3_i64 } })
        .await
        .expect("it is planted");
    is_told(&api, &post, 0).await;
    eventually("the post is recounted", Duration::from_secs(30), async || {
        (api.count(&post).await.json["count"] == 1).then_some(())
    })
    .await;
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
}
