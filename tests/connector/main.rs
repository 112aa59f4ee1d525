//! The connector's link to MySQL is cut: its task says RUNNING and delivers nothing, for ever, until
//! the reconciler starts it again.

use std::time::{Duration, Instant};

use likewise_tests::{Api, Oracle, fresh, metric, setting};
use mysql_async::prelude::Queryable as _;

/// What the reconciler promises, from the cut on.
const FLOWS_AGAIN_WITHIN: Duration = Duration::from_secs(20);

async fn restarts() -> f64 {
    metric("RECONCILER", "likewise_connector_restarts_total").await
}

#[tokio::test]
async fn a_silent_connector_is_started_again_and_no_like_is_lost() {
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    api.like("before", &post).await;
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
    let before = restarts().await;

    let admin = mysql_async::Pool::new(setting("MYSQL_ADMIN_URL").as_str());
    let mut conn = admin.get_conn().await.expect("MySQL answers");
    let threads: Vec<u64> = conn
        .query(
            "SELECT ID FROM performance_schema.processlist
             WHERE USER = 'debezium' AND COMMAND LIKE 'Binlog Dump%'",
        )
        .await
        .expect("it lists threads");
    assert!(!threads.is_empty(), "nobody reads the binlog");
    for thread in threads {
        conn.query_drop(format!("KILL {thread}")).await.expect("it is cut");
    }
    let cut = Instant::now();
    assert_eq!(api.like("after", &post).await.status, 200);
    while api.count(&post).await.json["count"] != 2 {
        assert!(cut.elapsed() < FLOWS_AGAIN_WITHIN, "the like does not arrive");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("likes flowed again {:.1} s after the cut", cut.elapsed().as_secs_f64());
    assert!(restarts().await > before, "it came back by itself: the rare path was not reached");
    assert_eq!(oracle.agrees(&[&post]).await, [2]);
}
