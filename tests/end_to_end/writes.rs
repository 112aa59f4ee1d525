//! Likes and unlikes, alone and many at once.

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use likewise_tests::{Api, Log, Oracle, eventually, fresh, setting};
use mysql_async::prelude::Queryable as _;
use rdkafka::Message as _;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

#[tokio::test]
async fn a_like_is_counted_and_an_unlike_takes_it_back() {
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    let liked = api.like("ann", &post).await;
    assert_eq!((&liked.json["liked"], &liked.json["changed"]), (&true.into(), &true.into()));
    assert_eq!(liked.json["post_id"], post.as_str());
    assert!(
        liked.json["written_at"].as_str().is_some_and(|at| at.len() == 27 && at.ends_with('Z'))
    );
    api.like("ben", &post).await;
    assert_eq!(oracle.agrees(&[&post]).await, [2]);
    assert!(api.liked("ann", &post).await);

    api.unlike("ann", &post).await;
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
    assert!(!api.liked("ann", &post).await);
}

#[tokio::test]
async fn a_post_that_nobody_liked_has_count_0() {
    let post = fresh("post");
    let answer = Api::new().count(&post).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        (&answer.json["count"], &answer.json["post_id"]),
        (&0.into(), &post.as_str().into())
    );
}

/// W1
#[tokio::test]
async fn of_50_likes_of_one_edge_at_once_one_changes_it() {
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    let answers = join_all((0..50).map(|_| api.like("ann", &post))).await;
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    let changed = answers.iter().filter(|answer| answer.json["changed"] == true).count();
    assert_eq!(changed, 1);
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
}

/// W2
#[tokio::test]
async fn a_repeat_succeeds_and_changes_nothing() {
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    let answers = [
        api.like("ann", &post).await,
        api.like("ann", &post).await,
        api.unlike("ann", &post).await,
        api.unlike("ann", &post).await,
    ];
    let told: Vec<_> = answers
        .iter()
        .map(|answer| (answer.json["liked"].as_bool(), answer.json["changed"].as_bool()))
        .collect();
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(told, [(yes, yes), (yes, no), (no, yes), (no, no)]);
    assert_eq!(oracle.agrees(&[&post]).await, [0]);
}

/// W3
#[tokio::test]
async fn a_thousand_users_of_one_post_are_a_thousand_likes() {
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    let statuses: Vec<_> = stream::iter(0..1000)
        .map(|user| {
            let (api, post) = (&api, &post);
            async move { api.like(&format!("user{user}"), post).await.status }
        })
        .buffer_unordered(64)
        .collect()
        .await;
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    assert_eq!(oracle.agrees(&[&post]).await, [1000]);
}

/// W4
#[tokio::test]
async fn first_likes_of_adjacent_posts_in_opposite_orders_meet_no_deadlock() {
    let (api, oracle, base) = (Api::new(), Oracle::new(), fresh("adjacent"));
    let posts: Vec<String> = (0..2000).map(|n| format!("{base}-{n:04}")).collect();
    let client = |number: usize| {
        let (api, posts) = (&api, &posts);
        async move {
            let mut failures = Vec::new();
            for pair in posts.chunks(2) {
                let order = if number.is_multiple_of(2) { [0, 1] } else { [1, 0] };
                for at in order {
                    let answer = api.like(&format!("client{number}"), &pair[at]).await;
                    if answer.status != 200 {
                        failures.push(answer);
                    }
                }
            }
            failures
        }
    };
    let failures: Vec<_> = join_all((0..16).map(client)).await.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{} failed, first {:?}", failures.len(), failures[0]);
    let some: Vec<&str> = posts.iter().step_by(97).map(String::as_str).collect();
    assert!(oracle.agrees(&some).await.iter().all(|count| *count == 16));
    let mut conn = oracle.mysql().await;
    let rows: Option<u64> = conn
        .exec_first("SELECT COUNT(*) FROM post_likes WHERE post_id LIKE ?", (format!("{base}-%"),))
        .await
        .expect("MySQL counts");
    assert_eq!(rows, Some(16 * 2000));
}

/// W8
#[tokio::test]
async fn rows_of_an_import_straight_into_mysql_are_counted() {
    let (oracle, base) = (Oracle::new(), fresh("import"));
    let mut conn = oracle.mysql().await;
    let posts: Vec<String> = (0..10).map(|n| format!("{base}-{n}")).collect();
    let mut values = Vec::new();
    for user in 0..1000 {
        for post in &posts {
            // Every 8th row says that the user does not like the post: it is no like.
            let liked = user % 8 != 0;
            values.push(format!("('user{user}', '{post}', {liked}, UTC_TIMESTAMP(6))"));
        }
    }
    for chunk in values.chunks(5000) {
        let sql = format!(
            "INSERT INTO post_likes (user_id, post_id, liked, liked_at) VALUES {}",
            chunk.join(",")
        );
        conn.query_drop(sql).await.expect("MySQL inserts");
    }
    let posts: Vec<&str> = posts.iter().map(String::as_str).collect();
    assert!(oracle.agrees(&posts).await.iter().all(|count| *count == 875));
}

/// The application's account can change rows and nothing else.
#[tokio::test]
async fn the_application_cannot_truncate_or_change_the_schema() {
    let mut conn = Oracle::new().mysql().await;
    for sql in [
        "TRUNCATE TABLE post_likes",
        "DROP TABLE post_recounts",
        "ALTER TABLE post_likes ADD COLUMN x INT",
        "CREATE TABLE likewise.x (id INT)",
    ] {
        let error = conn.query_drop(sql).await.expect_err(sql);
        // ER_TABLEACCESS_DENIED_ERROR
        assert!(
            matches!(&error, mysql_async::Error::Server(server) if server.code == 1142),
            "{error}"
        );
    }
}

/// W5
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_repeats_of_a_like_leave_nothing_behind() {
    let (api, oracle, log, post) = (Api::new(), Oracle::new(), Log::at_end().await, fresh("post"));
    let repeats = stream::iter(0..10_000).map(|_| api.like("ann", &post));
    let changed: usize = repeats
        .buffer_unordered(64)
        .map(|answer| {
            assert_eq!(answer.status, 200, "{answer:?}");
            usize::from(answer.json["changed"] == true)
        })
        .fold(0, async |sum, changed| sum + changed)
        .await;
    assert_eq!(changed, 1);
    api.like("ben", &post).await;
    let users = [log.next_of(&post).await, log.next_of(&post).await].map(|record| {
        let value: Value =
            serde_json::from_slice(record.payload().expect("a value")).expect("JSON");
        value["after"]["user_id"].clone()
    });
    assert_eq!(users, ["ann", "ben"], "the log has more of the first like than one record");
    assert_eq!(oracle.agrees(&[&post]).await, [2]);
}

/// W9: the caller's connection drops between MySQL's commit and the answer, and the caller repeats.
#[tokio::test]
async fn a_like_whose_answer_was_lost_is_one_like_when_it_is_repeated() {
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    let url = setting("WRITE_API_URL");
    let address = url.strip_prefix("http://").expect("an address");
    let mut caller = TcpStream::connect(address).await.expect("it listens");
    let request = format!(
        "PUT /v1/posts/{post}/like HTTP/1.1\r\nHost: likewise\r\nX-User-Id: ann\r\n\
         Authorization: Bearer {}\r\nContent-Length: 0\r\n\r\n",
        setting("SERVICE_TOKEN")
    );
    caller.write_all(request.as_bytes()).await.expect("it is sent");
    eventually("the like is committed", Duration::from_secs(10), async || {
        (oracle.likes(&post).await == 1).then_some(())
    })
    .await;
    drop(caller);
    let repeated = api.like("ann", &post).await;
    assert_eq!((&repeated.json["liked"], &repeated.json["changed"]), (&true.into(), &false.into()));
    assert_eq!(oracle.agrees(&[&post]).await, [1]);
}
