//! What must be true once everything is healed: the same after every fault.

use std::collections::{BTreeMap, HashSet};

use likewise_tests::{Api, Oracle, likewise, mark_of};
use mysql_async::prelude::Queryable as _;
use serde_json::Value;

use crate::load::Load;

/// How long counting may take to catch up.
const DRAIN_S: &str = "240";
/// How many of a kind are shown.
const SHOWN: usize = 5;

/// What was compared.
pub(crate) struct Agreement {
    pub(crate) likes: u64,
    pub(crate) posts: usize,
}

/// Waits until everything is counted, however much there is to catch up with.
/// Counts of the time that it answers with have it all.
pub(crate) async fn drained() -> Result<String, String> {
    let drained = likewise(&["drain", "--json", "--timeout-s", DRAIN_S]).await;
    if drained.status.success() {
        Ok(mark_of(&drained))
    } else {
        Err(format!("not drained: {}", text(&drained)))
    }
}

/// Drains, and compares everything with the truth. Says all that is wrong.
pub(crate) async fn agrees(load: &Load) -> Result<Agreement, String> {
    let mark = drained().await?;
    let mut wrong = load.wrong();
    let truth = truth(load).await;
    wrong.extend(lost_or_invented(load, &truth));
    let (mut likes, mut different) = (0, Vec::new());
    let api = Api::new();
    let known: Vec<String> = load.posts().filter(|post| !truth.contains_key(post)).collect();
    let posts = truth.iter().map(|(post, users)| (post.clone(), users.len() as u64));
    let posts: Vec<_> = posts.chain(known.into_iter().map(|post| (post, 0))).collect();
    for (post, expected) in &posts {
        let answer = api.count_since(post, &mark).await;
        if answer.json["count"] != *expected || answer.json["stale"] != false {
            different.push(format!("{post} has {expected} likes, and is told as {}", answer.json));
        }
        likes += expected;
    }
    let verified = likewise(&["verify", "--json"]).await;
    let found: Value = serde_json::from_slice(&verified.stdout).unwrap_or_default();
    if found["different"] != 0 || !verified.status.success() {
        wrong.push(format!("verify: {}", text(&verified)));
    }
    let shown = different.len();
    wrong.extend(different.into_iter().take(SHOWN));
    if shown > SHOWN {
        wrong.push(format!("and {} counts more", shown - SHOWN));
    }
    if wrong.is_empty() {
        Ok(Agreement { likes, posts: posts.len() })
    } else {
        Err(wrong.join("\n  "))
    }
}

/// Where counting has stopped: what was acknowledged is in MySQL, and no answer was wrong.
pub(crate) async fn nothing_is_wrong(load: &Load) -> Result<Agreement, String> {
    let truth = truth(load).await;
    let mut wrong = load.wrong();
    wrong.extend(lost_or_invented(load, &truth));
    let likes = truth.values().map(|users| users.len() as u64).sum();
    if wrong.is_empty() {
        Ok(Agreement { likes, posts: truth.len() })
    } else {
        Err(wrong.join("\n  "))
    }
}

/// Who likes each post of the load, says MySQL.
pub(crate) async fn truth(load: &Load) -> BTreeMap<String, HashSet<String>> {
    let mut conn = Oracle::new().mysql().await;
    let rows: Vec<(String, String)> = conn
        .exec(
            "SELECT post_id, user_id FROM post_likes FORCE INDEX (newest_likers_of_post)
             WHERE post_id BETWEEN ? AND ? AND liked",
            (format!("{}-", load.prefix()), format!("{}-~", load.prefix())),
        )
        .await
        .expect("MySQL answers");
    let mut posts: BTreeMap<String, HashSet<String>> = BTreeMap::new();
    for (post, user) in rows {
        posts.entry(post).or_default().insert(user);
    }
    posts
}

/// Edges that MySQL has in a state that nobody acknowledged.
fn lost_or_invented(load: &Load, truth: &BTreeMap<String, HashSet<String>>) -> Vec<String> {
    let record = load.record();
    let is_liked = |user: &str, post: &str| truth.get(post).is_some_and(|all| all.contains(user));
    let wrong = record.edges().filter(|(user, post, states)| !states.allow(is_liked(user, post)));
    let wrong = wrong.map(|(user, post, states)| {
        format!("MySQL has liked {} of {user}, {post}: {states:?}", is_liked(user, post))
    });
    wrong.take(SHOWN).collect()
}

fn text(output: &std::process::Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    let text = format!("{out}{}", String::from_utf8_lossy(&output.stderr));
    text.trim().chars().take(1500).collect()
}
