//! Aggregators that die, stand still, come and go.

use std::time::Duration;

use likewise_tests::{FailPoint, eventually, start_what_is_missing};
use mongodb::bson::{Document, doc};
use rand::RngExt as _;

use crate::big::Rows;
use crate::metrics::Lines;
use crate::scene::Scene;
use crate::stack::{self, Aggregator};

/// Longer than the group waits for a member that is silent.
const TAKES_OVER: Duration = Duration::from_secs(60);
/// A batch gathers for long, so that there is one in hand whenever something happens.
const HALF_FILLED: [(&str, &str); 2] =
    [("LIKEWISE_BATCH_LINGER_MS", "500"), ("LIKEWISE_BATCH_AGE_MS", "2000")];
/// A batch that is not committed before the test is over with it.
const SLOW: [(&str, &str); 2] =
    [("LIKEWISE_BATCH_LINGER_MS", "8000"), ("LIKEWISE_BATCH_AGE_MS", "8000")];
/// More than is counted between a look and a kill.
const IN_HAND: u64 = 200;
const APP: &str = "fault-aggregator";

const FENCED: &str = "a commit was fenced";

/// L13: kill −9 at random moments of an import. A batch that was in hand is counted by the next.
pub(super) async fn kill(scene: &mut Scene) {
    for _ in 0..3 {
        let before = scene.progress.length().await.expect("Kafka answers");
        let rows = Rows::new(scene, 20_000);
        rows.insert().await.expect("it does not panic").expect("MySQL takes the rows");
        // Anywhere in the first part of it: how long it takes into the log is the machine's matter.
        let moment = before + scene.rng.random_range(1_000..8_000);
        let ends = eventually(
            "the import is on its way, and ahead of the counts",
            TAKES_OVER,
            async || {
                let far_enough = scene.progress.length().await? >= moment;
                let ends = scene.progress.ends().await?;
                (far_enough && scene.progress.behind(&ends).await > IN_HAND).then_some(ends)
            },
        )
        .await;
        stack::kill("aggregator").await;
        scene.provoked += 1;
        let behind = scene.progress.behind(&ends).await;
        scene.reach("records in hand at a kill", behind);
        start_what_is_missing().await;
        scene.progress.moves().await;
    }
}

/// L13: SIGTERM and kill −9 with a half-filled batch, 20 times at random moments.
pub(super) async fn terminate(scene: &mut Scene) {
    stack::terminate("aggregator").await;
    for round in 0..20 {
        let aggregator = Aggregator::start(1, &HALF_FILLED);
        owns_everything(scene, &aggregator).await;
        scene.progress.moves().await;
        scene.any_moment(0..2_000).await;
        let ends = scene.progress.ends().await.expect("Kafka answers");
        if round % 2 == 0 {
            aggregator.terminate().await;
        } else {
            aggregator.kill().await;
        }
        scene.provoked += 1;
        let half_filled = scene.progress.behind(&ends).await > 0;
        scene.reach("batches in hand at an end", u64::from(half_filled));
    }
}

/// Kill −9 between the fence and the counts: nothing is written.
pub(super) async fn kill_after_fence(scene: &mut Scene) {
    let counts = doc! {
        "failCommands": ["update"], "namespace": "likewise.counts_1",
        "blockConnection": true, "blockTimeMS": 3_000,
    };
    kill_at(scene, counts, 1, "kills between fence and counts").await;
}

/// Kill −9 when everything is written and not committed: nothing is written.
pub(super) async fn kill_before_commit(scene: &mut Scene) {
    let commit = doc! {
        "failCommands": ["commitTransaction"], "blockConnection": true, "blockTimeMS": 3_000,
    };
    kill_at(scene, commit, 1, "kills before the commit").await;
}

/// Kill −9 when the commit took effect and nobody was told: the next one finds it in the checkpoint.
pub(super) async fn kill_after_commit(scene: &mut Scene) {
    let commit = doc! {
        "failCommands": ["commitTransaction"],
        "writeConcernError": { "code": 64, "errmsg": "told after the commit took effect" },
    };
    // By the third time, the first reply was read: the commit took effect.
    kill_at(scene, commit, 3, "kills after a commit that was not told").await;
}

async fn kill_at(scene: &mut Scene, point: Document, times: i64, what: &'static str) {
    stack::terminate("aggregator").await;
    for _ in 0..3 {
        let uri = stack::mongodb_uri(APP);
        let aggregator = Aggregator::start(1, &[("LIKEWISE_MONGODB_URI", &uri)]);
        owns_everything(scene, &aggregator).await;
        scene.any_moment(0..1_000).await;
        let point = FailPoint::on(APP, "alwaysOn", point.clone()).await;
        point.entered(times, Duration::from_secs(20)).await;
        aggregator.kill().await;
        scene.provoked += 1;
        let entered = point.off().await;
        scene.reach(what, u64::from(entered > 0));
    }
}

/// L10: frozen with a batch in hand for longer than the group waits, while another takes over. It
/// wakes before that one has committed anything, so that the epoch alone tells it to drop its batch.
pub(super) async fn freeze(scene: &mut Scene) {
    stack::terminate("aggregator").await;
    for _ in 0..2 {
        let frozen = freeze_in_a_commit(scene).await;
        let lines = Lines::in_file(frozen.log().clone());
        let successor = Aggregator::start(2, &SLOW);
        owns_everything(scene, &successor).await;
        frozen.signal("CONT").await;
        eventually("the one that was frozen is fenced", Duration::from_secs(30), async || {
            (lines.with(FENCED) > 0).then_some(())
        })
        .await;
        scene.reach("commits fenced", lines.with(FENCED));
        scene.progress.moves().await;
        frozen.terminate().await;
        successor.terminate().await;
    }
}

/// L10, the other way round: it wakes before its successor has claimed. Its commit stands, and then
/// the successor goes on from there.
pub(super) async fn wakes_first(scene: &mut Scene) {
    stack::terminate("aggregator").await;
    for _ in 0..2 {
        let frozen = freeze_in_a_commit(scene).await;
        let claim = doc! {
            "failCommands": ["find"], "namespace": "likewise.checkpoints",
            "blockConnection": true, "blockTimeMS": 3_000,
        };
        let point = FailPoint::on(APP, "alwaysOn", claim).await;
        let uri = stack::mongodb_uri(APP);
        let successor = Aggregator::start(2, &[("LIKEWISE_MONGODB_URI", &uri)]);
        point.entered(1, TAKES_OVER).await;
        let before = scene.progress.partitions().await.expect("MongoDB answers");
        frozen.signal("CONT").await;
        eventually("the one that was frozen commits", Duration::from_secs(20), async || {
            let now = scene.progress.partitions().await?;
            let commits = now.iter().zip(&before).any(|(now, before)| {
                now.next_offset > before.next_offset && now.owner == frozen.owner()
            });
            commits.then_some(())
        })
        .await;
        scene.reach("commits before the successor's claim", 1);
        point.off().await;
        scene.progress.moves().await;
        frozen.terminate().await;
        successor.terminate().await;
    }
}

/// Freezes an aggregator that owns everything in a commit that does not take effect, so that it runs
/// the batch in its hand again when it wakes.
async fn freeze_in_a_commit(scene: &mut Scene) -> Aggregator {
    let app = "fault-frozen";
    let uri = stack::mongodb_uri(app);
    let frozen = Aggregator::start(1, &[("LIKEWISE_MONGODB_URI", &uri)]);
    owns_everything(scene, &frozen).await;
    scene.progress.moves().await;
    scene.any_moment(0..1_000).await;
    let held = doc! {
        "failCommands": ["commitTransaction"], "blockConnection": true, "blockTimeMS": 1_000,
        "errorCode": 112, "errorLabels": ["TransientTransactionError"],
    };
    let point = FailPoint::on(app, "alwaysOn", held).await;
    point.entered(1, Duration::from_secs(20)).await;
    frozen.signal("STOP").await;
    scene.provoked += 1;
    point.off().await;
    frozen
}

/// Two more come and go every few seconds, politely or not.
pub(super) async fn come_and_go(scene: &mut Scene) {
    let before = scene.progress.claims().await;
    let mut others: [Option<Aggregator>; 2] = [None, None];
    for _ in 0..16 {
        scene.any_moment(2_000..5_000).await;
        let at = scene.rng.random_range(0..others.len());
        match others[at].take() {
            None => {
                let number = 1 + u16::try_from(at).expect("two of them");
                others[at] = Some(Aggregator::start(number, &[]));
            }
            Some(other) if scene.rng.random_bool(0.5) => other.kill().await,
            Some(other) => other.terminate().await,
        }
        scene.provoked += 1;
    }
    for other in others.into_iter().flatten() {
        other.terminate().await;
    }
    scene.progress.moves().await;
    let claims = scene.progress.claims().await - before;
    scene.reach("claims", claims);
}

async fn owns_everything(scene: &Scene, aggregator: &Aggregator) {
    eventually("it owns every partition", TAKES_OVER, async || {
        let partitions = scene.progress.partitions().await?;
        partitions.iter().all(|partition| partition.owner == aggregator.owner()).then_some(())
    })
    .await;
}
