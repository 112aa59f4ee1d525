//! The count in the answer to a write: it includes the caller's own like, once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use likewise_tests::{Answer, Api, Oracle, drain, eventually, fresh};

const LIMIT: Duration = Duration::from_secs(60);

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
    use mysql_async::prelude::Queryable as _;
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    let mut conn = oracle.mysql().await;
    for n in 0..50 {
        let insert = "INSERT INTO post_likes (user_id, post_id, liked, liked_at) VALUES (?, ?, TRUE, UTC_TIMESTAMP(6))";
        conn.exec_drop(insert, (format!("user{n}"), &post)).await.expect("MySQL takes it");
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
