//! Sequence numbers, and what is left behind by them.

use std::time::Duration;

use futures_util::future::join_all;
use likewise_core::{PostId, Seq, UserId};
use likewise_mysql::Mysql;

use crate::schema::Schema;

/// A request: like or unlike, and its number, 0 for none.
type Request = (bool, i64);
/// What it answers: `liked` and `changed`.
type Told = (bool, bool);
/// What it leaves: `liked` and `seq`.
type Row = Option<(bool, Option<i64>)>;

const LIKE: bool = true;
const UNLIKE: bool = false;

async fn send(mysql: &Mysql, user: &str, (like, seq): Request) -> Told {
    let (user, post) = (UserId::from_log(user), PostId::from_log("p"));
    let seq = Seq::parse(&seq.to_string());
    let written = match like {
        LIKE => mysql.like(&user, &post, seq).await,
        UNLIKE => mysql.unlike(&user, &post, seq).await,
    };
    let written = written.expect("it writes");
    (written.liked, written.changed)
}

/// W7
#[tokio::test]
async fn the_higher_number_stands_whichever_arrives_last() {
    let (schema, mysql) = Schema::migrated().await;
    let (yes, no) = ((true, true), (false, true));
    let (still, still_not) = ((true, false), (false, false));
    let histories: [&[(Request, Told, Row)]; 7] = [
        // A late unlike loses; the next unlike wins; a late like loses.
        &[
            ((LIKE, 5), yes, Some((true, Some(5)))),
            ((UNLIKE, 3), still, Some((true, Some(5)))),
            ((UNLIKE, 6), no, Some((false, Some(6)))),
            ((LIKE, 5), still_not, Some((false, Some(6)))),
            ((LIKE, 6), still_not, Some((false, Some(6)))),
            ((LIKE, 7), yes, Some((true, Some(7)))),
        ],
        // Equal ones, repeated or contrary, change nothing.
        &[
            ((LIKE, 5), yes, Some((true, Some(5)))),
            ((LIKE, 5), still, Some((true, Some(5)))),
            ((UNLIKE, 5), still, Some((true, Some(5)))),
        ],
        // The row had no number before.
        &[
            ((LIKE, 0), yes, Some((true, None))),
            ((LIKE, 2), still, Some((true, Some(2)))),
            ((UNLIKE, 1), still, Some((true, Some(2)))),
        ],
        &[
            ((LIKE, 0), yes, Some((true, None))),
            ((UNLIKE, 6), no, Some((false, Some(6)))),
            ((LIKE, 5), still_not, Some((false, Some(6)))),
        ],
        // There was no row: an unlike leaves one, for what comes late.
        &[
            ((UNLIKE, 6), still_not, Some((false, Some(6)))),
            ((LIKE, 5), still_not, Some((false, Some(6)))),
            ((UNLIKE, 8), still_not, Some((false, Some(8)))),
            ((LIKE, 7), still_not, Some((false, Some(8)))),
            ((LIKE, i64::MAX), yes, Some((true, Some(i64::MAX)))),
        ],
        // Without a number the last to arrive wins, and the row keeps its number.
        &[
            ((LIKE, 5), yes, Some((true, Some(5)))),
            ((UNLIKE, 0), no, Some((false, Some(5)))),
            ((UNLIKE, 0), still_not, Some((false, Some(5)))),
            ((LIKE, 4), still_not, Some((false, Some(5)))),
            ((LIKE, 0), yes, Some((true, Some(5)))),
            ((LIKE, 0), still, Some((true, Some(5)))),
        ],
        // Without any there is nothing to remember.
        &[
            ((UNLIKE, 0), still_not, None),
            ((LIKE, 0), yes, Some((true, None))),
            ((UNLIKE, 0), no, None),
        ],
    ];
    for (number, history) in histories.iter().enumerate() {
        let user = format!("user{number}");
        for (step, (request, told, row)) in history.iter().enumerate() {
            let at = format!("history {number}, step {step}");
            assert_eq!(send(&mysql, &user, *request).await, *told, "{at}");
            let rows: Vec<(bool, Option<i64>)> = schema
                .query(&format!("SELECT liked, seq FROM post_likes WHERE user_id = '{user}'"))
                .await;
            assert_eq!(rows.first(), row.as_ref(), "{at}");
        }
    }
    schema.drop().await;
}

/// A user sees the time at which they began to like the post, whatever is repeated; the row of one that is
/// not liked is kept from the last that was heard of it.
#[tokio::test]
async fn a_repeat_keeps_the_time_of_the_like_and_renews_that_of_what_is_remembered() {
    let (schema, mysql) = Schema::migrated().await;
    let age = "UPDATE post_likes SET liked_at = '2020-01-01'";
    let is_old = "SELECT liked_at = '2020-01-01' FROM post_likes";
    for (request, stays) in [
        ((LIKE, 1), false),
        ((LIKE, 0), true),
        ((LIKE, 2), true),
        ((UNLIKE, 2), true),
        ((UNLIKE, 3), false),
        ((UNLIKE, 3), true),
        ((UNLIKE, 4), false),
        ((UNLIKE, 0), true),
        ((LIKE, 0), false),
        ((UNLIKE, 0), false),
    ] {
        send(&mysql, "ann", request).await;
        assert_eq!(schema.query::<bool>(is_old).await, [stays], "{request:?}");
        schema.query::<u8>(age).await;
    }
    schema.drop().await;
}

/// Each answer says whether *it* flipped the edge: so likes and unlikes that changed something alternate,
/// and a number that only rises flips nothing.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_requests_at_once_exactly_those_that_flip_the_edge_say_so() {
    let (schema, mysql) = Schema::migrated().await;
    let post = PostId::from_log("p");
    for round in 0..40_i64 {
        let user = format!("user{round}");
        let requests: Vec<Request> = (0..24)
            .map(|n| {
                let seq = if round % 4 == 3 && n % 3 == 0 { 0 } else { 1 + (n * 7 + round) % 24 };
                // Some rounds only like: then one alone may flip it.
                (round % 4 == 0 || (n + round) % 2 == 0, seq)
            })
            .collect();
        let told = join_all(requests.iter().map(|request| send(&mysql, &user, *request))).await;
        let flips = |like| {
            let told = requests.iter().zip(&told).filter(|((is, _), _)| *is == like);
            told.filter(|(_, (_, changed))| *changed).count()
        };
        let liked = mysql.liked(&UserId::from_log(&user), &post).await.expect("it reads");
        assert_eq!(flips(LIKE), flips(UNLIKE) + usize::from(liked), "{requests:?} {told:?}");
        if round % 4 != 3 {
            // Each request has a number of its own: the highest stands.
            let highest = requests.iter().max_by_key(|(_, seq)| *seq).expect("some");
            assert_eq!(liked, highest.0, "{requests:?} {told:?}");
        }
        if round % 4 == 0 {
            assert_eq!(flips(LIKE), 1, "{told:?}");
        }
        for ((like, _), (liked, changed)) in requests.iter().zip(&told) {
            assert!(!changed || liked == like, "what was flipped is as it was asked");
        }
    }
    schema.drop().await;
}

#[tokio::test]
async fn a_sweep_takes_what_is_old_and_not_liked_and_nothing_else() {
    let (schema, mysql) = Schema::migrated().await;
    schema
        .query::<u8>(
            "INSERT INTO post_likes (user_id, post_id, liked, seq, liked_at) VALUES
             ('a', 'old', FALSE, 3, UTC_TIMESTAMP(6) - INTERVAL 61 SECOND),
             ('b', 'old', FALSE, NULL, UTC_TIMESTAMP(6) - INTERVAL 1 YEAR),
             ('c', 'old', FALSE, 9, UTC_TIMESTAMP(6) - INTERVAL 62 SECOND),
             ('d', 'young', FALSE, 4, UTC_TIMESTAMP(6) - INTERVAL 30 SECOND),
             ('e', 'liked', TRUE, 5, UTC_TIMESTAMP(6) - INTERVAL 1 YEAR),
             ('f', 'liked', TRUE, NULL, UTC_TIMESTAMP(6) - INTERVAL 1 YEAR)",
        )
        .await;
    let minute = Duration::from_secs(60);
    // Two instances at once take each row once.
    let (one, two) = tokio::join!(mysql.sweep_edges(minute, 2), mysql.sweep_edges(minute, 2));
    assert_eq!(one.expect("it sweeps") + two.expect("it sweeps"), 3);
    assert_eq!(mysql.sweep_edges(minute, 2).await.expect("it sweeps"), 0);
    let left: Vec<String> = schema.query("SELECT user_id FROM post_likes ORDER BY user_id").await;
    assert_eq!(left, ["d", "e", "f"]);
    schema.drop().await;
}
