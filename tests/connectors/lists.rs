//! Lists of likes: what a page is, and what it costs.

use std::time::{Duration, Instant};

use likewise_core::{Micros, Place, PostId, UserId};
use likewise_mysql::Mysql;
use likewise_tests::eventually;
use mysql_async::prelude::Queryable as _;

use crate::schema::Schema;

const PAGE: u32 = 21;
const LIMIT: Duration = Duration::from_secs(10);

async fn likers(mysql: &Mysql, post: &str, after: Option<&Place>) -> Vec<Place> {
    mysql.likers_of_post(&PostId::from_log(post), after, PAGE).await.expect("it reads")
}

/// Many likes of one moment, as an import makes them, are told apart by their ids.
#[tokio::test]
async fn pages_follow_each_other_through_likes_of_equal_times() {
    let (schema, mysql) = Schema::migrated().await;
    schema
        .query::<u8>(
            "INSERT INTO post_likes (user_id, post_id, liked, liked_at)
             WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 199)
             SELECT CONCAT(IF(i % 2, 'u', 'U'), i), 'p', i % 10 <> 0,
               '1969-12-31 23:59:59.999999' + INTERVAL i DIV 80 MICROSECOND FROM n",
        )
        .await;
    let expected: Vec<(String, i64)> = schema
        .query(
            "SELECT user_id, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', liked_at) FROM post_likes
             WHERE liked ORDER BY liked_at DESC, user_id DESC",
        )
        .await;
    assert_eq!(expected.len(), 180);
    let mut found: Vec<Place> = Vec::new();
    loop {
        let page = likers(&mysql, "p", found.last()).await;
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    let found: Vec<_> = found.into_iter().map(|Place { liked_at, id }| (id, liked_at)).collect();
    let expected: Vec<_> = expected.into_iter().map(|(id, at)| (id.into(), Micros(at))).collect();
    assert_eq!(found, expected);
    schema.drop().await;
}

/// What MySQL itself counted for each statement of the schema: text, rows read, rows sorted, whether any ran
/// without an index.
async fn statements(schema: &Schema) -> Vec<(String, u64, u64, u64)> {
    schema
        .query(&format!(
            "SELECT DIGEST_TEXT, CAST(CEIL(MAX(SUM_ROWS_EXAMINED / COUNT_STAR)) AS UNSIGNED),
               CAST(SUM(SUM_SORT_ROWS) AS UNSIGNED), CAST(SUM(SUM_NO_INDEX_USED) AS UNSIGNED)
             FROM performance_schema.events_statements_summary_by_digest
             WHERE SCHEMA_NAME = '{}' GROUP BY DIGEST_TEXT",
            schema.name
        ))
        .await
}

/// Asked of the server, of the statements as they ran: neither a sort nor a row beyond the page.
#[tokio::test]
async fn a_page_reads_its_own_rows_from_an_index_and_sorts_nothing() {
    let (schema, mysql) = Schema::migrated().await;
    schema
        .query::<u8>(
            "INSERT INTO post_likes (user_id, post_id, liked, liked_at)
             WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 799)
             SELECT CONCAT('u', n.i), CONCAT('p', m.i), (n.i + m.i) % 5 <> 0, '2026-01-01'
             FROM n JOIN (SELECT 0 AS i UNION SELECT 1 UNION SELECT 2 UNION SELECT 3) AS m",
        )
        .await;
    schema
        .query::<u8>(
            "INSERT INTO post_likes (user_id, post_id, liked, liked_at)
         WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 809)
         SELECT 'u1', CONCAT('p', i), TRUE, '2026-01-01' FROM n",
        )
        .await;
    let user = UserId::from_log("u1");
    let (mut of_user, mut of_post) = (None, None);
    for _ in 0..20 {
        let page = mysql.likes_of_user(&user, of_user.as_ref(), PAGE).await.expect("it reads");
        assert_eq!(page.len(), 21);
        of_user = page.into_iter().last();
        let page = likers(&mysql, "p1", of_post.as_ref()).await;
        assert_eq!(page.len(), 21);
        of_post = page.into_iter().last();
    }
    mysql.sweep_edges(Duration::from_secs(1), 10).await.expect("it sweeps");
    // A statement is counted after its answer was sent.
    let statements = eventually("the last one is counted", LIMIT, async || {
        let statements = statements(&schema).await;
        let swept = statements.iter().any(|(text, ..)| text.starts_with("EXECUTE DELETE"));
        swept.then_some(statements)
    })
    .await;
    let of = |part: &str| {
        let of = statements
            .iter()
            .filter(|(text, ..)| text.starts_with("EXECUTE") && text.contains(part));
        of.collect::<Vec<_>>()
    };
    let (lists, sweeps) = (of("ORDER BY `liked_at` DESC"), of("DELETE"));
    assert_eq!((lists.len(), sweeps.len()), (4, 1), "{statements:#?}");
    for (text, read, sorted, without_index) in lists {
        assert!(*read <= u64::from(PAGE) + 1, "{read} rows for {PAGE}: {text}");
        assert_eq!((*sorted, *without_index), (0, 0), "{text}");
    }
    let (text, read, sorted, without_index) = sweeps[0];
    assert!(*read <= 10 && *sorted == 0 && *without_index == 0, "{read} rows, {sorted}: {text}");
    schema.drop().await;
}

/// P4, the page: in rounds of one small and two large ones, so that whatever else the machine does meets
/// both. The million stands in a schema that no connector reads.
#[tokio::test]
async fn a_page_of_a_million_likers_comes_as_fast_as_one_of_a_few() {
    let (schema, mysql) = Schema::migrated().await;
    let mut conn = schema.conn().await;
    conn.query_drop("SET SESSION cte_max_recursion_depth = 1000000").await.expect("it is set");
    // In the order of the primary key, a few at each moment.
    for (post, likers) in [("small", 60), ("large", 1_000_000)] {
        let sql = format!(
            "INSERT INTO post_likes (user_id, post_id, liked, liked_at)
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {likers})
             SELECT CONCAT('u', LPAD(i, 7, '0')), '{post}', TRUE,
               '2026-01-01' + INTERVAL i DIV 7 MICROSECOND FROM n"
        );
        conn.query_drop(sql).await.expect("it inserts");
    }
    let place = |n: i64| Place {
        liked_at: Micros(1_767_225_600_000_000 + n / 7),
        id: format!("u{n:07}").into(),
    };
    let timed = async |post: &str, after: Option<&Place>| {
        let started = Instant::now();
        assert_eq!(likers(&mysql, post, after).await.len(), 21);
        started.elapsed()
    };
    let (mut small, mut newest, mut middle) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..300 {
        small.push(timed("small", Some(&place(40))).await);
        newest.push(timed("large", None).await);
        // The first read may have to fetch the leaf from the disk.
        let inside = place(500_000 + round * 1000);
        timed("large", Some(&inside)).await;
        middle.push(timed("large", Some(&inside)).await);
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let (small, newest, middle) = (median(&mut small), median(&mut newest), median(&mut middle));
    eprintln!("a page of 21: small {small:?}, newest of a million {newest:?}, middle {middle:?}");
    for large in [newest, middle] {
        assert!(large < 2 * small, "{large:?} against {small:?}");
    }
    schema.drop().await;
}
