//! From a like's answer to its count being readable, with the part that Debezium and Kafka take.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use likewise_tests::{Api, Log, eventually, fresh, start_what_is_missing, start_with};
use rdkafka::Message as _;

const LIKES: usize = 300;
/// Between two reads of a count: far below what is measured.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Between likes, so that each is alone in the system.
const APART: Duration = Duration::from_millis(15);

/// A plain read-committed consumer stands beside the aggregator: what it sees later than the answer
/// is Debezium's and Kafka's part, the rest is ours. Both are of the same like.
#[tokio::test(flavor = "multi_thread")]
async fn a_like_is_readable_soon_after_its_answer() {
    // What was counted is to be measured, not for how long a count is kept.
    start_with(&[("LIKEWISE_COUNT_CACHE_MS", "0")]).await;
    let (api, log) = (Api::new(), Log::at_end().await);
    let arrivals: Arc<Mutex<HashMap<Vec<u8>, Instant>>> = Arc::default();
    let seen = arrivals.clone();
    let watching = tokio::spawn(async move {
        loop {
            let message = log.next().await;
            let key = message.key().unwrap_or_default().to_vec();
            seen.lock().expect("the lock").entry(key).or_insert_with(Instant::now);
        }
    });

    let histogram = || Histogram::<u64>::new(3).expect("a histogram");
    let (mut whole, mut theirs, mut ours) = (histogram(), histogram(), histogram());
    for _ in 0..LIKES {
        let post = fresh("post");
        let answer = api.like("ann", &post).await;
        let answered = Instant::now();
        assert_eq!(answer.status, 200, "{answer:?}");
        while api.count(&post).await.json["count"] != 1 {
            assert!(answered.elapsed() < Duration::from_secs(30), "the count does not come");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let readable = Instant::now();
        let arrived = eventually("the record", Duration::from_secs(30), async || {
            arrivals.lock().expect("the lock").get(post.as_bytes()).copied()
        })
        .await;
        let us =
            |duration: Duration| u64::try_from(duration.as_micros()).expect("it is short").max(1);
        whole.record(us(readable - answered)).expect("it resizes");
        theirs.record(us(arrived.saturating_duration_since(answered))).expect("it resizes");
        ours.record(us(readable.saturating_duration_since(arrived))).expect("it resizes");
        tokio::time::sleep(APART).await;
    }
    watching.abort();
    start_what_is_missing().await;

    for (what, histogram) in [
        ("like to readable", &whole),
        ("Debezium and Kafka", &theirs),
        ("aggregator and read API", &ours),
    ] {
        let ms = |quantile| {
            Duration::from_micros(histogram.value_at_quantile(quantile)).as_secs_f64() * 1e3
        };
        println!("{what:<24} p50 {:>7.1} ms   p99 {:>7.1} ms", ms(0.5), ms(0.99));
    }
    assert!(
        ours.value_at_quantile(0.5) < theirs.value_at_quantile(0.5),
        "ours adds less than theirs, at the median"
    );
}
