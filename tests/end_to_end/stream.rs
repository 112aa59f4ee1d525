//! A count as it changes.

use std::time::{Duration, Instant};

use likewise_tests::{Api, Heard, fresh};
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_listener_hears_the_count_now_and_each_change_soon() {
    let (api, post) = (Api::new(), fresh("post"));
    let mut listener = api.listen(&post).await;
    let Heard::Event(name, first) = listener.next().await else { panic!("no event") };
    assert_eq!((name.as_str(), &first["count"]), ("count", &0.into()));
    assert_eq!(first["post_id"], post.as_str());
    for users in 1..=3_u64 {
        api.like(&format!("user{users}"), &post).await;
        let heard = timeout(LIMIT, listener.hears(|told| told["count"] == users)).await;
        assert!(heard.expect("it is told")["as_of"].is_string());
    }
    // Whoever comes later hears the count of now first.
    let Heard::Event(_, first) = api.listen(&post).await.next().await else { panic!("no event") };
    assert_eq!(first["count"], 3);
}

#[tokio::test]
async fn many_changes_are_told_at_most_twice_a_second() {
    let (api, post) = (Api::new(), fresh("post"));
    let mut listener = api.listen(&post).await;
    let started = Instant::now();
    let hearing = tokio::spawn(async move {
        let mut events = 0_u32;
        listener
            .hears(|told| {
                events += 1;
                told["count"] == 300
            })
            .await;
        events
    });
    for user in 0..300 {
        api.like(&format!("user{user}"), &post).await;
    }
    let events = timeout(LIMIT, hearing).await.expect("it is told").expect("no panic");
    let most = started.elapsed().as_secs_f64() * 2.0 + 2.0;
    assert!(f64::from(events) <= most, "{events} events in {:?}", started.elapsed());
}

#[tokio::test]
async fn a_stream_without_news_shows_that_it_is_alive() {
    let mut listener = Api::new().listen(&fresh("post")).await;
    let alive = async {
        loop {
            match listener.next().await {
                // The count now; and again, if it was stale for a moment.
                Heard::Event(_, told) => assert_eq!(told["count"], 0),
                heard => return heard,
            }
        }
    };
    let heard = timeout(2 * LIMIT, alive).await.expect("a comment within 15 s");
    assert_eq!(heard, Heard::Comment);
}
