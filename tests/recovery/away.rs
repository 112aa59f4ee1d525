//! What callers notice of a part that is away.

use likewise_tests::{Api, Oracle, fresh, pid_of, start_what_is_missing};
use tokio::process::Command;

use crate::STACK;

async fn kill(server: &str) {
    let killed = Command::new("kill").args(["-9", &pid_of(server)]).status().await;
    assert!(killed.expect("kill starts").success());
}

/// Callers use MySQL and MongoDB; the log stands between the two, and only how fresh a count is depends on it.
#[tokio::test(flavor = "multi_thread")]
async fn without_kafka_every_call_answers_and_as_of_stands() {
    let _stack = STACK.lock().await;
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    assert_eq!(api.like("ann", &post).await.status, 200);
    assert_eq!(oracle.agrees(&[&post]).await, [1]);

    kill("kafka").await;
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
