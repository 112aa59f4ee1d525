//! MySQL that dies or is started again.

use likewise_tests::start_what_is_missing;
use rand::RngExt as _;

use crate::big::{self, Rows};
use crate::oracle;
use crate::scene::Scene;
use crate::stack;

const ROWS: u64 = 60_000;

#[derive(Clone, Copy)]
enum End {
    Kill,
    Restart,
}

/// Kill −9 while calls are under way, while a large deletion runs, and while its rows are being sent.
pub(super) async fn kill(scene: &mut Scene) {
    end(scene, End::Kill).await;
}

/// The same with a clean restart.
pub(super) async fn restart(scene: &mut Scene) {
    end(scene, End::Restart).await;
}

async fn end(scene: &mut Scene, how: End) {
    let unknown = scene.load.record().unknown;
    for _ in 0..2 {
        scene.any_moment(500..3_000).await;
        end_and_start(scene, how).await;
    }
    let unknown = scene.load.record().unknown - unknown;
    scene.reach("calls with an unknown outcome", unknown);

    let rows = Rows::new(scene, ROWS);
    rows.insert().await.expect("it does not panic").expect("MySQL takes the rows");
    let deleting = rows.delete();
    scene.any_moment(50..500).await;
    end_and_start(scene, how).await;
    let cut = deleting.await.expect("it does not panic").is_err();
    scene.reach("deletions cut", u64::from(cut));

    let rows = Rows::new(scene, ROWS);
    rows.insert().await.expect("it does not panic").expect("MySQL takes the rows");
    oracle::drained().await.expect("it is drained");
    let before = scene.progress.length().await.expect("Kafka answers");
    let deleted = rows.delete();
    let until = scene.rng.random_range(10_000..30_000);
    let asked_at = big::grown(scene, before, until).await;
    end_process(how).await;
    scene.provoked += 1;
    let grown = match how {
        End::Kill => scene.progress.length().await.expect("Kafka answers") - before,
        // A server that was asked to end sends on for as long as it is busy with that.
        End::Restart => asked_at,
    };
    scene.reach("ends while a deletion was being sent", u64::from(grown < ROWS));
    // It was committed before its rows were sent; only the answer may be lost.
    let _ = deleted.await.expect("it does not panic");
    start_what_is_missing().await;
    scene.progress.moves().await;
}

async fn end_and_start(scene: &mut Scene, how: End) {
    end_process(how).await;
    scene.provoked += 1;
    scene.any_moment(0..2_000).await;
    start_what_is_missing().await;
    scene.progress.moves().await;
}

async fn end_process(how: End) {
    match how {
        End::Kill => stack::kill("mysql").await,
        End::Restart => stack::terminate("mysql").await,
    }
}
