//! Lists over HTTP, walked page by page.

use likewise_tests::{Answer, Api, Oracle, drain, fresh, setting};
use mongodb::bson::{Document, doc};
use mysql_async::prelude::Queryable as _;
use reqwest::Method;
use serde_json::Value;

async fn page(api: &Api, list: &str, query: &str) -> Answer {
    api.as_service(Method::GET, &format!("{list}{query}"), &[]).await
}

/// The ids of a page, and its cursor.
fn read(answer: &Answer, id: &str) -> (Vec<String>, Option<String>) {
    assert_eq!(answer.status, 200, "{answer:?}");
    let items = answer.json["items"].as_array().expect("items");
    let ids = items.iter().map(|item| item[id].as_str().expect("an id").to_owned()).collect();
    for item in items {
        let at = item["liked_at"].as_str().expect("a time");
        assert!(at.len() == 27 && at.ends_with('Z'), "{at}");
    }
    let cursor = &answer.json["next_cursor"];
    assert!(cursor.is_null() || cursor.is_string(), "{cursor}");
    (ids, cursor.as_str().map(str::to_owned))
}

/// What is left of a walk.
async fn rest(api: &Api, list: &str, id: &str, mut cursor: Option<String>) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(at) = cursor {
        let (ids, next) = read(&page(api, list, &format!("?limit=20&cursor={at}")).await, id);
        all.extend(ids);
        cursor = next;
    }
    all
}

/// P1
#[tokio::test]
async fn a_walk_shows_each_like_that_stands_once_whatever_comes_and_goes() {
    let (api, base) = (Api::new(), fresh("p"));
    let user = fresh("user");
    let posts: Vec<String> = (0..60).map(|n| format!("{base}-{n:02}")).collect();
    for post in &posts {
        assert_eq!(api.like(&user, post).await.json["changed"], true);
    }
    let list = format!("W/v1/users/{user}/likes");
    let newest_first: Vec<&String> = posts.iter().rev().collect();
    let (first, cursor) = read(&page(&api, &list, "?limit=20").await, "post_id");
    assert_eq!(first.iter().collect::<Vec<_>>(), newest_first[..20]);

    // Two that were shown, the one that the cursor stands at, and two that are still to come.
    for gone in [3, 7, 19, 20, 45] {
        assert_eq!(api.unlike(&user, newest_first[gone]).await.json["changed"], true);
    }
    for new in 0..3 {
        api.like(&user, &format!("{base}-new{new}")).await;
    }
    let rest = rest(&api, &list, "post_id", cursor).await;
    let expected: Vec<&String> =
        (20..60).filter(|n| ![20, 45].contains(n)).map(|n| newest_first[n]).collect();
    assert_eq!(rest.iter().collect::<Vec<_>>(), expected);

    let (newest, _) = read(&page(&api, &list, "").await, "post_id");
    assert_eq!(newest.len(), 20, "the default");
    assert_eq!(newest[..3], [2, 1, 0].map(|n| format!("{base}-new{n}")));
}

/// P1: the same of a post, whose likers came by an import, all at one moment.
#[tokio::test]
async fn likers_of_one_moment_are_walked_through_each_once() {
    let (api, oracle, post) = (Api::new(), Oracle::new(), fresh("post"));
    let rows: Vec<String> = (0..60)
        .map(|n| format!("('user{n:02}', '{post}', TRUE, '2026-11-01 00:00:00.000001')"))
        .collect();
    let sql = format!(
        "INSERT INTO post_likes (user_id, post_id, liked, liked_at) VALUES {}",
        rows.join(",")
    );
    oracle.mysql().await.query_drop(sql).await.expect("MySQL inserts");
    let list = format!("R/v1/posts/{post}/likers");
    let (first, cursor) = read(&page(&api, &list, "").await, "user_id");
    for gone in ["user59", "user40", "user39", "user10", "user00"] {
        api.unlike(gone, &post).await;
    }
    for new in ["ann", "ben", "zoe"] {
        api.like(new, &post).await;
    }
    let mut walked = first;
    walked.extend(rest(&api, &list, "user_id", cursor).await);
    let expected: Vec<String> =
        (0..60).rev().filter(|n| ![39, 10, 0].contains(n)).map(|n| format!("user{n:02}")).collect();
    assert_eq!(walked, expected);
}

/// P1
#[tokio::test]
async fn exactly_one_page_has_no_next_and_neither_has_an_empty_one() {
    let (api, post) = (Api::new(), fresh("post"));
    let list = format!("R/v1/posts/{post}/likers");
    assert_eq!(read(&page(&api, &list, "").await, "user_id"), (vec![], None));
    for n in 0..20 {
        api.like(&format!("user{n}"), &post).await;
    }
    let (ids, next) = read(&page(&api, &list, "").await, "user_id");
    assert_eq!((ids.len(), next), (20, None));
    let (ids, next) = read(&page(&api, &list, "?limit=19").await, "user_id");
    assert_eq!(ids.len(), 19);
    assert_eq!(rest(&api, &list, "user_id", next).await, ["user0"]);
}

/// P2
#[tokio::test]
async fn a_junk_cursor_or_limit_is_refused_and_never_a_page() {
    let (api, post, user) = (Api::new(), fresh("post"), fresh("user"));
    for n in 0..3 {
        api.like(&format!("user{n}"), &post).await;
        api.like(&user, &format!("{post}-{n}")).await;
    }
    let likers = format!("R/v1/posts/{post}/likers");
    let likes = format!("W/v1/users/{user}/likes");
    let (_, of_post) = read(&page(&api, &likers, "?limit=1").await, "user_id");
    let (_, of_user) = read(&page(&api, &likes, "?limit=1").await, "post_id");
    let (of_post, of_user) = (of_post.expect("more follow"), of_user.expect("more follow"));

    let cut = &of_post[..of_post.len() - 4];
    let changed = {
        let first = if of_post.starts_with('A') { "B" } else { "A" };
        format!("{first}{}", &of_post[1..])
    };
    let junk = ["", "x", "%00", "%FF", "AAAA", cut, &changed, &of_user, &"A".repeat(3000)];
    for cursor in junk {
        let answer = page(&api, &likers, &format!("?cursor={cursor}")).await;
        assert_eq!(answer.status, 400, "{cursor}: {answer:?}");
        let slug = if cursor == "%FF" { "query" } else { "cursor" };
        let kind = answer.json["type"].as_str().expect("a type");
        assert!(kind.starts_with("urn:likewise:problem:invalid-"), "{kind}");
        assert!(slug == "query" || kind.ends_with(slug), "{cursor}: {kind}");
    }
    for (list, cursor) in [
        (format!("R/v1/posts/{}/likers", fresh("post")), &of_post),
        (format!("W/v1/users/{}/likes", fresh("user")), &of_user),
        (likes.clone(), &of_post),
        (format!("W/v1/users/{post}/likes"), &of_post),
    ] {
        let answer = page(&api, &list, &format!("?cursor={cursor}")).await;
        assert_eq!(answer.json["type"], "urn:likewise:problem:invalid-cursor", "{answer:?}");
    }
    for list in [&likers, &likes] {
        for limit in
            ["0", "-1", "101", "1000000000", "99999999999999999999", "x", "", "1.5", "%2B1"]
        {
            let answer = page(&api, list, &format!("?limit={limit}")).await;
            assert_eq!(answer.status, 400, "{answer:?}");
            assert_eq!(answer.json["type"], "urn:likewise:problem:invalid-query", "{limit}");
        }
        for query in ["?limit=1&limit=2", "?x=1", "?cursor=a&cursor=a"] {
            let answer = page(&api, list, query).await;
            assert_eq!(answer.json["type"], "urn:likewise:problem:invalid-query", "{query}");
        }
        for limit in [1, 100] {
            assert_eq!(page(&api, list, &format!("?limit={limit}")).await.status, 200);
        }
    }
}

#[tokio::test]
async fn the_likes_of_a_user_are_not_for_operators_and_its_likers_are_for_any_caller() {
    let (api, post) = (Api::new(), fresh("post"));
    let answer = api.as_operator(Method::GET, "W/v1/users/ann/likes").await;
    assert_eq!(
        (answer.status, answer.content_type.as_str()),
        (403.try_into().expect("a status"), "application/problem+json")
    );
    let likers = format!("R/v1/posts/{post}/likers");
    assert_eq!(api.as_operator(Method::GET, &likers).await.status, 200);
    for list in ["W/v1/users/ann/likes", likers.as_str()] {
        assert_eq!(api.call(Method::GET, list, &[]).await.status, 401);
    }
    for list in ["W/v1/users/a%20b/likes", "R/v1/posts/a%20b/likers"] {
        let answer = page(&api, list, "").await;
        assert_eq!(answer.json["type"], "urn:likewise:problem:invalid-id", "{answer:?}");
    }
}

/// P4, the document: a count is as small for 100,000 likers as for one. (The page of a million is measured by
/// the connector's test, in a schema that need not be counted.)
#[tokio::test]
async fn the_count_of_100_000_likers_is_one_small_document() {
    let (oracle, post) = (Oracle::new(), fresh("post"));
    let mut conn = oracle.mysql().await;
    conn.query_drop("SET SESSION cte_max_recursion_depth = 100000").await.expect("it is set");
    let sql = "INSERT INTO post_likes (user_id, post_id, liked, liked_at)
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
         SELECT CONCAT('user', i), ?, TRUE, UTC_TIMESTAMP(6) FROM n";
    conn.exec_drop(sql, (&post,)).await.expect("MySQL inserts");
    drain().await;
    assert_eq!(oracle.agrees(&[&post]).await, [100_000]);
    let client = mongodb::Client::with_uri_str(setting("MONGODB_URI")).await.expect("an address");
    let counts = client.database("likewise").collection::<Document>("counts_1");
    let size = [
        doc! { "$match": { "_id": &post } },
        doc! { "$project": { "size": { "$bsonSize": "$$ROOT" } } },
    ];
    let mut found = counts.aggregate(size).await.expect("MongoDB answers");
    assert!(found.advance().await.expect("MongoDB answers"), "there is a document");
    let size = found.current().get_i32("size").expect("a size");
    assert!(size < 1024, "{size} bytes");
}

/// A list is the truth: what was liked a moment ago is in it, what was taken back is not.
#[tokio::test]
async fn lists_and_has_liked_agree_at_once() {
    let (api, post, user) = (Api::new(), fresh("post"), fresh("user"));
    let (likes, likers) = (format!("W/v1/users/{user}/likes"), format!("R/v1/posts/{post}/likers"));
    for liked in [true, false, true] {
        let written =
            if liked { api.like(&user, &post).await } else { api.unlike(&user, &post).await };
        assert_eq!(written.json["changed"], Value::from(true));
        let expected = |id: &String| if liked { vec![id.clone()] } else { vec![] };
        assert_eq!(read(&page(&api, &likes, "").await, "post_id").0, expected(&post));
        assert_eq!(read(&page(&api, &likers, "").await, "user_id").0, expected(&user));
        assert_eq!(api.liked(&user, &post).await, liked);
    }
}
