//! MongoDB that dies, stands still, steps down, lies about commits, or is slow.

use std::time::Duration;

use likewise_tests::{FailPoint, setting, start_what_is_missing};
use mongodb::bson::{Document, doc};

use crate::metrics::{Counters, Lines};
use crate::proxy::Proxy;
use crate::scene::Scene;
use crate::stack::{self, Aggregator};

/// The application name of the stack's own processes; of them the aggregator alone has transactions.
const APP: &str = "likewise";
/// For how long commands fail. The aggregator runs a transaction again for 20 s.
const FAILS_FOR: Duration = Duration::from_secs(8);

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
        "writeConcernError": { "code": 91, "errmsg": "told after the commit took effect" },
    };
    fails(scene, 0.3, lost, COMMIT_RETRIES, "commits sent again").await;
}

/// A statement, or the commit, meets a write conflict.
pub(super) async fn write_conflict(scene: &mut Scene) {
    let conflict = doc! {
        "failCommands": ["update", "commitTransaction"],
        "errorCode": 112, "errorLabels": ["TransientTransactionError"],
    };
    fails(scene, 0.2, conflict, RETRIES, "transactions run again").await;
}

/// The server says that it is not the primary any more, before it does anything.
pub(super) async fn not_primary(scene: &mut Scene) {
    let refused = doc! {
        "failCommands": ["commitTransaction"], "errorCode": 10107,
        "errorLabels": ["RetryableWriteError"],
    };
    fails(scene, 0.3, refused, COMMIT_RETRIES, "commits sent again").await;
    let refused = doc! {
        "failCommands": ["update"], "errorCode": 10107,
        "errorLabels": ["TransientTransactionError"],
    };
    fails(scene, 0.2, refused, RETRIES, "transactions run again").await;
}

/// A part of the aggregator's commands fails for a while.
async fn fails(scene: &mut Scene, part: f64, how: Document, counter: &str, what: &'static str) {
    let counters = Counters::follow(&setting("AGGREGATOR_URL")).await;
    let point = FailPoint::on(APP, doc! { "activationProbability": part }, how).await;
    tokio::time::sleep(FAILS_FOR).await;
    scene.provoked += point.off().await;
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
