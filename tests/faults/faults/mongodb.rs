//! MongoDB that dies, stands still, steps down, lies about commits, or is slow.

use std::time::Duration;

use likewise_tests::{FailPoint, setting, start_what_is_missing};
use mongodb::bson::{Document, doc};
use rand::RngExt as _;

use crate::metrics::{Counters, Lines};
use crate::proxy::Proxy;
use crate::scene::Scene;
use crate::stack::{self, Aggregator};

/// The application name of the stack's own processes; of them the aggregator alone has transactions.
const APP: &str = "likewise";
/// How often some commands fail, and how many at most: some of them are hidden by the driver, which
/// sends a commit a second time by itself.
const BURSTS: u32 = 5;
const MOST_FAILURES: i64 = 6;
/// A driver that hears of another primary looks for it, and no server tells it that there is none.
const LOOKS_FOR_PRIMARY: Duration = Duration::from_secs(90);

const RETRIES: &str = "likewise_transaction_retries_total";
const COMMIT_RETRIES: &str = "likewise_commit_retries_total";
const INTERRUPTED: &str = "counting was interrupted";
const TRANSIENT: &str = "a transaction met a transient error";
const UNKNOWN: &str = "the outcome of a commit is not known";

/// Kill −9, and started again soon.
pub(super) async fn kill(scene: &mut Scene) {
    let lines = Lines::of("aggregator");
    for _ in 0..4 {
        scene.any_moment(1_000..4_000).await;
        stack::kill("mongodb").await;
        scene.provoked += 1;
        scene.any_moment(0..3_000).await;
        start_what_is_missing().await;
        scene.progress.moves().await;
    }
    scene.reach("batches interrupted or run again", interruptions(&lines));
}

/// SIGSTOP for 45 s.
pub(super) async fn freeze(scene: &mut Scene) {
    let lines = Lines::of("aggregator");
    scene.any_moment(1_000..4_000).await;
    scene.provoked += 1;
    stack::freeze("mongodb", Duration::from_secs(45)).await;
    scene.progress.moves().await;
    scene.reach("batches interrupted or run again", interruptions(&lines));
}

/// The primary steps down, and is elected again.
pub(super) async fn step_down(scene: &mut Scene) {
    let lines = Lines::of("aggregator");
    for _ in 0..4 {
        scene.any_moment(1_000..3_000).await;
        let client = mongodb::Client::with_uri_str(setting("MONGODB_URI")).await;
        let admin = client.expect("a client").database("admin");
        // A set of one member has nobody to step down for.
        let command = doc! { "replSetStepDown": 4, "force": true };
        admin.run_command(command).await.expect("it steps down");
        scene.provoked += 1;
        tokio::time::sleep(Duration::from_secs(4)).await;
        start_what_is_missing().await;
        scene.progress.moves().await;
    }
    scene.reach("batches interrupted or run again", interruptions(&lines));
}

fn interruptions(lines: &Lines) -> u64 {
    [INTERRUPTED, TRANSIENT, UNKNOWN].iter().map(|text| lines.with(text)).sum()
}

/// A commit takes effect, and its reply says that nobody knows.
pub(super) async fn commit_reply_lost(scene: &mut Scene) {
    let lost = doc! {
        "failCommands": ["commitTransaction"],
        "writeConcernError": { "code": 64, "errmsg": "told after the commit took effect" },
    };
    fails(scene, lost, COMMIT_RETRIES, "commits sent again").await;
}

/// A statement, or the commit, meets a write conflict.
pub(super) async fn write_conflict(scene: &mut Scene) {
    let conflict = doc! {
        "failCommands": ["update", "commitTransaction"],
        "errorCode": 112, "errorLabels": ["TransientTransactionError"],
    };
    fails(scene, conflict, RETRIES, "transactions run again").await;
}

/// The server says that it is not the primary any more, before it does anything.
pub(super) async fn not_primary(scene: &mut Scene) {
    let refused = doc! {
        "failCommands": ["commitTransaction"], "errorCode": 10107,
        "errorLabels": ["RetryableWriteError"],
    };
    fails(scene, refused, COMMIT_RETRIES, "commits sent again").await;
    let refused = doc! {
        "failCommands": ["update"], "errorCode": 10107,
        "errorLabels": ["TransientTransactionError"],
    };
    fails(scene, refused, RETRIES, "transactions run again").await;
}

/// A few of the aggregator's commands fail, again and again.
async fn fails(scene: &mut Scene, how: Document, counter: &str, what: &'static str) {
    let counters = Counters::follow(&setting("AGGREGATOR_URL")).await;
    for _ in 0..BURSTS {
        let times = scene.rng.random_range(1..=MOST_FAILURES);
        let point = FailPoint::on(APP, doc! { "times": times }, how.clone()).await;
        point.entered(times, LOOKS_FOR_PRIMARY).await;
        scene.provoked += point.off().await;
        scene.any_moment(0..1_000).await;
    }
    scene.progress.moves().await;
    scene.reach(what, counters.added(counter).await);
}

/// An aggregator whose link to MongoDB is slow, and breaks now and then.
pub(super) async fn slow(scene: &mut Scene) {
    let proxy = Proxy::start(&setting("MONGODB_URI"), &mut scene.rng).await;
    let uri = format!("mongodb://{}/?directConnection=true", proxy.address());
    let aggregator = Aggregator::start(1, &[("LIKEWISE_MONGODB_URI", &uri)]);
    let lines = Lines::in_file(aggregator.log().clone());
    let counters = Counters::follow(aggregator.url()).await;
    for _ in 0..6 {
        scene.any_moment(4_000..8_000).await;
        proxy.cut();
        scene.provoked += 1;
    }
    proxy.heal();
    scene.progress.moves().await;
    scene.reach("batches interrupted or run again", interruptions(&lines));
    scene.reach(
        "records counted over the slow link",
        counters.added("likewise_records_total").await,
    );
    aggregator.terminate().await;
}
