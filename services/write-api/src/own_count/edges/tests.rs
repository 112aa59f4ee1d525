use likewise_mysql::Gtid;

use super::*;

const NOW: Micros = Micros(1_000_000_000);
const EARLIER: Micros = Micros(NOW.0 - 1_000_000);
const MADE_LIKED: Seen = Seen::Made { liked: true, by: EARLIER };
const MADE_UNLIKED: Seen = Seen::Made { liked: false, by: EARLIER };
const LONG_AGO: Micros = Micros(NOW.0 - 60_000_000);

fn flip(liked: bool, found_since: Option<Micros>) -> Written {
    let transaction = Some(Gtid { uuid: 1, tag: String::new(), number: 11 });
    Written { liked, changed: true, written_at: NOW, transaction, found_since }
}

fn repeat(liked: bool) -> Written {
    Written { changed: false, transaction: None, ..flip(liked, None) }
}

#[test]
fn a_first_like_and_what_this_process_made_need_no_newer_count() {
    assert_eq!(needs(None, &flip(true, None)), None);
    assert_eq!(needs(Some(MADE_LIKED), &flip(false, Some(EARLIER))), None);
    assert_eq!(needs(Some(MADE_LIKED), &repeat(true)), None);
}

#[test]
fn what_was_liked_elsewhere_must_be_counted_before_its_unlike_is_taken_off() {
    let counted = Micros(LONG_AGO.0 + UNTIL_COMMITTED);
    assert_eq!(needs(None, &flip(false, Some(LONG_AGO))), Some(counted));
    assert_eq!(needs(None, &flip(false, Some(NOW))), Some(NOW), "the write's own time will do");
    for seen in [Seen::Unknown, MADE_UNLIKED] {
        assert_eq!(needs(Some(seen), &flip(false, Some(NOW))), Some(NOW), "{seen:?}");
    }
}

#[test]
fn what_somebody_else_flipped_in_between_or_nobody_knows_needs_a_count_of_now() {
    for seen in [Seen::Unknown, MADE_LIKED, Seen::Found { liked: true, by: NOW }] {
        assert_eq!(needs(Some(seen), &flip(true, None)), Some(NOW), "{seen:?}");
    }
    for seen in [None, Some(Seen::Unknown), Some(MADE_UNLIKED)] {
        assert_eq!(needs(seen, &repeat(true)), Some(NOW), "{seen:?}");
    }
    let untold = Written { transaction: None, ..flip(true, None) };
    assert_eq!(needs(None, &untold), Some(NOW));
}

#[test]
fn what_was_found_at_a_time_needs_a_count_of_that_time() {
    let found = |liked| Some(Seen::Found { liked, by: LONG_AGO });
    assert_eq!(needs(found(true), &repeat(true)), Some(LONG_AGO));
    assert_eq!(needs(found(false), &flip(true, None)), Some(LONG_AGO));
}

#[test]
fn two_writes_of_one_edge_at_once_put_each_other_in_doubt() {
    let edges = Arc::new(Edges::new());
    let (ann, ben, post) =
        (UserId::from_log("ann"), UserId::from_log("ben"), PostId::from_log("p"));
    let (first, other) = (edges.begin(&ann, &post), edges.begin(&ben, &post));
    let second = edges.begin(&ann, &post);
    assert!(first.ended(&flip(true, None)).in_doubt);
    assert!(!other.ended(&flip(true, None)).in_doubt);
    drop(first);
    assert!(!second.ended(&repeat(true)).in_doubt);
    second.outcome_unknown();
    drop(other);
    assert!(edges.writing().is_empty());
    let third = edges.begin(&ann, &post);
    assert_eq!(third.ended(&repeat(true)), Needs { as_of: Some(NOW), in_doubt: false });
}

/// It was seen here, and somebody else flipped it to and fro since.
#[test]
fn a_row_that_is_younger_than_what_was_seen_is_not_what_was_seen() {
    let numbered = Written { found_since: Some(NOW), ..flip(true, None) };
    let repeated = Written { found_since: Some(NOW), ..repeat(true) };
    let found = Seen::Found { liked: true, by: EARLIER };
    assert_eq!(needs(Some(MADE_LIKED), &flip(false, Some(NOW))), Some(NOW));
    assert_eq!(needs(Some(MADE_UNLIKED), &numbered), Some(NOW));
    assert_eq!(needs(Some(MADE_LIKED), &repeated), Some(NOW));
    assert_eq!(needs(Some(found), &repeated), Some(NOW));
}
