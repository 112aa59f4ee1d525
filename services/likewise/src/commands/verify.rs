//! `likewise verify`

use std::cmp::Ordering;
use std::process::ExitCode;

use anyhow::Context as _;
use likewise_core::PostId;
use likewise_mongodb::Counts;
use serde::Serialize;
use tokio::sync::mpsc::{Receiver, channel};

use super::{live, print_json};
use crate::config::Config;
use crate::roles;

/// How many differences are printed.
const SHOWN: usize = 1000;
/// How many posts are read ahead on each side.
const AHEAD: usize = 1024;

#[derive(Debug, Default, Serialize)]
struct Verified {
    /// Posts that have likes, or a count, or both.
    posts: u64,
    /// Likes in MySQL.
    likes: i64,
    different: u64,
    /// The first of them.
    differences: Vec<Difference>,
}

#[derive(Debug, Serialize)]
struct Difference {
    post_id: String,
    /// In MySQL.
    likes: i64,
    /// In MongoDB.
    count: i64,
}

pub(crate) async fn run(config: &Config, json: bool) -> anyhow::Result<ExitCode> {
    let mysql = roles::mysql(config)?;
    let store = roles::store(config).await?;
    let live = live(&store).await?;

    // Both sides come sorted by the bytes of the id, so that neither need be held.
    let (send_likes, likes) = channel(AHEAD);
    let (send_counts, counts) = channel(AHEAD);
    let truth = async {
        // A receiver that is gone has failed, and says so itself.
        let sent =
            mysql.each_post(async |post, likes| drop(send_likes.send((post, likes)).await)).await;
        drop(send_likes);
        sent.context("failed to read the likes")
    };
    let stored = async {
        let each = async |post, sum| drop(send_counts.send((post, sum)).await);
        let sent = store.each_count(live.generation, Counts::OtherThanZero, each).await;
        drop(send_counts);
        sent.context("failed to read the counts")
    };
    let (truth, stored, verified) = tokio::join!(truth, stored, compare(likes, counts));
    truth?;
    stored?;

    if json {
        print_json(&verified)?;
    } else {
        for difference in &verified.differences {
            let Difference { post_id, likes, count } = difference;
            println!("post {post_id}: {likes} likes, count {count}");
        }
        let Verified { posts, likes, different, .. } = &verified;
        println!("{posts} posts, {likes} likes, {different} differences");
    }
    Ok(if verified.different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Merges the two sorted sides.
async fn compare(
    mut likes: Receiver<(PostId, i64)>,
    mut counts: Receiver<(PostId, i64)>,
) -> Verified {
    let mut verified = Verified::default();
    let mut truth = likes.recv().await;
    let mut stored = counts.recv().await;
    loop {
        let order = match (&truth, &stored) {
            (None, None) => return verified,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((post, _)), Some((other, _))) => post.cmp(other),
        };
        let truth_here = if order.is_le() { truth.take() } else { None };
        let stored_here = if order.is_ge() { stored.take() } else { None };
        if truth_here.is_some() {
            truth = likes.recv().await;
        }
        if stored_here.is_some() {
            stored = counts.recv().await;
        }
        let likes_here = truth_here.as_ref().map_or(0, |(_, likes)| *likes);
        let count_here = stored_here.as_ref().map_or(0, |(_, count)| *count);
        verified.posts += 1;
        verified.likes += likes_here;
        if likes_here != count_here
            && let Some((post, _)) = truth_here.or(stored_here)
        {
            let post_id = post.to_string();
            verified.different += 1;
            if verified.differences.len() >= SHOWN {
                continue;
            }
            verified.differences.push(Difference { post_id, likes: likes_here, count: count_here });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn verified(likes: &[(&str, i64)], counts: &[(&str, i64)]) -> Verified {
        let (send_likes, receive_likes) = channel(AHEAD);
        let (send_counts, receive_counts) = channel(AHEAD);
        for (post, n) in likes {
            send_likes.send((PostId::from_log(post), *n)).await.expect("there is room");
        }
        for (post, n) in counts {
            send_counts.send((PostId::from_log(post), *n)).await.expect("there is room");
        }
        drop((send_likes, send_counts));
        compare(receive_likes, receive_counts).await
    }

    #[tokio::test]
    async fn differences_are_found_on_either_side_and_in_the_middle() {
        let verified =
            verified(&[("a", 1), ("c", 3), ("d", 4)], &[("b", 2), ("c", 3), ("d", 5), ("e", -1)])
                .await;
        let found: Vec<_> =
            verified.differences.iter().map(|d| (d.post_id.as_str(), d.likes, d.count)).collect();
        assert_eq!(found, [("a", 1, 0), ("b", 0, 2), ("d", 4, 5), ("e", 0, -1)]);
        assert_eq!((verified.posts, verified.likes, verified.different), (5, 8, 4));
    }

    #[tokio::test]
    async fn equal_sides_have_no_difference() {
        let verified = verified(&[("a", 1), ("b", 2)], &[("a", 1), ("b", 2)]).await;
        assert!(verified.differences.is_empty());
        assert_eq!(verified.posts, 2);
    }
}
