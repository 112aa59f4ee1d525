//! The count in the answer to a write: it includes the caller's own like, once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use likewise_tests::{Answer, Api, Oracle, drain, eventually, fresh, setting};
use mysql_async::prelude::Queryable as _;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

const LIMIT: Duration = Duration::from_secs(60);
/// A like that no write API knows of.
const INSERT: &str = "INSERT INTO post_likes (user_id, post_id, liked, liked_at)
     VALUES (?, ?, TRUE, UTC_TIMESTAMP(6))";

/// Whether it is exact; otherwise it must be stale, as where MongoDB does not answer in time.
#[track_caller]
fn is_exact(answer: &Answer, count: u64) -> bool {
    if answer.json["stale"] == true {
        return false;
    }
    assert_eq!(answer.json["count"], count, "{answer:?}");
    assert!(answer.json["as_of"].is_string(), "{answer:?}");
    true
}

/// What is always stale is never wrong.
#[track_caller]
fn assert_most(exact: usize, answers: usize) {
    println!("{exact} of {answers} answers are exact");
    assert!(exact * 10 >= answers * 9, "{exact} of {answers}");
}

/// Before, while and after the like is counted.
#[tokio::test]
async fn an_edge_that_flips_to_and_fro_is_told_exactly() {
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    api.like("ben", &post).await;
    // Below what one user may write in a minute.
    let user = fresh("user");
    let mut exact = 0;
    for _ in 0..60 {
        for _ in 0..2 {
            exact += usize::from(is_exact(&api.like(&user, &post).await, 2));
        }
        for _ in 0..2 {
            exact += usize::from(is_exact(&api.unlike(&user, &post).await, 1));
        }
    }
    assert_most(exact, 240);
    api.like(&user, &post).await;
    assert_eq!(oracle.agrees(&[&post]).await, [2]);
    // Counted, and known to be.
    eventually("a repeat is exact", LIMIT, async || {
        is_exact(&api.like(&user, &post).await, 2).then_some(())
    })
    .await;
    is_exact(&api.unlike(&user, &post).await, 1);
}

/// Many at once, while the aggregator counts them: each answer has every like that was acknowledged before
/// its call and its own, and none that was not asked for.
#[tokio::test]
async fn no_answer_misses_or_doubles_a_like_while_many_are_counted() {
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    let (asked, acknowledged) = (AtomicU64::new(0), AtomicU64::new(0));
    let told: Vec<bool> = stream::iter(0..1_500)
        .map(|user| {
            let (api, post, asked, acknowledged) = (&api, &post, &asked, &acknowledged);
            async move {
                let least = acknowledged.load(Ordering::SeqCst) + 1;
                asked.fetch_add(1, Ordering::SeqCst);
                let answer = api.like(&format!("user{user}"), post).await;
                acknowledged.fetch_add(1, Ordering::SeqCst);
                let most = asked.load(Ordering::SeqCst);
                let count = answer.json["count"].as_u64();
                let exact = count.is_some_and(|count| (least..=most).contains(&count));
                let stale = answer.json["stale"].as_bool().expect("a flag");
                assert!(exact || stale, "{least} to {most}: {}", answer.json);
                !stale
            }
        })
        .buffer_unordered(16)
        .collect()
        .await;
    assert_most(told.iter().filter(|exact| **exact).count(), told.len());
    assert_eq!(oracle.agrees(&[&post]).await, [1_500]);
}

/// Nobody here knows by which transaction the edge came: it was written elsewhere.
#[tokio::test]
async fn a_repeat_of_a_like_that_was_written_elsewhere_includes_it_or_is_stale() {
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    let mut conn = oracle.mysql().await;
    for n in 0..50 {
        conn.exec_drop(INSERT, (format!("user{n}"), &post)).await.expect("MySQL takes it");
        let answer = api.like(&format!("user{n}"), &post).await;
        assert_eq!(answer.json["changed"], false);
        let count = answer.json["count"].as_u64();
        assert!(
            count == Some(n + 1)
                || answer.json["stale"] == true && count.is_none_or(|count| count >= 1),
            "{n}: {answer:?}"
        );
    }
    // Once it is counted, it is known.
    drain().await;
    api.like("user49", &post).await;
    eventually("it is exact", LIMIT, async || {
        let answer = api.like("user49", &post).await;
        (answer.json["stale"] == false && answer.json["count"] == 50).then_some(())
    })
    .await;
}

/// A post that three others like, and that is counted.
async fn liked_by_three(api: &Api, oracle: &Oracle) -> String {
    let post = fresh("post");
    for user in ["ann", "ben", "cem"] {
        assert_eq!(api.like(user, &post).await.status, 200);
    }
    assert_eq!(oracle.agrees(&[&post]).await, [3]);
    post
}

#[tokio::test]
async fn an_unlike_of_what_was_liked_elsewhere_a_moment_ago_is_exact_or_stale() {
    let (api, oracle) = (Api::new(), Oracle::new());
    let post = liked_by_three(&api, &oracle).await;
    let mut conn = oracle.mysql().await;
    for n in 0..30 {
        let user = format!("user{n}");
        conn.exec_drop(INSERT, (&user, &post)).await.expect("MySQL takes it");
        let answer = api.unlike(&user, &post).await;
        assert_eq!(answer.json["changed"], true);
        is_exact(&answer, 3);
    }
    assert_eq!(oracle.agrees(&[&post]).await, [3]);
}

/// The unlike is taken off a count that may not have its like: the next caller must not pay for it.
#[tokio::test]
async fn somebody_elses_doubtful_unlike_makes_no_other_answer_wrong() {
    let (api, oracle) = (Api::new(), Oracle::new());
    let post = liked_by_three(&api, &oracle).await;
    let mut conn = oracle.mysql().await;
    for n in 0..20 {
        let user = format!("user{n}");
        conn.exec_drop(INSERT, (&user, &post)).await.expect("MySQL takes it");
        let other = format!("other{n}");
        let (unlike, like) = tokio::join!(api.unlike(&user, &post), api.like(&other, &post));
        assert_eq!(unlike.json["changed"], true);
        // Its own like, and those before it; the one that is taken back may still be in it.
        let count = like.json["count"].as_u64().expect("a count");
        let right = (n + 4..=n + 5).contains(&count);
        assert!(right || like.json["stale"] == true, "{n}: {like:?}");
    }
    assert_eq!(oracle.agrees(&[&post]).await, [23]);
}

/// Liked here, taken back and given again elsewhere, and repeated or taken back here.
#[tokio::test]
async fn an_edge_that_was_flipped_to_and_fro_elsewhere_is_exact_or_stale() {
    let (api, oracle) = (Api::new(), Oracle::new());
    let post = liked_by_three(&api, &oracle).await;
    let mut conn = oracle.mysql().await;
    for n in 0..8 {
        let user = fresh("user");
        is_exact(&api.like(&user, &post).await, 4);
        let delete = "DELETE FROM post_likes WHERE user_id = ? AND post_id = ?";
        conn.exec_drop(delete, (&user, &post)).await.expect("MySQL takes it");
        drain().await;
        conn.exec_drop(INSERT, (&user, &post)).await.expect("MySQL takes it");
        if n % 2 == 0 {
            is_exact(&api.like(&user, &post).await, 4);
        }
        is_exact(&api.unlike(&user, &post).await, 3);
    }
    assert_eq!(oracle.agrees(&[&post]).await, [3]);
}

/// A double tap, or a repeat on another connection.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_one_edge_that_race_never_count_it_twice() {
    let (api, post) = (Api::new(), fresh("post"));
    let clients = (0..16).map(|client| {
        let (api, post) = (api.clone(), post.clone());
        tokio::spawn(async move {
            let mut random = StdRng::seed_from_u64(client);
            for _ in 0..15 {
                let like = random.random_bool(0.5);
                let answer = api.try_write("one-user", &post, like).await.expect("it answers");
                let (count, stale) = (&answer.json["count"], answer.json["stale"] == true);
                let one_user = count.as_u64().is_some_and(|count| count <= 1);
                let own = !like || *count == 1;
                assert!(stale || one_user && own, "{answer:?}");
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.expect("each answer is right");
    }
}

/// W9, and what the next answer makes of it: the caller is gone when MySQL commits.
#[tokio::test]
async fn a_like_whose_caller_hung_up_is_known_when_it_is_taken_back() {
    let (api, oracle, user) = (Api::new(), Oracle::new(), fresh("user"));
    let post = liked_by_three(&api, &oracle).await;
    // Somebody else inserts the same row, and thinks better of it: until then the like waits.
    let mut other = oracle.mysql().await;
    other.query_drop("START TRANSACTION").await.expect("MySQL answers");
    other.exec_drop(INSERT, (&user, &post)).await.expect("MySQL takes it");
    let like = reqwest::Client::new()
        .put(format!("{}/v1/posts/{post}/like", setting("WRITE_API_URL")))
        .bearer_auth(setting("SERVICE_TOKEN"))
        .header("X-User-Id", &user)
        .timeout(Duration::from_millis(500));
    assert!(like.send().await.expect_err("nobody answers so soon").is_timeout());
    other.query_drop("ROLLBACK").await.expect("MySQL answers");

    eventually("the like is there", LIMIT, async || api.liked(&user, &post).await.then_some(()))
        .await;
    let answer = api.unlike(&user, &post).await;
    assert_eq!(answer.json["changed"], true);
    is_exact(&answer, 3);
    assert_eq!(oracle.agrees(&[&post]).await, [3]);
}
