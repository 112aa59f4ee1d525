//! MySQL, MongoDB or Kafka is away: what does not need it goes on, and everything is as before once it is back.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use likewise_tests::{
    Answer, Api, Heard, Oracle, end, eventually, fresh, is_gone, lives, metric, pid_of, signal,
    start_what_is_missing, start_with,
};
use reqwest::Method;
use serde_json::Value;
use tokio::sync::MutexGuard;
use tokio::time::timeout;

use crate::STACK;

const LIMIT: Duration = Duration::from_secs(60);

/// The stack for this test alone, whole, whatever the one before left of it.
async fn whole_stack() -> MutexGuard<'static, ()> {
    let held = STACK.lock().await;
    for server in ["mongodb", "mysql"] {
        if lives(&pid_of(server)) {
            signal(server, "CONT").await;
        }
    }
    start_what_is_missing().await;
    held
}

async fn reads() -> f64 {
    metric("READ_API", "likewise_count_reads_total").await
}

#[track_caller]
fn assert_away(answer: &Answer) {
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.headers.contains_key("retry-after"), "{answer:?}");
}

/// R1: with a cold cache, and with MongoDB gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_readers_cost_mongodb_one_query_and_wait_for_nothing_while_it_is_gone() {
    let _stack = whole_stack().await;
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    api.like("ann", &post).await;
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
    // A count is kept for a second, and this one is cold.
    let cold = fresh("post");
    let (before, started) = (reads().await, Instant::now());
    let answers = join_all((0..1000).map(|_| api.count(&cold))).await;
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.json["count"] == 0));
    let most = 1.0 + started.elapsed().as_secs_f64().floor();
    let cost = reads().await - before;
    assert!(cost <= most, "{cost} queries in {:?}", started.elapsed());
    println!("1,000 reads: {cost} queries in {:?}", started.elapsed());

    end("mongodb", "KILL").await;
    let unknown = fresh("post");
    for round in ["at once", "later"] {
        let started = Instant::now();
        let posts = [&post, &unknown];
        let answers = join_all((0..1000).map(|n| api.count(posts[n % 2]))).await;
        println!("1,000 reads without MongoDB, {round}: {:?}", started.elapsed());
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
        for pair in answers.chunks(2) {
            assert_eq!(pair[0].json["count"], 1, "{:?}", pair[0]);
            // What was read less than a second ago is as good as ever.
            let stale = pair[0].json["stale"] == true;
            assert!(stale || round == "at once", "{:?}", pair[0]);
            assert_away(&pair[1]);
        }
        eventually("the count is old", LIMIT, async || {
            (api.count(&post).await.json["stale"] == true).then_some(())
        })
        .await;
    }
    start_what_is_missing().await;
    assert_eq!(oracle.agrees(&[&post, &unknown]).await, [1, 0]);
}

/// R3
#[tokio::test(flavor = "multi_thread")]
async fn likes_and_hearts_go_on_without_mongodb() {
    let _stack = whole_stack().await;
    let (api, oracle, post, unknown) = (Api::new(), Oracle::new(), fresh("post"), fresh("post"));
    api.like("ann", &post).await;
    let mut listener = api.listen(&post).await;
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
    let nobody = format!("W/v1/users/{}/likes", fresh("user"));
    let asked = api.as_service(Method::DELETE, &nobody, &[]).await;
    let deletion = asked.json["id"].as_str().expect("a receipt");
    for how in ["KILL", "STOP"] {
        if how == "KILL" {
            end("mongodb", "KILL").await
        } else {
            signal("mongodb", how).await
        };
        // What was read a moment ago is as good as ever.
        eventually("the counts are known to be old", LIMIT, async || {
            (api.like("ann", &post).await.json["stale"] == true).then_some(())
        })
        .await;
        for round in 0..20 {
            let started = Instant::now();
            let liked = api.like(&format!("{how}-{round}"), &post).await;
            let told = (liked.status.as_u16(), &liked.json["changed"], &liked.json["stale"]);
            assert_eq!(told, (200, &true.into(), &true.into()), "{liked:?}");
            // The last known one, and what was written since.
            assert!(liked.json["count"].as_u64() > Some(round + 1), "{liked:?}");
            let waited = started.elapsed();
            assert!(waited < Duration::from_secs(4), "a like took {waited:?}");
            assert!(api.liked(&format!("{how}-{round}"), &post).await);
        }
        let liked = api.like(how, &unknown).await;
        let told = (liked.status.as_u16(), &liked.json["stale"]);
        assert_eq!(told, (200, &true.into()), "{liked:?}");
        assert!(how == "STOP" || liked.json["count"] == Value::Null, "{liked:?}");
        let receipt = api.as_service(Method::GET, &format!("W/v1/deletions/{deletion}"), &[]).await;
        let told = (receipt.status.as_u16(), &receipt.json["counted"]);
        assert_eq!(told, (200, &Value::Null), "{receipt:?}");
        let stale = timeout(LIMIT, listener.hears(|told| told["stale"] == true)).await;
        stale.expect("a listener is told");
        if how == "STOP" {
            signal("mongodb", "CONT").await;
        }
        start_what_is_missing().await;
        let likes = if how == "KILL" { 21 } else { 41 };
        assert_eq!(oracle.agrees(&[&post]).await, [likes]);
        let fresh = listener.hears(|told| told["stale"] == false && told["count"] == likes);
        timeout(LIMIT, fresh).await.expect("the listener is told");
    }
    assert_eq!(oracle.agrees(&[&unknown]).await, [2]);
}

/// R4
#[tokio::test(flavor = "multi_thread")]
async fn counts_go_on_without_mysql_and_likes_say_when_to_come_back() {
    let _stack = whole_stack().await;
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    api.like("ann", &post).await;
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
    for how in ["KILL", "STOP"] {
        if how == "KILL" {
            end("mysql", "KILL").await
        } else {
            signal("mysql", how).await
        };
        let started = Instant::now();
        let counts = join_all((0..100).map(|_| api.count(&post))).await;
        assert!(counts.iter().all(|count| count.status == 200 && count.json["count"] == 1));
        let page = api.read(&format!("/v1/posts/likes?ids={post}"), Some("ann")).await;
        let item = &page.json["items"][0];
        assert_eq!((&item["count"], &item["liked_by_me"]), (&1.into(), &Value::Null), "{page:?}");
        assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
        let started = Instant::now();
        assert_away(&api.like("ben", &post).await);
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
        if how == "STOP" {
            signal("mysql", "CONT").await;
        }
        start_what_is_missing().await;
        eventually("likes are taken again", LIMIT, async || {
            (api.like("ann", &post).await.status == 200).then_some(())
        })
        .await;
        // What was refused may have taken effect: nobody knows before it is repeated.
        api.unlike("ben", &post).await;
        assert_eq!(oracle.agrees(&[&post]).await, [1]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_listeners_cost_a_query_a_tick_and_let_the_role_end() {
    let _stack = whole_stack().await;
    // Long enough that nothing ends because its time is over.
    start_with(&[("LIKEWISE_SHUTDOWN_GRACE_MS", "60000")]).await;
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    let (before, started) = (reads().await, Instant::now());
    let mut listeners = join_all((0..1000).map(|_| api.listen(&post))).await;
    api.like("ann", &post).await;
    let hearing =
        join_all(listeners.iter_mut().map(|listener| listener.hears(|told| told["count"] == 1)));
    timeout(LIMIT, hearing).await.expect("each is told");
    let ticks = started.elapsed().as_secs_f64() * 2.0;
    let cost = reads().await - before;
    assert!(cost <= ticks + 3.0, "{cost} queries in {ticks} ticks");
    println!("1,000 listeners: {cost} queries in {:?}", started.elapsed());

    let pid = pid_of("read-api");
    let started = Instant::now();
    signal("read-api", "TERM").await;
    let ends =
        listeners.iter_mut().map(async |listener| while listener.next().await != Heard::End {});
    timeout(LIMIT, join_all(ends)).await.expect("every stream ends");
    is_gone(&pid).await;
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    start_what_is_missing().await;
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
}

/// Callers use MySQL and MongoDB; the log stands between the two, and only how fresh a count is depends on it.
#[tokio::test(flavor = "multi_thread")]
async fn without_kafka_every_call_answers_and_as_of_stands() {
    let _stack = whole_stack().await;
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    assert_eq!(api.like("ann", &post).await.status, 200);
    assert_eq!(oracle.agrees(&[&post]).await, [1]);

    end("kafka", "KILL").await;
    let liked = api.like("bob", &post).await;
    assert_eq!((liked.status.as_u16(), &liked.json["changed"]), (200, &true.into()), "{liked:?}");
    assert_eq!(api.unlike("ann", &post).await.status, 200);
    assert!(api.liked("bob", &post).await);
    let as_of = async || {
        let count = api.count(&post).await;
        assert_eq!(count.status, 200, "{count:?}");
        count.json["as_of"].clone()
    };
    let written_at = api.like("cid", &post).await.json["written_at"].clone();
    let standing = as_of().await;
    assert!(standing.as_str() < written_at.as_str(), "{standing} and {written_at}");

    start_what_is_missing().await;
    assert_eq!(oracle.agrees(&[&post]).await, [2]);
    let caught_up = as_of().await;
    assert!(caught_up.as_str() >= written_at.as_str(), "{caught_up} and {written_at}");
}
