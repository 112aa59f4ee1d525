//! Ids that look alike are different ids.

use likewise_tests::{Api, Oracle, fresh};
use mysql_async::prelude::Queryable as _;

/// I1
#[tokio::test]
async fn ids_that_differ_by_case_or_a_trailing_character_have_counts_of_their_own() {
    let (api, oracle, base) = (Api::new(), Oracle::new(), fresh("id"));
    let posts = [format!("{base}x"), format!("{base}X"), format!("{base}x."), format!("{base}x~")];
    for (likes, post) in (1..).zip(&posts) {
        for user in 0..likes {
            assert_eq!(api.like(&format!("u{user}"), post).await.json["changed"], true);
        }
    }
    for user in ["Ann", "ann", "ann_", "ann."] {
        assert_eq!(api.like(user, &format!("{base}users")).await.json["changed"], true, "{user}");
    }
    let mut asked: Vec<&str> = posts.iter().map(String::as_str).collect();
    let users = format!("{base}users");
    asked.push(&users);
    assert_eq!(oracle.agrees(&asked).await, [1, 2, 3, 4, 4]);
}

/// I1: what HTTP does not take may come by an import, and is still told apart.
#[tokio::test]
async fn ids_of_an_import_compare_byte_for_byte() {
    let (oracle, base) = (Oracle::new(), fresh("id"));
    let mut conn = oracle.mysql().await;
    for post in ["e", "é", "e\u{301}", "e ", "E"] {
        conn.exec_drop(
            "INSERT INTO post_likes (user_id, post_id, liked, liked_at) VALUES ('u', ?, TRUE, UTC_TIMESTAMP(6))",
            (format!("{base}{post}"),),
        )
        .await
        .expect("each is a row of its own");
    }
    assert_eq!(oracle.agrees(&[&format!("{base}e"), &format!("{base}E")]).await, [1, 1]);
    // What HTTP cannot name is counted all the same.
    let verified = likewise_tests::likewise(&["verify", "--json"]).await;
    let verified = String::from_utf8(verified.stdout).expect("text");
    assert!(!verified.contains(&base), "{verified}");
}

/// I2
#[tokio::test]
async fn long_numbers_that_differ_in_the_last_digit_are_distinct_strings() {
    let (api, oracle) = (Api::new(), Oracle::new());
    let random = fresh("");
    let digits: String = random
        .chars()
        .filter(char::is_ascii_hexdigit)
        .map(|c| if c.is_ascii_digit() { c } else { '7' })
        .collect();
    let base = &digits[..18];
    let (one, two) = (format!("{base}1"), format!("{base}2"));
    api.like(&one, &one).await;
    api.like(&two, &one).await;
    let answer = api.like(&one, &two).await;
    assert_eq!(answer.json["post_id"], two.as_str());
    assert_eq!(oracle.agrees(&[&one, &two]).await, [2, 1]);
}
