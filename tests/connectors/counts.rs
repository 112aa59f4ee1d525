//! Counts for many readers: how often MongoDB is asked, and what is answered while it is away.

use std::time::{Duration, Instant};

use futures_util::future::{join_all, try_join_all};
use likewise_core::{Checkpoint, Micros, PostId, RowChange};
use likewise_mongodb::{Claim, CountReader, Live, ReadError, ReaderSettings};
use likewise_tests::{FailPoint, eventually};
use mongodb::bson::{Document, doc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::mongodb::{Database, TOPIC, batch, change, edge};

const LIMIT: Duration = Duration::from_secs(20);
/// Longer than any test: what is kept is never read again by itself.
const LONG: Duration = Duration::from_secs(600);
const PATIENCE: Duration = Duration::from_secs(2);

/// A generation of two partitions, of which the post's is counted; and a reader of it.
struct Scene {
    base: Database,
    reader: CountReader,
    post: PostId,
    claim: Claim,
    checkpoint: Checkpoint,
    shutdown: CancellationToken,
    kept: JoinHandle<()>,
}

impl Scene {
    async fn new(fresh_for: Duration) -> Self {
        let base = Database::with_generation().await;
        let post = PostId::from_log("a");
        let (claim, checkpoint) = base.claim(likewise_core::partition_of("a", 2)).await;
        let settings = ReaderSettings {
            topic: TOPIC.to_owned(),
            fresh_for,
            entries: 10_000,
            patience: PATIENCE,
            // The marks of these tests are small numbers.
            stale_after: Duration::from_secs(1 << 40),
        };
        let reader = CountReader::new(base.store.clone(), settings);
        let shutdown = CancellationToken::new();
        let kept = tokio::spawn(reader.clone().keep(shutdown.clone()));
        eventually("the generation is seen", LIMIT, async || reader.ready().ok()).await;
        base.database.run_command(doc! { "profile": 2 }).await.expect("it is profiled");
        Self { base, reader, post, claim, checkpoint, shutdown, kept }
    }

    /// Counts one more like, and passes a mark.
    async fn count(&mut self, transaction: u64, mark: Option<i64>) {
        let before = self.checkpoint.as_of();
        let mark =
            mark.map(|at| change(transaction + 1, RowChange::Mark { before, at: Micros(at) }));
        let entries = [edge(transaction, "a", 1)].into_iter().chain(mark);
        let batch = batch(self.checkpoint.clone(), entries);
        self.base.store.commit(&self.claim, &batch).await.expect("it commits");
        self.checkpoint = batch.checkpoint;
    }

    async fn read(&self) -> (i64, bool) {
        let read = self.reader.read(std::slice::from_ref(&self.post), self.reader.recent()).await;
        let read = read.expect("it reads");
        (read.counts[0].counted.sum, read.stale)
    }

    /// How often MongoDB was asked for counts.
    async fn queries(&self) -> u64 {
        self.profiled(doc! { "command.aggregate": "checkpoints" }).await
    }

    async fn profiled(&self, filter: Document) -> u64 {
        let profile = self.base.database.collection::<Document>("system.profile");
        profile.count_documents(filter).await.expect("MongoDB answers")
    }

    async fn end(self) {
        self.shutdown.cancel();
        self.kept.await.expect("it ends");
        self.base.drop().await;
    }
}

/// R1
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_readers_of_one_count_cost_one_query() {
    let mut scene = Scene::new(LONG).await;
    scene.count(1, Some(5)).await;
    let reads = (0..1000).map(|_| {
        let (reader, post) = (scene.reader.clone(), scene.post.clone());
        tokio::spawn(async move { reader.read(&[post], reader.recent()).await })
    });
    for read in try_join_all(reads).await.expect("no panic") {
        let read = read.expect("it reads");
        assert_eq!((read.counts[0].counted.sum, read.as_of), (1, Some(Micros(5))));
    }
    assert_eq!(scene.queries().await, 1);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_asks_once_for_what_is_not_known_and_for_nothing_else() {
    let mut scene = Scene::new(LONG).await;
    scene.count(1, Some(5)).await;
    assert_eq!(scene.read().await, (1, false));
    // What is counted now is not seen of the post that is known: its count keeps its own as_of.
    scene.count(3, Some(9)).await;
    let posts = ["a", "b", "c"].map(PostId::from_log).to_vec();
    let read = scene.reader.read(&posts, scene.reader.recent()).await.expect("it reads");
    let sums: Vec<i64> = read.counts.iter().map(|known| known.counted.sum).collect();
    assert_eq!(sums, [1, 0, 0]);
    assert_eq!(read.counts[0].counted_to.as_of, Some(Micros(5)));
    assert_eq!(scene.queries().await, 2);
    scene.reader.read(&posts, scene.reader.recent()).await.expect("it reads");
    assert_eq!(scene.queries().await, 2, "everything is known");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_cache_each_read_asks() {
    let mut scene = Scene::new(Duration::ZERO).await;
    for n in 1..=5 {
        scene.count(n, None).await;
        assert_eq!(scene.read().await.0, i64::try_from(n).expect("a number"));
    }
    assert_eq!(scene.queries().await, 5);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_switch_no_count_of_the_generation_before_is_answered() {
    let mut scene = Scene::new(LONG).await;
    scene.count(1, None).await;
    assert_eq!(scene.read().await.0, 1);
    let collection = |name: &str| scene.base.database.collection::<Document>(name);
    let next = doc! { "_id": 2_i64, "state": "counting", "topic": TOPIC, "starts": [0_i64, 0_i64], "opened": [] };
    let generations = collection("generations");
    generations.insert_one(next).await.expect("it is made");
    let count = doc! { "_id": "a", "n": 7_i64 };
    collection("counts_2").insert_one(count).await.expect("it is counted");
    let live = doc! { "$set": { "generation": 2_i64 } };
    generations.update_one(doc! { "_id": "live" }, live).await.expect("it is switched");
    eventually("the switch is seen", LIMIT, async || (scene.read().await.0 == 7).then_some(()))
        .await;
    scene.end().await;
}

/// Positions and counts are those of one moment, however fast they move.
#[tokio::test(flavor = "multi_thread")]
async fn a_count_is_exactly_what_its_positions_say() {
    let mut scene = Scene::new(LONG).await;
    scene.count(1, None).await;
    let (store, post) = (scene.base.store.clone(), scene.post.clone());
    let done = CancellationToken::new();
    let watching = tokio::spawn({
        let done = done.clone();
        async move {
            let live = Live { generation: 1, partitions: 2 };
            let mut seen = std::collections::BTreeSet::new();
            while !done.is_cancelled() {
                let snapshot = store.snapshot(live, TOPIC, std::slice::from_ref(&post)).await;
                let snapshot = snapshot.expect("it reads");
                let (_, counted_to) = snapshot.partitions.first_key_value().expect("a partition");
                let (_, position) = counted_to.positions.iter().next().expect("a position");
                let sum = snapshot.counts[&post].sum;
                assert_eq!(u64::try_from(sum).expect("a number"), position.transaction);
                assert!(counted_to.includes(7, "", position.transaction));
                assert!(!counted_to.includes(7, "", position.transaction + 1));
                assert!(!counted_to.includes(8, "", 1) && !counted_to.includes(7, "import", 1));
                seen.insert(sum);
            }
            seen.len()
        }
    });
    for transaction in 2..=300 {
        scene.count(transaction, None).await;
    }
    done.cancel();
    assert!(watching.await.expect("it held") > 20, "it raced with nothing");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_a_time_shares_each_look_and_gets_a_count_of_it() {
    let mut scene = Scene::new(LONG).await;
    scene.count(1, Some(5)).await;
    assert_eq!(scene.read().await, (1, false));
    let started = Instant::now();
    let waiters: Vec<_> = (0..1000)
        .map(|_| {
            let (reader, post) = (scene.reader.clone(), scene.post.clone());
            let asked = reader.recent().including(Micros(9), started + LIMIT);
            tokio::spawn(async move { reader.read(&[post], asked).await })
        })
        .collect();
    let looks = doc! { "command.find": "checkpoints", "command.projection.as_of": 1 };
    eventually("they wait", LIMIT, async || {
        (scene.profiled(looks.clone()).await >= 3).then_some(())
    })
    .await;
    scene.count(3, Some(9)).await;
    for read in try_join_all(waiters).await.expect("no panic") {
        let read = read.expect("it reads");
        assert_eq!((read.counts[0].counted.sum, read.as_of), (2, Some(Micros(9))));
        assert!(!read.stale);
    }
    let ticks = u64::try_from(started.elapsed().as_millis()).expect("a number") / 20;
    let looked = scene.profiled(looks).await;
    assert!(looked <= ticks + 2, "{looked} looks in {ticks} ticks");
    assert_eq!(scene.queries().await, 2, "before the wait, and after it");

    // What does not come in time is told to be stale.
    let asked =
        scene.reader.recent().including(Micros(10), Instant::now() + 5 * Duration::from_millis(20));
    let read = scene.reader.read(&[scene.post.clone()], asked).await.expect("it reads");
    assert!(read.stale && read.counts[0].counted.sum == 2);
    scene.end().await;
}

/// R1: MongoDB answers nobody, or is gone.
#[tokio::test(flavor = "multi_thread")]
async fn while_mongodb_is_away_the_last_known_counts_are_answered_at_once() {
    for failure in
        [doc! { "closeConnection": true }, doc! { "blockConnection": true, "blockTimeMS": 5_000 }]
    {
        // Nothing is kept, and the last known one is answered all the same.
        let mut scene = Scene::new(Duration::ZERO).await;
        scene.count(1, Some(5)).await;
        assert_eq!(scene.read().await, (1, false));
        let mut data = doc! { "failCommands": ["aggregate", "find"] };
        data.extend(failure);
        let fail_point = FailPoint::on(&scene.base.app, "alwaysOn", data).await;
        let started = Instant::now();
        let posts = ["a", "never-read"].map(PostId::from_log);
        let reads = (0..1000).map(|n| {
            let (reader, post) = (scene.reader.clone(), posts[n % 2].clone());
            tokio::spawn(async move { reader.read(&[post], reader.recent()).await })
        });
        let reads = join_all(reads).await;
        assert!(started.elapsed() < 10 * PATIENCE, "{:?}: they waited in turn", started.elapsed());
        for (n, read) in reads.into_iter().enumerate() {
            match read.expect("no panic") {
                Ok(read) if n % 2 == 0 => {
                    assert_eq!((read.counts[0].counted.sum, read.as_of), (1, Some(Micros(5))));
                    assert!(read.stale);
                }
                read => assert_eq!(read.expect_err("it was never read"), ReadError::Away),
            }
        }
        // Soon nobody waits for anything.
        eventually("it is known to be away", LIMIT, async || {
            let started = Instant::now();
            assert_eq!(scene.read().await, (1, true));
            (started.elapsed() < PATIENCE / 4).then_some(())
        })
        .await;

        assert!(fail_point.off().await > 0);
        eventually("it is back", 2 * LIMIT, async || {
            (scene.read().await == (1, false)).then_some(())
        })
        .await;
        scene.end().await;
    }
}

/// MongoDB is there, and one query is slow.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_takes_too_long_is_away_for_its_own_callers_alone() {
    let mut scene = Scene::new(Duration::ZERO).await;
    scene.count(1, Some(5)).await;
    let slow =
        doc! { "failCommands": ["aggregate"], "blockConnection": true, "blockTimeMS": 5_000 };
    let fail_point = FailPoint::on(&scene.base.app, doc! { "times": 1 }, slow).await;
    let one = tokio::spawn({
        let reader = scene.reader.clone();
        async move { reader.read(&[PostId::from_log("never-read")], reader.recent()).await }
    });
    fail_point.entered(1, LIMIT).await;
    while !one.is_finished() {
        assert_eq!(scene.read().await, (1, false));
    }
    assert_eq!(one.await.expect("no panic").expect_err("it is slow"), ReadError::Away);
    for _ in 0..20 {
        assert_eq!(scene.read().await, (1, false));
    }
    fail_point.off().await;
    scene.end().await;
}
