use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::{BinlogFile, Micros, Position, Server, SourceName, Table};

fn source() -> SourceName {
    SourceName("likewise".into())
}

/// The `row`-th change of a transaction.
fn change(transaction: u64, row: u64, what: RowChange) -> Entry {
    let position = Position {
        server: Server { uuid: 7, tag: "".into(), server_id: 1 },
        transaction,
        file: BinlogFile::parse("binlog.000001").expect("a binlog file"),
        pos: transaction * 1000,
        row,
        total_order: row + 1,
    };
    Entry::Change(Change { source: source(), position, row: what })
}

fn edge(transaction: u64, row: u64, post: &str, delta: i64) -> Entry {
    change(transaction, row, RowChange::Edge { post: PostId::from_log(post), delta })
}

fn recount(transaction: u64, post: &str, likes: i64) -> Entry {
    change(transaction, 0, RowChange::Recount { post: PostId::from_log(post), likes })
}

fn mark(transaction: u64, before: Option<i64>, at: i64) -> Entry {
    change(transaction, 0, RowChange::Mark { before: before.map(Micros), at: Micros(at) })
}

fn poison(post: Option<&str>) -> Entry {
    Entry::Poison {
        reason: Poison::IncompleteRow,
        post: post.map(PostId::from_log),
        payload: b"{}".to_vec(),
    }
}

fn fold(checkpoint: Checkpoint, entries: impl IntoIterator<Item = Entry>) -> Batch {
    let mut fold = Fold::from(checkpoint);
    for entry in entries {
        let offset = fold.next_offset();
        assert!(fold.apply(offset, entry));
    }
    fold.finish()
}

/// `a:=5+2 a@1:+1 b:-1`: per post, and source after the first, what the batch does to its share.
fn effects(batch: &Batch) -> String {
    let mut text = String::new();
    for CountEffect { post, source, effect } in &batch.counts {
        if !text.is_empty() {
            text.push(' ');
        }
        let share = if *source == 0 { String::new() } else { format!("@{source}") };
        write!(text, "{post}{share}:").expect("a string takes any text");
        if let Some(likes) = effect.set {
            write!(text, "={likes}").expect("a string takes any text");
        }
        if effect.set.is_none() || effect.add != 0 {
            write!(text, "{:+}", effect.add).expect("a string takes any text");
        }
    }
    text
}

#[test]
fn a_viral_post_is_one_effect_and_what_cancels_out_is_none() {
    let likes = (1..=1000).map(|n| edge(n, 0, "viral", 1));
    let batch = fold(
        Checkpoint::default(),
        likes.chain([edge(1001, 0, "calm", 1), edge(1002, 0, "calm", -1)]),
    );
    assert_eq!(effects(&batch), "viral:+1000");
    assert_eq!(batch.checkpoint.next_offset, 1002);
}

#[test]
fn a_recount_sets_the_count_and_later_changes_add_to_it() {
    let history = [
        edge(1, 0, "a", 1),
        edge(2, 0, "b", -1),
        recount(3, "a", 40),
        edge(4, 0, "a", 1),
        edge(5, 0, "a", 1),
        recount(6, "c", 0),
    ];
    assert_eq!(effects(&fold(Checkpoint::default(), history)), "a:=40+2 b:-1 c:=0");
}

#[test]
fn drift_is_measured_at_the_place_of_the_recount() {
    let history = [
        edge(1, 0, "a", 1),
        recount(2, "a", 5),
        edge(3, 0, "a", 1),
        recount(4, "a", 6),
        edge(5, 0, "a", -1),
        recount(6, "a", 7),
    ];
    let batch = fold(Checkpoint::default(), history);
    let drift: Vec<i64> = batch.recounts.iter().map(|recount| recount.drift(3)).collect();
    assert_eq!(drift, [1, 0, 2]);
    assert_eq!(effects(&batch), "a:=7");
}

/// L2: the same change at two offsets, in one batch, in two, and around another post's changes.
#[test]
fn a_repeated_change_is_counted_once() {
    let once = fold(Checkpoint::default(), [edge(1, 0, "a", 1), edge(1, 0, "a", 1)]);
    assert_eq!((effects(&once).as_str(), once.tally.repeats), ("a:+1", 1));

    let first = fold(Checkpoint::default(), [edge(1, 0, "a", 1), edge(2, 0, "b", 1)]);
    let second =
        fold(first.checkpoint, [edge(1, 0, "a", 1), edge(2, 0, "b", 1), edge(3, 0, "b", 1)]);
    assert_eq!((effects(&second).as_str(), second.tally.repeats), ("b:+1", 2));
}

/// L3: a transaction of 12 rows whose first 5 were counted is written again from its first row.
#[test]
fn a_transaction_written_again_counts_only_the_rows_that_were_not() {
    let row = |row| edge(9, row, &format!("p{row:02}"), 1);
    let first = fold(Checkpoint::default(), (0..5).map(row));
    let again = fold(first.checkpoint, (0..12).map(row));
    assert_eq!(again.tally.repeats, 5);
    assert_eq!(effects(&again), "p05:+1 p06:+1 p07:+1 p08:+1 p09:+1 p10:+1 p11:+1");
}

/// L1, L4, L5: neighbours of what cannot be counted count, and the partition moves on.
#[test]
fn snapshots_tombstones_poison_and_foreign_records_stop_nothing() {
    let batch = fold(
        Checkpoint::default(),
        [
            edge(1, 0, "a", 1),
            Entry::SnapshotRow,
            Entry::Skip(Skip::Tombstone),
            Entry::Skip(Skip::ForeignTable),
            Entry::Truncate(Table::Likes),
            poison(Some("b")),
            poison(None),
            edge(2, 0, "a", 1),
        ],
    );
    assert_eq!(effects(&batch), "a:+2");
    assert_eq!(batch.checkpoint.next_offset, 8);
    assert_eq!(batch.dead_letters.iter().map(|letter| letter.offset).collect::<Vec<_>>(), [5, 6]);
    assert_eq!(batch.repairs.len(), 1);
    assert_eq!((batch.tally.snapshot_rows, batch.tally.truncates), (1, 1));
    assert_eq!((batch.tally.tombstones, batch.tally.foreign), (1, 1));
}

#[test]
fn what_cannot_be_told_is_not_applied_and_its_post_is_repaired_by_the_next_recount() {
    let contradiction = Entry::Change(Change {
        source: source(),
        position: Position {
            server: Server { uuid: 7, tag: "".into(), server_id: 1 },
            transaction: 1,
            file: BinlogFile::parse("binlog.000002").expect("a binlog file"),
            pos: 1,
            row: 0,
            total_order: 1,
        },
        row: RowChange::Edge { post: PostId::from_log("a"), delta: 1 },
    });
    let batch = fold(Checkpoint::default(), [edge(2, 0, "a", 1), contradiction.clone()]);
    assert_eq!(effects(&batch), "a:+1");
    assert_eq!((batch.repairs.len(), batch.tally.cannot_tell), (1, 1));

    let closed =
        fold(Checkpoint::default(), [edge(2, 0, "a", 1), contradiction, recount(3, "a", 2)]);
    assert_eq!(effects(&closed), "a:=2");
    assert!(closed.repairs.is_empty());
}

#[test]
fn marks_move_the_freshness_only_along_an_unbroken_chain() {
    let as_of = |batch: &Batch| batch.checkpoint.as_of();
    let first = fold(Checkpoint::default(), [mark(1, Some(5), 10), mark(2, Some(10), 20)]);
    assert_eq!(as_of(&first), Some(Micros(20)));
    let broken = fold(first.checkpoint, [mark(9, Some(70), 80), mark(10, Some(80), 90)]);
    assert_eq!((as_of(&broken), broken.tally.gaps), (Some(Micros(20)), 1));
    assert_eq!(broken.checkpoint.stands_since, Some(2));
    let still = fold(broken.checkpoint, [mark(11, Some(90), 95)]);
    assert_eq!(as_of(&still), Some(Micros(20)), "what was lost is not found again by a mark");
    assert_eq!((still.tally.gaps, still.checkpoint.stands_since), (0, Some(2)));
    let again = fold(still.checkpoint, [mark(12, Some(70), 99)]);
    assert_eq!(again.checkpoint.stands_since, Some(5), "a second gap is a newer doubt");
}

/// L9: the counts are in doubt, and whoever looks at `as_of` is not told otherwise.
#[test]
fn a_truncate_stops_as_of() {
    let before = fold(Checkpoint::default(), [mark(1, None, 10)]);
    let after = fold(before.checkpoint, [Entry::Truncate(Table::Likes), mark(2, Some(10), 20)]);
    assert_eq!(after.checkpoint.as_of(), Some(Micros(10)));
    let later = fold(after.checkpoint, [mark(3, Some(20), 30)]);
    assert_eq!(later.checkpoint.as_of(), Some(Micros(10)));
}

#[test]
fn a_post_is_in_doubt_once_however_often() {
    let batch = fold(Checkpoint::default(), (0..1000).map(|_| poison(Some("a"))));
    assert_eq!((batch.dead_letters.len(), batch.repairs.len()), (1000, 1));
    assert_eq!(batch.repairs[0].offset, 999);
}

/// The same as through the first source, in another server's history.
fn of_another_source(entry: Entry) -> Entry {
    let Entry::Change(change) = entry else { return entry };
    Entry::Change(Change { source: SourceName("other".into()), ..change })
}

/// L6: an unlike from one source before its like from another; a recount between the two speaks for the
/// share of its own source alone.
#[test]
fn each_source_has_a_share_and_recounts_it_alone() {
    let first = fold(Checkpoint::default(), [edge(1, 0, "a", 1), edge(2, 0, "a", 1)]);
    let unlike = of_another_source(edge(1, 0, "a", -1));
    let second = fold(first.checkpoint, [unlike.clone(), recount(3, "a", 3), edge(4, 0, "a", 1)]);
    assert_eq!(effects(&second), "a:=3+1 a@1:-1");
    let third = fold(second.checkpoint, [unlike, of_another_source(recount(2, "a", 0))]);
    assert_eq!((effects(&third).as_str(), third.tally.repeats), ("a@1:=0", 1));
}

/// A record that cannot be read may have come through any source, and each can take back only its own doubt.
#[test]
fn a_repair_is_closed_by_the_recount_of_its_own_source() {
    let met =
        fold(Checkpoint::default(), [edge(1, 0, "a", 1), of_another_source(edge(1, 0, "a", 1))]);
    let unmarked = fold(met.checkpoint.clone(), [poison(Some("a"))]);
    assert_eq!(unmarked.repairs.len(), 1, "nobody could recount the other share");
    let met = fold(met.checkpoint, [of_another_source(mark(2, None, 10))]);
    let doubt = fold(met.checkpoint.clone(), [poison(Some("a"))]);
    assert_eq!(doubt.repairs.iter().map(|repair| repair.source).collect::<Vec<_>>(), [0, 1]);
    let half = fold(met.checkpoint, [poison(Some("a")), of_another_source(recount(3, "a", 1))]);
    assert_eq!(half.repairs.iter().map(|repair| repair.source).collect::<Vec<_>>(), [0]);
}

/// L12b: five rows of a transaction from one server, then the whole of it from another with other file
/// positions: no row is counted twice on a guess; the posts are repaired, and later transactions count.
#[test]
fn a_transaction_repeated_after_a_failover_is_never_guessed() {
    let from = |server_id, file: &str, pos, row: u64| {
        let Entry::Change(mut change) = edge(9, row, &format!("p{row}"), 1) else { unreachable!() };
        change.position.server.server_id = server_id;
        change.position.file = BinlogFile::parse(file).expect("a binlog file");
        change.position.pos = pos;
        Entry::Change(change)
    };
    let old = fold(Checkpoint::default(), (0..5).map(|row| from(1, "binlog.000007", 900, row)));
    assert_eq!(effects(&old), "p0:+1 p1:+1 p2:+1 p3:+1 p4:+1");
    // A replica keeps the server id of the origin in the event, and has files of its own.
    let new = fold(old.checkpoint, (0..7).map(|row| from(1, "replica.000002", 50, row)));
    assert_eq!((effects(&new).as_str(), new.tally.cannot_tell), ("", 7));
    let posts: Vec<_> = new.repairs.iter().map(|repair| repair.post.as_str()).collect();
    assert_eq!(posts, ["p0", "p1", "p2", "p3", "p4", "p5", "p6"]);
}

#[test]
fn leftovers_of_an_earlier_assignment_are_not_taken() {
    let mut fold = Fold::from(Checkpoint::at(10));
    assert!(!fold.apply(9, edge(1, 0, "a", 1)));
    assert_eq!(fold.records(), 0);
    assert!(fold.apply(12, edge(1, 0, "a", 1)));
    assert_eq!(fold.next_offset(), 13);
}

/// A history of transactions; each is a list of (post, delta).
fn history() -> impl Strategy<Value = Vec<Vec<(u8, i64)>>> {
    let row = (0u8..5, prop_oneof![Just(1i64), Just(-1), Just(0)]);
    prop::collection::vec(prop::collection::vec(row, 1..6), 1..20)
}

proptest! {
    /// Debezium may go back to the start of any transaction and send everything from there again;
    /// batches may end anywhere; a batch may be lost before its commit, any number of times.
    #[test]
    fn repeats_batch_borders_and_restarts_leave_the_counts_unchanged(
        history in history(),
        resends in prop::collection::vec((0usize..100, 0usize..20), 0..6),
        borders in prop::collection::vec((1usize..9, any::<bool>()), 1..40),
    ) {
        let transactions: Vec<Vec<Entry>> = (1u64..).zip(&history)
            .map(|(number, rows)| (0u64..).zip(rows)
                .map(|(row, (post, delta))| edge(number, row, &format!("p{post}"), *delta))
                .collect())
            .collect();
        let mut truth = BTreeMap::new();
        for (post, delta) in history.iter().flatten() {
            *truth.entry(format!("p{post}")).or_insert(0) += delta;
        }

        // The log: everything once, with cuts at which sending starts again from a transaction that
        // was reached: it goes back, never ahead.
        let mut log: Vec<Entry> = Vec::new();
        let mut reached = 0;
        for (cut, from) in resends {
            let from = from % transactions.len();
            let before: usize = transactions[..from].iter().map(Vec::len).sum();
            if before <= reached {
                let sent: Vec<_> = transactions[from..].concat().into_iter().take(cut).collect();
                reached = reached.max(before + sent.len());
                log.extend(sent);
            }
        }
        log.extend(transactions.concat());

        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        let mut stored = Checkpoint::default();
        let mut borders = borders.into_iter().cycle();
        let mut lost = 0;
        while (stored.next_offset as usize) < log.len() {
            let (size, mut commits) = borders.next().expect("a cycle does not end");
            if !commits { lost += 1; }
            commits |= lost > 50;
            let from = stored.next_offset as usize;
            let to = log.len().min(from + size);
            let batch = fold(stored.clone(), log[from..to].iter().cloned());
            if !commits { continue; }
            for CountEffect { post, effect, .. } in &batch.counts {
                *counts.entry(post.to_string()).or_insert(0) += effect.add;
            }
            stored = batch.checkpoint;
        }
        truth.retain(|_, n| *n != 0);
        counts.retain(|_, n| *n != 0);
        prop_assert_eq!(counts, truth);
    }
}
