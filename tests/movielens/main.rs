//! Real input: the MovieLens 100k ratings through the write API, the aggregator killed on the way,
//! and every count compared with a table made from the file without our code.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use likewise_tests::{Api, eventually, likewise, mark_of, pid_of, setting, start_what_is_missing};
use tokio::process::Command;

const KILLS: u32 = 5;

/// `scripts/movielens` prints the two files that it made.
async fn files() -> (PathBuf, PathBuf) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/movielens");
    let made = Command::new(script).output().await.expect("scripts/movielens starts");
    assert!(made.status.success(), "{made:?}");
    let text = String::from_utf8(made.stdout).expect("text");
    let mut lines = text.lines().map(PathBuf::from);
    (lines.next().expect("the likes"), lines.next().expect("the counts"))
}

async fn records() -> f64 {
    let url = format!("{}/metrics", setting("AGGREGATOR_URL"));
    let Ok(answer) = reqwest::get(url).await else { return 0.0 };
    let text = answer.text().await.unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("likewise_records_total "));
    line.and_then(|value| value.parse().ok()).unwrap_or(0.0)
}

/// L13, for kill −9: every time in the middle of counting, with batches in hand.
#[tokio::test(flavor = "multi_thread")]
async fn movielens_is_counted_exactly_with_the_aggregator_killed_five_times() {
    let (likes, expected) = files().await;
    let loading = tokio::spawn(async move {
        let likes = likes.to_str().expect("a path").to_owned();
        likewise(&["load", &likes, "--json"]).await
    });
    let mut kills = 0;
    while kills < KILLS && !loading.is_finished() {
        // Only a process that counts is worth killing.
        let counting = records().await;
        eventually("counting", Duration::from_secs(60), async || {
            (records().await > counting + 100.0 || loading.is_finished()).then_some(())
        })
        .await;
        let killed = Command::new("kill").args(["-9", &pid_of("aggregator")]).status().await;
        assert!(killed.expect("kill starts").success());
        kills += 1;
        start_what_is_missing().await;
    }
    let loaded = loading.await.expect("it does not panic");
    assert!(loaded.status.success(), "{loaded:?}");
    println!("load: {}", String::from_utf8_lossy(&loaded.stdout).trim());
    assert_eq!(kills, KILLS, "the load was over before the aggregator was killed {KILLS} times");

    let drained = likewise(&["drain", "--json", "--timeout-s", "120"]).await;
    assert!(drained.status.success(), "{drained:?}");
    let verified = likewise(&["verify"]).await;
    assert!(verified.status.success(), "{verified:?}");
    println!("verify: {}", String::from_utf8_lossy(&verified.stdout).trim());

    let api = Api::new();
    let mut table = csv::Reader::from_path(expected).expect("the table");
    let table: BTreeMap<String, u64> =
        table.deserialize().collect::<Result<_, _>>().expect("post_id,likes");
    let mut wrong = Vec::new();
    for (post, likes) in &table {
        let answer = api.count_since(post, &mark_of(&drained)).await;
        if answer.json["count"] != *likes {
            wrong.push((post, *likes, answer.json["count"].clone()));
        }
    }
    assert!(wrong.is_empty(), "{} of {} counts differ: {wrong:?}", wrong.len(), table.len());
    println!("{} posts equal the table; post 50 has {}", table.len(), table["50"]);
}
