//! What the aggregator tells about itself.

use likewise_core::{Batch, Tally};
use likewise_mongodb::Correction;
use metrics::{Unit, counter, describe_counter, describe_histogram, gauge, histogram};

pub(crate) const FENCED: &str = "likewise_fenced_commits_total";
pub(crate) const RETRIES: &str = "likewise_transaction_retries_total";
pub(crate) const COMMIT_RETRIES: &str = "likewise_commit_retries_total";
pub(crate) const LOG_LOOKS: &str = "likewise_log_looks_total";
pub(crate) const IN_DOUBT: &str = "likewise_commits_in_doubt_total";

const CORRECTIONS: &str = "likewise_corrections_total";
const DRIFT: &str = "likewise_drift_total";
const REPEATS: &str = "likewise_repeats_total";
const DEAD_LETTERS: &str = "likewise_dead_letters_total";
const BATCH_RECORDS: &str = "likewise_batch_records";
const BATCH_POSTS: &str = "likewise_batch_posts";
const AS_OF: &str = "likewise_as_of_seconds";

/// One number of a tally.
type Tallied = fn(&Tally) -> u64;

/// What a tally counts, with the metric of each.
const TALLIED: [(&str, &str, Tallied); 10] = [
    ("likewise_records_total", "Records of the log that were taken in", |t| t.records),
    ("likewise_edges_total", "Edge changes that were counted", |t| t.edges),
    ("likewise_recounts_total", "Recounts that were applied", |t| t.recounts),
    ("likewise_marks_total", "Time marks that were passed", |t| t.marks),
    (REPEATS, "Changes dropped because they were counted before", |t| t.repeats),
    (
        "likewise_cannot_tell_total",
        "Changes not applied because their position cannot be compared",
        |t| t.cannot_tell,
    ),
    ("likewise_snapshot_rows_total", "Snapshot rows met, and not counted", |t| t.snapshot_rows),
    ("likewise_truncates_total", "TRUNCATEs met: counts are in doubt", |t| t.truncates),
    (
        "likewise_log_gaps_total",
        "Marks that do not follow the one before: the log has a gap",
        |t| t.gaps,
    ),
    ("likewise_skipped_total", "Null values and foreign tables' records", |t| {
        t.tombstones + t.foreign
    }),
];

/// Registers every counter, so that it can be read as 0 before its first event.
pub(crate) fn describe() {
    for (name, what, _) in TALLIED {
        describe_counter!(name, what);
        counter!(name).absolute(0);
    }
    for (name, what) in [
        (FENCED, "Batches dropped because somebody else had claimed the partition"),
        (RETRIES, "Transactions run again after a transient error"),
        (COMMIT_RETRIES, "Commits sent again because their outcome was unknown"),
        (IN_DOUBT, "Commits whose outcome only a new claim could tell"),
        (LOG_LOOKS, "Looks at whether the log is still the one that was counted"),
        (CORRECTIONS, "Recounts that found another number than was counted"),
        (DRIFT, "Likes by which those were wrong, without their sign"),
        (DEAD_LETTERS, "Records that could not be read"),
    ] {
        describe_counter!(name, what);
        counter!(name).absolute(0);
    }
    describe_histogram!(BATCH_RECORDS, Unit::Count, "Records of a batch");
    describe_histogram!(BATCH_POSTS, Unit::Count, "Posts whose count a batch moves");
}

/// Counts a batch that was committed.
pub(crate) fn committed(partition: u32, batch: &Batch) {
    for (name, _, of) in TALLIED {
        counter!(name).increment(of(&batch.tally));
    }
    counter!(DEAD_LETTERS).increment(batch.dead_letters.len() as u64);
    #[expect(clippy::cast_precision_loss, reason = "a histogram and a gauge take floats")]
    {
        histogram!(BATCH_RECORDS).record(batch.tally.records as f64);
        histogram!(BATCH_POSTS).record(batch.counts.len() as f64);
        if let Some(as_of) = batch.checkpoint.as_of() {
            let label = partition.to_string();
            gauge!(AS_OF, "partition" => label).set(as_of.0 as f64 / 1e6);
        }
    }
}

/// Counts what recounts made right, and says each aloud.
pub(crate) fn corrected(partition: u32, corrections: &[Correction]) {
    for Correction { drift, .. } in corrections {
        counter!(CORRECTIONS).increment(1);
        counter!(DRIFT).increment(drift.unsigned_abs());
    }
    for Correction { post, likes, offset, drift } in corrections.iter().take(SHOWN) {
        tracing::warn!(partition, offset, %post, likes, drift, "a recount made a count right");
    }
}

/// How many records of a batch are named in the log.
const SHOWN: usize = 10;

/// Says aloud what an operator must hear of.
pub(crate) fn alarm(partition: u32, batch: &Batch) {
    let tally = &batch.tally;
    if tally.truncates > 0 {
        tracing::error!(
            partition,
            "a table was truncated: every count is in doubt; run `likewise recount --all`"
        );
    }
    if tally.gaps > 0 {
        tracing::error!(
            partition,
            "the log has a gap: as_of stands still; run `likewise recount --all`"
        );
    }
    if tally.snapshot_rows > 0 {
        tracing::error!(
            partition,
            rows = tally.snapshot_rows,
            "snapshot rows in the log: the connector's snapshot.mode must be no_data"
        );
    }
    let (letters, repairs) = (batch.dead_letters.len(), batch.repairs.len());
    if letters > SHOWN || repairs > SHOWN {
        tracing::error!(
            partition,
            letters,
            repairs,
            "many records could not be read or compared; the first are"
        );
    }
    for letter in batch.dead_letters.iter().take(SHOWN) {
        tracing::error!(partition, offset = letter.offset, reason = %letter.reason, "a record could not be read and was kept aside");
    }
    for repair in batch.repairs.iter().take(SHOWN) {
        tracing::warn!(partition, offset = repair.offset, post = %repair.post, reason = %repair.reason, "a count is in doubt until its recount");
    }
}
