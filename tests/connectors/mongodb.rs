//! Claims, commits and generations.

use std::time::Duration;

use likewise_core::{
    Batch, BinlogFile, Change, Checkpoint, Entry, Fold, LogBounds, Micros, Poison, Position,
    PostId, Refusal, RowChange, Server, SourceName,
};
use likewise_mongodb::{
    Claim, ClaimError, CommitError, Committed, Counts, Error, FirstGeneration, Store, StoreSettings,
};
use likewise_tests::{FailPoint, fresh, setting};
use mongodb::Client;
use mongodb::bson::{Document, doc};

pub(crate) const TOPIC: &str = "topic";
const LOG: LogBounds = LogBounds { partitions: 2, low: 0, high: 1000 };

/// A database of its own, dropped at the end of the test.
pub(crate) struct Database {
    pub(crate) store: Store,
    pub(crate) database: mongodb::Database,
    /// What the store calls itself, for fail points.
    pub(crate) app: String,
}

impl Database {
    async fn new() -> Self {
        let name = fresh("likewise_test");
        let uri = setting("MONGODB_URI");
        let client = Client::with_uri_str(&uri).await.expect("a client");
        let (database, app) = (client.database(&name), name.clone());
        // A fail point changes no topology: a driver that was told of a new primary would wait for news.
        let poll = "serverMonitoringMode=poll&heartbeatFrequencyMS=500";
        let uri = format!("{uri}&appName={app}&{poll}");
        let deadline = Duration::from_secs(10);
        let settings = StoreSettings { uri, database: name, max_connections: 8, deadline };
        Self { store: Store::new(&settings).await.expect("settings"), database, app }
    }

    pub(crate) async fn with_generation() -> Self {
        let this = Self::new().await;
        let made = this.store.create_first_generation(TOPIC, &[0, 0]).await.expect("it is made");
        assert_eq!(made, FirstGeneration::Created);
        this
    }

    pub(crate) async fn claim(&self, partition: u32) -> (Claim, Checkpoint) {
        self.store.claim(1, TOPIC, partition, LOG, "test").await.expect("it can be claimed")
    }

    async fn sum(&self, post: &str) -> i64 {
        self.store.count(1, &PostId::from_log(post)).await.expect("MongoDB answers").sum
    }

    async fn documents(&self, collection: &str) -> u64 {
        let collection = self.database.collection::<Document>(collection);
        collection.count_documents(doc! {}).await.expect("MongoDB answers")
    }

    pub(crate) async fn drop(self) {
        self.database.drop().await.expect("it is dropped");
    }
}

pub(crate) fn change(transaction: u64, row: RowChange) -> Entry {
    let position = Position {
        server: Server { uuid: 7, tag: "".into(), server_id: 1 },
        transaction,
        file: BinlogFile::parse("binlog.000001").expect("a binlog file"),
        pos: transaction,
        row: 0,
        total_order: 1,
    };
    Entry::Change(Change { source: SourceName("s".into()), position, row })
}

pub(crate) fn edge(transaction: u64, post: &str, delta: i64) -> Entry {
    change(transaction, RowChange::Edge { post: PostId::from_log(post), delta })
}

pub(crate) fn batch(from: Checkpoint, entries: impl IntoIterator<Item = Entry>) -> Batch {
    let mut fold = Fold::from(from);
    for entry in entries {
        let offset = fold.next_offset();
        fold.apply(offset, entry);
    }
    fold.finish()
}

#[tokio::test]
async fn the_first_generation_is_made_once_also_from_two_places_at_once() {
    let base = Database::new().await;
    assert_eq!(base.store.live().await.expect("MongoDB answers"), None);
    let make = || base.store.create_first_generation(TOPIC, &[0, 0]);
    let (one, two) = tokio::join!(make(), make());
    let made = [one.expect("it is made"), two.expect("it is made")];
    assert_eq!(made.iter().filter(|made| **made == FirstGeneration::Created).count(), 1);
    assert_eq!(make().await.expect("it is there"), FirstGeneration::AlreadyThere);
    let live = base.store.live().await.expect("MongoDB answers").expect("a generation");
    assert_eq!((live.generation, live.partitions), (1, 2));
    base.drop().await;
}

/// A generation's document that was lost is no reason to count its log again on top of its counts.
#[tokio::test]
async fn what_is_left_of_a_lost_generation_is_not_counted_on() {
    let base = Database::with_generation().await;
    let (claim, checkpoint) = base.claim(0).await;
    base.store.commit(&claim, &batch(checkpoint, [edge(1, "a", 1)])).await.expect("it commits");
    let generations = base.database.collection::<Document>("generations");
    generations.delete_many(doc! {}).await.expect("somebody deletes them");
    let error =
        base.store.create_first_generation(TOPIC, &[0, 0]).await.expect_err("it must refuse");
    assert!(matches!(&error, likewise_mongodb::Error::Remains(_)), "{error}");
    base.drop().await;
}

/// One transaction holds a full batch of the worst kind.
#[tokio::test]
async fn ten_thousand_unreadable_records_are_one_batch() {
    let base = Database::with_generation().await;
    let (claim, checkpoint) = base.claim(0).await;
    let poison = |n: usize| Entry::Poison {
        reason: Poison::IncompleteRow,
        post: Some(PostId::from_log(&format!("p{n}"))),
        payload: vec![b'x'; 200],
    };
    let batch = batch(checkpoint, (0..10_000).map(poison));
    base.store.commit(&claim, &batch).await.expect("it commits");
    assert_eq!(base.documents("dead_letters").await, 10_000);
    assert_eq!(base.store.open_repairs(1).await.expect("it reads"), 10_000);
    base.drop().await;
}

#[tokio::test]
async fn a_batch_moves_counts_and_checkpoint_together_and_is_resumed_after() {
    let base = Database::with_generation().await;
    let (claim, checkpoint) = base.claim(1).await;
    assert_eq!((claim.epoch, checkpoint.next_offset), (1, 0));
    let mark = change(4, RowChange::Mark { before: Some(Micros(1)), at: Micros(9) });
    let batch = batch(checkpoint, [edge(1, "a", 1), edge(2, "a", 1), edge(3, "b", -1), mark]);
    base.store.commit(&claim, &batch).await.expect("it commits");
    assert_eq!((base.sum("a").await, base.sum("b").await), (2, -1));
    let as_of = base.store.as_of_each(1, TOPIC, &[0, 1].into()).await.expect("it reads");
    assert_eq!(as_of, [(1, Some(Micros(9)))].into(), "partition 0 was never claimed");

    let (claim, resumed) = base.claim(1).await;
    assert_eq!(claim.epoch, 2);
    assert_eq!(resumed, batch.checkpoint);
    base.drop().await;
}

#[tokio::test]
async fn whoever_was_overtaken_writes_nothing() {
    let base = Database::with_generation().await;
    let (old, checkpoint) = base.claim(0).await;
    let (new, _) = base.claim(0).await;
    let late = batch(
        checkpoint.clone(),
        [
            edge(1, "a", 1),
            Entry::Poison {
                reason: Poison::NotAnEnvelope,
                post: Some(PostId::from_log("a")),
                payload: b"x".to_vec(),
            },
        ],
    );
    assert!(matches!(base.store.commit(&old, &late).await, Err(CommitError::Fenced)));
    assert_eq!((base.sum("a").await, base.documents("dead_letters").await), (0, 0));

    // The new owner counts the same records; a second commit of one batch is fenced by the offset.
    base.store.commit(&new, &late).await.expect("it commits");
    assert!(matches!(base.store.commit(&new, &late).await, Err(CommitError::Fenced)));
    assert_eq!((base.sum("a").await, base.documents("dead_letters").await), (1, 1));
    base.drop().await;
}

#[tokio::test]
async fn a_recount_sets_the_count_and_closes_the_repair_that_stands_before_it() {
    let base = Database::with_generation().await;
    let (claim, checkpoint) = base.claim(0).await;
    let poison = || Entry::Poison {
        reason: Poison::IncompleteRow,
        post: Some(PostId::from_log("a")),
        payload: b"{}".to_vec(),
    };
    let recount = |transaction| {
        change(transaction, RowChange::Recount { post: PostId::from_log("a"), likes: 40 })
    };
    let doubt = batch(checkpoint, [edge(1, "a", 1), poison()]);
    base.store.commit(&claim, &doubt).await.expect("it commits");
    let counted = base.store.count(1, &PostId::from_log("a")).await.expect("it reads");
    assert!(counted.repair && counted.sum == 1);
    assert_eq!(base.store.open_repairs(1).await.expect("it reads"), 1);

    // Doubt after the recount, in one batch, stays.
    let still = batch(doubt.checkpoint, [recount(2), edge(3, "a", 1), poison()]);
    base.store.commit(&claim, &still).await.expect("it commits");
    let counted = base.store.count(1, &PostId::from_log("a")).await.expect("it reads");
    assert!(counted.repair && counted.sum == 41);

    let settled = batch(still.checkpoint, [recount(4)]);
    let committed = base.store.commit(&claim, &settled).await.expect("it commits");
    let drift: Vec<i64> = committed.corrections.iter().map(|correction| correction.drift).collect();
    assert_eq!(drift, [-1]);
    let counted = base.store.count(1, &PostId::from_log("a")).await.expect("it reads");
    assert!(!counted.repair && counted.sum == 40);
    assert_eq!(base.store.open_repairs(1).await.expect("it reads"), 0);
    base.drop().await;
}

/// The same as through the first source, in another server's history.
fn of_another_source(entry: Entry) -> Entry {
    let Entry::Change(change) = entry else { return entry };
    Entry::Change(Change { source: SourceName("other".into()), ..change })
}

fn recount_of(transaction: u64, post: &str, likes: i64) -> Entry {
    change(transaction, RowChange::Recount { post: PostId::from_log(post), likes })
}

/// L6: an unlike from one source before its like from another; also where a recount falls between the two.
#[tokio::test]
async fn a_recount_sets_the_share_of_its_own_source_alone() {
    let base = Database::with_generation().await;
    let (claim, checkpoint) = base.claim(0).await;
    let mut checkpoint = checkpoint;
    let mut commit = async |entries: Vec<Entry>| {
        let batch = batch(checkpoint.clone(), entries);
        checkpoint = batch.checkpoint.clone();
        base.store.commit(&claim, &batch).await.expect("it commits").corrections
    };
    commit(vec![edge(1, "a", 1), edge(2, "a", 1), edge(3, "b", 1)]).await;
    commit(vec![of_another_source(edge(1, "a", -1)), edge(4, "b", 1)]).await;
    assert_eq!((base.sum("a").await, base.sum("b").await), (1, 2));

    assert_eq!(commit(vec![recount_of(5, "a", 2)]).await, [], "the first source's share was right");
    assert_eq!(base.sum("a").await, 1);
    commit(vec![edge(6, "a", 1), of_another_source(edge(2, "a", 1)), edge(7, "a", 1)]).await;
    assert_eq!(base.sum("a").await, 4);

    let wrong = commit(vec![of_another_source(recount_of(3, "a", 5)), edge(8, "a", -1)]).await;
    assert_eq!(wrong.iter().map(|correction| correction.drift).collect::<Vec<_>>(), [5]);
    assert_eq!(base.sum("a").await, 8, "3 of the first source and 5 of the other");
    base.drop().await;
}

/// L12a: `as_of` goes on where it stood only if the doubt is older than the recount of everything.
#[tokio::test]
async fn as_of_goes_on_after_a_recount_of_everything_that_came_after_the_doubt() {
    let base = Database::with_generation().await;
    let (claim, checkpoint) = base.claim(0).await;
    let mark = |transaction, before, at| {
        change(transaction, RowChange::Mark { before: Some(Micros(before)), at: Micros(at) })
    };
    let gap = batch(checkpoint, [mark(1, 0, 10), mark(2, 70, 80), mark(3, 80, 90)]);
    base.store.commit(&claim, &gap).await.expect("it commits");
    let status = async || base.store.partitions(1).await.expect("it reads").remove(0);
    let standing = status().await;
    assert_eq!((standing.as_of, standing.passed), (Some(Micros(10)), Some(Micros(90))));
    assert_eq!(standing.stands_since, Some(1));
    assert!(base.store.stands(1).await.expect("it reads"));

    let go_on = async |offset| {
        base.store.let_as_of_go_on(1, TOPIC, &[(0, offset)]).await.expect("MongoDB answers")
    };
    assert_eq!(go_on(1).await, 0, "the doubt arose later than the posts were listed");
    assert_eq!(go_on(3).await, 1);
    assert_eq!(status().await.as_of, Some(Micros(90)));
    assert!(!base.store.stands(1).await.expect("it reads"));
    let late = batch(gap.checkpoint, [mark(4, 90, 95)]);
    let fenced = base.store.commit(&claim, &late).await;
    assert!(matches!(fenced, Err(CommitError::Fenced)), "its owner must read the checkpoint again");
    base.drop().await;
}

/// A sum below zero is in doubt, and a doubt about one that is not is not raised.
#[tokio::test]
async fn a_sum_below_zero_is_found_and_repaired() {
    let base = Database::with_generation().await;
    let (claim, checkpoint) = base.claim(0).await;
    let first = batch(checkpoint, [edge(1, "a", -1), edge(2, "b", 1)]);
    base.store.commit(&claim, &first).await.expect("it commits");
    let negative = async || base.store.negative_sums(1, 10).await.expect("it reads");
    assert_eq!(negative().await, [PostId::from_log("a")]);
    let doubt = async |post| {
        let post = PostId::from_log(post);
        base.store.doubt_negative_sum(1, TOPIC, 0, &post).await.expect("MongoDB answers")
    };
    assert!(doubt("a").await && !doubt("b").await);
    assert_eq!(negative().await, [], "it is in doubt already");
    assert_eq!(base.store.open_repairs(1).await.expect("it reads"), 1);

    let settled = batch(first.checkpoint, [recount_of(3, "a", 2)]);
    base.store.commit(&claim, &settled).await.expect("it commits");
    assert_eq!((base.sum("a").await, base.store.open_repairs(1).await.expect("it reads")), (2, 0));
    base.drop().await;
}

/// A halted generation is not counted, and new positions make every change new.
#[tokio::test]
async fn a_halted_generation_goes_on_with_new_positions() {
    let base = Database::with_generation().await;
    let (claim, checkpoint) = base.claim(0).await;
    let first = batch(checkpoint, [edge(9, "a", 1)]);
    base.store.commit(&claim, &first).await.expect("it commits");
    base.store.halt(1, "a reset server").await.expect("MongoDB answers");
    let refused = base.store.claim(1, TOPIC, 0, LOG, "test").await.expect_err("it is halted");
    assert!(refused.to_string().contains("a reset server"), "{refused}");

    base.store.begin_new_positions(1).await.expect("MongoDB answers");
    let fenced = base.store.commit(&claim, &batch(first.checkpoint, [edge(10, "a", 1)])).await;
    assert!(matches!(fenced, Err(CommitError::Fenced)));
    let (claim, checkpoint) = base.claim(0).await;
    let second = batch(checkpoint, [edge(1, "a", 1)]);
    assert_eq!(second.tally.repeats, 0);
    base.store.commit(&claim, &second).await.expect("it commits");
    assert_eq!(base.sum("a").await, 2);
    base.drop().await;
}

#[tokio::test]
async fn what_must_not_be_counted_is_refused() {
    let base = Database::new().await;
    let claim = |log| base.store.claim(1, TOPIC, 0, log, "test");
    let refusal = |error| match error {
        ClaimError::Refused(refusal) => refusal,
        ClaimError::Store(error) => panic!("{error}"),
    };
    let nothing = claim(LOG).await.expect_err("there is no generation");
    assert_eq!(refusal(nothing), Refusal::NoGeneration(1));
    base.store.create_first_generation(TOPIC, &[0, 0]).await.expect("it is made");
    let raised = claim(LogBounds { partitions: 8, ..LOG }).await.expect_err("posts have moved");
    assert!(matches!(refusal(raised), Refusal::PartitionsChanged { .. }));
    claim(LOG).await.expect("it can be claimed");

    let checkpoints = base.database.collection::<Document>("checkpoints");
    checkpoints.delete_many(doc! {}).await.expect("somebody deletes them");
    let lost = claim(LOG).await.expect_err("it was opened before");
    assert_eq!(refusal(lost), Refusal::CheckpointLost(0));
    base.drop().await;
}

#[tokio::test]
async fn counts_come_sorted_by_the_bytes_of_the_id_without_those_that_are_0() {
    let base = Database::with_generation().await;
    let (claim, checkpoint) = base.claim(0).await;
    let posts = ["b", "B", "é", "zero", "b "];
    let entries = (1..).zip(posts).map(|(n, post)| edge(n, post, i64::from(post != "zero")));
    let first = batch(checkpoint, entries.chain([edge(8, "zero", 1)]));
    base.store.commit(&claim, &first).await.expect("it commits");
    let second = batch(first.checkpoint, [edge(9, "zero", -1)]);
    base.store.commit(&claim, &second).await.expect("it commits");
    let mut found = Vec::new();
    base.store
        .each_count(1, Counts::OtherThanZero, async |post, sum| found.push((post.to_string(), sum)))
        .await
        .expect("it reads");
    let found: Vec<_> = found.iter().map(|(post, sum)| (post.as_str(), *sum)).collect();
    assert_eq!(found, [("B", 1), ("b", 1), ("b ", 1), ("é", 1)]);
    base.drop().await;
}

impl Database {
    /// Commits one like of `a` while MongoDB fails `times` commands in this way, and looks whether it
    /// landed exactly once.
    async fn commits_once_while(&self, times: u32, how: Document) -> Committed {
        let (claim, checkpoint) = self.claim(0).await;
        let batch = batch(checkpoint, [edge(1, "a", 1)]);
        let point = FailPoint::on(&self.app, doc! { "times": i64::from(times) }, how).await;
        let committed = self.store.commit(&claim, &batch).await.expect("it commits");
        assert_eq!(point.off().await, u64::from(times), "the failures were not met");
        assert_eq!(self.sum("a").await, 1);
        let again = self.store.commit(&claim, &batch).await;
        assert!(matches!(again, Err(CommitError::Fenced)), "{again:?}");
        assert_eq!(self.claim(0).await.1, batch.checkpoint);
        committed
    }
}

/// The driver sends a commit a second time by itself; from then on it is ours to try again.
#[tokio::test]
async fn a_commit_whose_reply_is_lost_is_sent_again_and_lands_once() {
    let base = Database::with_generation().await;
    let lost = doc! {
        "failCommands": ["commitTransaction"],
        "writeConcernError": { "code": 64, "errmsg": "told after the commit took effect" },
    };
    let committed = base.commits_once_while(5, lost).await;
    assert!(committed.commit_retries > 0, "{committed:?}");
    assert_eq!(committed.transaction_retries, 0);
    base.drop().await;
}

#[tokio::test]
async fn a_write_conflict_runs_the_same_batch_again() {
    for command in ["update", "commitTransaction"] {
        let base = Database::with_generation().await;
        let conflict = doc! {
            "failCommands": [command], "errorCode": 112,
            "errorLabels": ["TransientTransactionError"],
        };
        let committed = base.commits_once_while(3, conflict).await;
        assert_eq!(committed.transaction_retries, 3, "{command}");
        base.drop().await;
    }
}

#[tokio::test]
async fn a_primary_that_stepped_down_before_the_commit_is_asked_again() {
    let base = Database::with_generation().await;
    let refused = doc! {
        "failCommands": ["commitTransaction"], "errorCode": 10107,
        "errorLabels": ["RetryableWriteError"],
    };
    let committed = base.commits_once_while(5, refused).await;
    assert!(committed.commit_retries > 0, "{committed:?}");
    base.drop().await;
}

/// The server answers `ok: 1` with the failure of a statement inside.
#[tokio::test]
async fn a_failure_inside_an_ok_is_not_taken_for_success() {
    let base = Database::with_generation().await;
    let (claim, checkpoint) = base.claim(0).await;
    let counts = base.database.collection::<Document>("counts_1");
    counts.insert_one(doc! { "_id": "a", "n": "not a number" }).await.expect("it is broken");
    let batch = batch(checkpoint.clone(), [edge(1, "a", 1), edge(2, "b", 1)]);
    let outcome = base.store.commit(&claim, &batch).await;
    assert!(matches!(outcome, Err(CommitError::Store(Error::Incomplete(_)))), "{outcome:?}");
    assert_eq!(base.sum("b").await, 0, "a part of the batch was written");
    assert_eq!(base.claim(0).await.1, checkpoint);
    base.drop().await;
}

/// Nothing says whether it took effect: the caller hears so, and the checkpoint tells.
#[tokio::test]
async fn a_commit_in_doubt_is_told_as_such_and_the_next_claim_knows() {
    let base = Database::with_generation().await;
    let (claim, checkpoint) = base.claim(0).await;
    let batch = batch(checkpoint, [edge(1, "a", 1)]);
    let doubt = doc! {
        "failCommands": ["commitTransaction"],
        "writeConcernError": { "code": 100, "errmsg": "told after the commit took effect" },
    };
    let point = FailPoint::on(&base.app, doc! { "times": 1 }, doubt).await;
    let outcome = base.store.commit(&claim, &batch).await;
    assert_eq!(point.off().await, 1, "the failure was not met");
    assert!(matches!(outcome, Err(CommitError::InDoubt(_))), "{outcome:?}");
    let (_, resumed) = base.claim(0).await;
    assert_eq!(resumed, batch.checkpoint, "it had taken effect");
    assert_eq!(base.sum("a").await, 1);
    base.drop().await;
}
