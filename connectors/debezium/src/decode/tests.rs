use serde_json::{Value, json};

use super::*;

fn envelope(table: &str, op: &str, before: Value, after: Value) -> Value {
    json!({
        "before": before,
        "after": after,
        "source": {
            "version": "3.6.1.Final", "connector": "mysql", "name": "likewise", "ts_ms": 1,
            "snapshot": "false", "db": "likewise", "table": table, "server_id": 1,
            "gtid": "dc41b9b3-0001-0002-0003-0123456789ab:11", "file": "binlog.000001",
            "pos": 3714, "row": 1, "thread": 15, "query": null
        },
        "transaction": { "id": "dc41b9b3-0001-0002-0003-0123456789ab:11", "total_order": 2, "data_collection_order": 2 },
        "op": op,
        "ts_ms": 1
    })
}

fn edge_row(post: &str, liked: i64) -> Value {
    json!({ "user_id": "u", "post_id": post, "liked": liked, "seq": null, "liked_at": 1_795_990_384_247_557_i64 })
}

fn read(key: &str, value: &Value) -> Entry {
    decode(Some(key.as_bytes()), Some(value.to_string().as_bytes()))
}

fn row_of(entry: Entry) -> RowChange {
    match entry {
        Entry::Change(change) => change.row,
        other => panic!("not a change: {other:?}"),
    }
}

fn delta(op: &str, before: Value, after: Value) -> i64 {
    match row_of(read("p1", &envelope("post_likes", op, before, after))) {
        RowChange::Edge { delta, .. } => delta,
        other => panic!("not an edge: {other:?}"),
    }
}

#[test]
fn a_delta_is_liked_after_minus_liked_before() {
    let (yes, no) = (|| edge_row("p1", 1), || edge_row("p1", 0));
    assert_eq!(delta("c", Value::Null, yes()), 1);
    assert_eq!(delta("c", Value::Null, no()), 0);
    assert_eq!(delta("u", yes(), no()), -1);
    assert_eq!(delta("u", no(), yes()), 1);
    assert_eq!(delta("u", yes(), yes()), 0);
    assert_eq!(delta("d", yes(), Value::Null), -1);
    assert_eq!(delta("d", no(), Value::Null), 0);
}

#[test]
fn recounts_and_marks_are_read_and_their_deletions_set_nothing() {
    let recount = json!({ "post_id": "p1", "likes": 7, "nonce": "x", "requested_at": 5 });
    let read_recount =
        |op, before, after| row_of(read("p1", &envelope("post_recounts", op, before, after)));
    let set = RowChange::Recount { post: PostId::from_log("p1"), likes: 7 };
    assert_eq!(read_recount("c", Value::Null, recount.clone()), set);
    assert_eq!(read_recount("u", recount.clone(), recount.clone()), set);
    assert_eq!(read_recount("d", recount, Value::Null), RowChange::Nothing);

    let mark = |at: i64| json!({ "mark_key": "mark-0-1", "at": at });
    let read_mark = |op, before, after| {
        row_of(read("mark-0-1", &envelope("partition_marks", op, before, after)))
    };
    assert_eq!(
        read_mark("u", mark(5), mark(9)),
        RowChange::Mark { before: Some(Micros(5)), at: Micros(9) }
    );
    assert_eq!(
        read_mark("c", Value::Null, mark(9)),
        RowChange::Mark { before: None, at: Micros(9) }
    );
    assert_eq!(read_mark("d", mark(9), Value::Null), RowChange::Nothing);
}

#[test]
fn a_position_holds_server_transaction_and_place() {
    let Entry::Change(change) =
        read("p1", &envelope("post_likes", "c", Value::Null, edge_row("p1", 1)))
    else {
        panic!("not a change");
    };
    assert_eq!(change.source.0, "likewise");
    let position = change.position;
    assert_eq!(position.server.uuid, 0xdc41_b9b3_0001_0002_0003_0123_4567_89ab);
    assert_eq!((position.transaction, position.file.to_string().as_str()), (11, "binlog.000001"));
    assert_eq!((position.pos, position.row, position.total_order), (3714, 1, 2));
}

/// L1, L4, L5: each ends as a skip, a snapshot row, a TRUNCATE or poison; none of them panics.
#[test]
fn what_is_not_a_change_is_told_apart() {
    assert_eq!(decode(Some(b"p1"), None), Entry::Skip(Skip::Tombstone));
    assert_eq!(decode(Some(b"p1"), Some(b"")), Entry::Skip(Skip::Tombstone));
    assert_eq!(
        read("p1", &envelope("post_likes", "r", Value::Null, edge_row("p1", 1))),
        Entry::SnapshotRow
    );
    assert_eq!(
        decode(
            None,
            Some(envelope("post_likes", "t", Value::Null, Value::Null).to_string().as_bytes())
        ),
        Entry::Truncate(Table::Likes)
    );
    let mut foreign = envelope("other", "c", Value::Null, json!({ "id": 1 }));
    assert_eq!(read("1", &foreign), Entry::Skip(Skip::ForeignTable));
    foreign["source"]["db"] = json!("elsewhere");
    foreign["source"]["table"] = json!("post_likes");
    assert_eq!(read("1", &foreign), Entry::Skip(Skip::ForeignTable));
}

/// What an entry says of a poisoned record.
fn told(entry: Entry) -> (Poison, Option<PostId>) {
    match entry {
        Entry::Poison { reason, post, payload } => {
            assert!(!payload.is_empty() && payload.len() <= 4096);
            (reason, post)
        }
        other => panic!("not poison: {other:?}"),
    }
}

#[test]
fn poison_says_what_is_wrong_and_names_the_post_where_it_can() {
    let p1 = || Some(PostId::from_log("p1"));
    let poisoned = |reason, post| (reason, post);
    let decode = |key: Option<&[u8]>, value: Option<&[u8]>| told(decode(key, value));
    let read = |key: &str, value: &Value| told(read(key, value));
    for junk in ["not json", "{}", "[]", "17", "{\"op\":\"c\"}"] {
        let entry = decode(Some(b"p1"), Some(junk.as_bytes()));
        assert_eq!(entry, poisoned(Poison::NotAnEnvelope, p1()), "{junk}");
        assert_eq!(decode(None, Some(junk.as_bytes())), poisoned(Poison::NotAnEnvelope, None));
        assert_eq!(
            decode(Some(b"\xff"), Some(junk.as_bytes())),
            poisoned(Poison::NotAnEnvelope, None)
        );
    }
    for no_post in ["mark-0-1".to_owned(), "x".repeat(65), "é".repeat(65), String::new()] {
        let entry = decode(Some(no_post.as_bytes()), Some(b"junk"));
        assert_eq!(entry, poisoned(Poison::NotAnEnvelope, None));
    }
    let longest = "é".repeat(64);
    assert_eq!(
        decode(Some(longest.as_bytes()), Some(b"junk")),
        poisoned(Poison::NotAnEnvelope, Some(PostId::from_log(&longest)))
    );
    let like = |op, before, after| envelope("post_likes", op, before, after);
    let unknown = like("x", Value::Null, edge_row("p1", 1));
    assert_eq!(read("p1", &unknown), poisoned(Poison::UnknownOperation, p1()));
    for incomplete in [
        like("c", Value::Null, Value::Null),
        like("u", Value::Null, edge_row("p1", 1)),
        like("d", Value::Null, Value::Null),
        like("c", Value::Null, json!({ "user_id": "u", "liked": 1 })),
        like("c", Value::Null, json!({ "user_id": "u", "post_id": "p1" })),
        like("u", edge_row("p2", 1), edge_row("p1", 1)),
        envelope("post_recounts", "c", Value::Null, json!({ "post_id": "p1" })),
        envelope("post_recounts", "c", Value::Null, json!({ "post_id": "p1", "likes": -1 })),
    ] {
        assert_eq!(read("p1", &incomplete), poisoned(Poison::IncompleteRow, p1()), "{incomplete}");
    }
    let good = like("c", Value::Null, edge_row("p1", 1));
    assert_eq!(read("p2", &good), poisoned(Poison::WrongKey, p1()));
    assert_eq!(decode(None, Some(good.to_string().as_bytes())), poisoned(Poison::WrongKey, p1()));
    let mut without_gtid = good;
    without_gtid["source"]["gtid"] = Value::Null;
    assert_eq!(read("p1", &without_gtid), poisoned(Poison::NoPosition, p1()));
}

/// What no MySQL writes would end in sums, times and positions that cannot be stored.
#[test]
fn numbers_that_no_mysql_writes_are_poison() {
    let reason = |key: &str, value: Value| match read(key, &value) {
        Entry::Poison { reason, .. } => reason,
        other => panic!("not poison: {other:?}"),
    };
    let recount = json!({ "post_id": "p1", "likes": i64::MAX, "nonce": "x", "requested_at": 5 });
    let recount = envelope("post_recounts", "c", Value::Null, recount);
    assert_eq!(reason("p1", recount), Poison::IncompleteRow);
    let mark = json!({ "mark_key": "mark-0-1", "at": i64::MAX });
    let mark = envelope("partition_marks", "c", Value::Null, mark);
    assert_eq!(reason("mark-0-1", mark), Poison::IncompleteRow);
    let mut like = envelope("post_likes", "c", Value::Null, edge_row("p1", 1));
    like["source"]["pos"] = (1_u64 << 63).into();
    assert_eq!(reason("p1", like), Poison::NoPosition);
}

#[test]
fn an_unreadable_value_under_a_post_that_is_named_like_a_mark_is_about_the_post() {
    let post = |key: &str| match decode(Some(key.as_bytes()), Some(b"junk")) {
        Entry::Poison { post, .. } => post,
        other => panic!("not poison: {other:?}"),
    };
    assert_eq!(post("mark-x0"), Some(PostId::from_log("mark-x0")));
    assert_eq!(post("mark-0-12"), None);
}
