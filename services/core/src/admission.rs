//! Whether, and where, a partition of a generation may be counted.
//!
//! Counting never starts over by itself and never jumps: whatever would need one is a [`Refusal`]
//! that names the command to run.

use std::collections::BTreeSet;

use crate::{Checkpoint, Fingerprint, Offset};

/// The number of a generation, from 1.
pub type GenerationId = i64;

/// One complete set of counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Its number.
    pub id: GenerationId,
    /// Whether it is still counted.
    pub state: GenerationState,
    /// Where in each partition of the log it starts; as many as the topic had partitions.
    pub starts: Vec<Offset>,
    /// The partitions that were claimed at least once, and so must have a checkpoint.
    pub opened: BTreeSet<u32>,
    /// Why nothing of it may be counted until an operator has put it right.
    pub halted: Option<String>,
}

impl Generation {
    /// The number of partitions it counts.
    pub fn partitions(&self) -> u32 {
        u32::try_from(self.starts.len()).expect("a topic has fewer than 2^32 partitions")
    }
}

/// Whether a generation is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenerationState {
    /// It is counted.
    Counting,
    /// It is not, and its counts may be gone.
    Dropped,
}

/// What the log holds of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBounds {
    /// How many partitions the topic has.
    pub partitions: u32,
    /// The first offset that is still there.
    pub low: Offset,
    /// The offset behind the last record.
    pub high: Offset,
}

/// How a partition may be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// For the first time, from where the generation starts.
    Open(Checkpoint),
    /// From its checkpoint.
    Resume(Checkpoint),
}

/// Why a partition may not be counted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such generation.
    #[error(
        "MongoDB has no generation {0}: run `likewise migrate` for a new system, `likewise rebuild` if the counts were lost"
    )]
    NoGeneration(GenerationId),
    /// The generation was dropped.
    #[error("generation {0} was dropped: it is not counted any more")]
    Dropped(GenerationId),
    /// Somebody found that counting on would be wrong.
    #[error("generation {0} is halted: {1}")]
    Halted(GenerationId, String),
    /// Another number of partitions.
    #[error(
        "the topic has {found} partitions, generation {generation} counts {expected}: posts have moved; run `likewise rebuild --from-here`"
    )]
    PartitionsChanged {
        /// Which generation.
        generation: GenerationId,
        /// How many it counts.
        expected: u32,
        /// How many the topic has.
        found: u32,
    },
    /// It was opened before, and its checkpoint is gone.
    #[error(
        "partition {0} was counted before but has no checkpoint: counts may be lost; run `likewise rebuild`"
    )]
    CheckpointLost(u32),
    /// The log no longer holds what comes next.
    #[error(
        "partition {partition} of the log starts at offset {low}, counting must go on at {next_offset}: records are lost; run `likewise rebuild --recount`"
    )]
    LogStartsLater {
        /// Which partition.
        partition: u32,
        /// The first offset that is still there.
        low: Offset,
        /// The first offset that is not counted.
        next_offset: Offset,
    },
    /// The log ends before what was counted.
    #[error(
        "partition {partition} of the log ends at offset {high}, but was counted up to {next_offset}: it is another log; run `likewise rebuild --from-here`"
    )]
    LogEndsEarlier {
        /// Which partition.
        partition: u32,
        /// The offset behind the last record.
        high: Offset,
        /// The first offset that is not counted.
        next_offset: Offset,
    },
    /// The last record that was counted is not there any more, and the log does not begin behind it.
    #[error(
        "partition {partition} of the log has another record at offset {offset} than was counted: it is another log, made anew under the same name; run `likewise rebuild --from-here`"
    )]
    AnotherLog {
        /// Which partition.
        partition: u32,
        /// Where.
        offset: Offset,
    },
}

/// Where a claimed partition is read from: from the last record that was counted, where the log still
/// holds it, because by it the log is known again ([`know_again`]).
pub fn read_from(checkpoint: &Checkpoint, low: Offset) -> Offset {
    match checkpoint.last_record {
        Some(_) if low < checkpoint.next_offset => checkpoint.next_offset - 1,
        _ => checkpoint.next_offset,
    }
}

/// Checks the first record that comes from [`read_from`], at `offset`. A log that was made anew under the
/// same name and has grown past the checkpoint has another one there.
pub fn know_again(
    partition: u32,
    checkpoint: &Checkpoint,
    offset: Offset,
    found: Fingerprint,
) -> Result<(), Refusal> {
    let last = checkpoint.next_offset - 1;
    match checkpoint.last_record {
        Some(expected) if offset != last || found != expected => {
            Err(Refusal::AnotherLog { partition, offset: last })
        }
        _ => Ok(()),
    }
}

/// Decides how `partition` may be counted, from what MongoDB and Kafka hold of it.
pub fn admit(
    id: GenerationId,
    generation: Option<&Generation>,
    partition: u32,
    checkpoint: Option<Checkpoint>,
    log: LogBounds,
) -> Result<Admission, Refusal> {
    let generation = generation.ok_or(Refusal::NoGeneration(id))?;
    if generation.state == GenerationState::Dropped {
        return Err(Refusal::Dropped(id));
    }
    if let Some(reason) = &generation.halted {
        return Err(Refusal::Halted(id, reason.clone()));
    }
    let start = generation.starts.get(partition as usize);
    let (Some(start), true) = (start, generation.partitions() == log.partitions) else {
        return Err(Refusal::PartitionsChanged {
            generation: id,
            expected: generation.partitions(),
            found: log.partitions,
        });
    };
    let admission = match checkpoint {
        Some(checkpoint) => Admission::Resume(checkpoint),
        None if generation.opened.contains(&partition) => {
            return Err(Refusal::CheckpointLost(partition));
        }
        None => Admission::Open(Checkpoint::at(*start)),
    };
    let (Admission::Open(checkpoint) | Admission::Resume(checkpoint)) = &admission;
    let next_offset = checkpoint.next_offset;
    if next_offset < log.low {
        return Err(Refusal::LogStartsLater { partition, low: log.low, next_offset });
    }
    if next_offset > log.high {
        return Err(Refusal::LogEndsEarlier { partition, high: log.high, next_offset });
    }
    Ok(admission)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation(opened: &[u32]) -> Generation {
        Generation {
            id: 1,
            state: GenerationState::Counting,
            starts: vec![0, 7],
            opened: opened.iter().copied().collect(),
            halted: None,
        }
    }

    const LOG: LogBounds = LogBounds { partitions: 2, low: 0, high: 10 };

    #[test]
    fn a_partition_opens_once_at_the_start_and_resumes_ever_after() {
        assert_eq!(
            admit(1, Some(&generation(&[])), 1, None, LOG),
            Ok(Admission::Open(Checkpoint::at(7)))
        );
        assert_eq!(
            admit(1, Some(&generation(&[1])), 1, Some(Checkpoint::at(9)), LOG),
            Ok(Admission::Resume(Checkpoint::at(9)))
        );
    }

    #[test]
    fn nothing_starts_over_or_jumps() {
        let refusal = |generation: Option<&Generation>, checkpoint, log| {
            admit(1, generation, 1, checkpoint, log).expect_err("must be refused")
        };
        let opened = generation(&[1]);
        assert_eq!(refusal(None, None, LOG), Refusal::NoGeneration(1));
        let dropped = Generation { state: GenerationState::Dropped, ..generation(&[]) };
        assert_eq!(refusal(Some(&dropped), None, LOG), Refusal::Dropped(1));
        let halted = Generation { halted: Some("because".into()), ..generation(&[]) };
        assert_eq!(refusal(Some(&halted), None, LOG), Refusal::Halted(1, "because".into()));
        assert_eq!(refusal(Some(&opened), None, LOG), Refusal::CheckpointLost(1));
        let raised = LogBounds { partitions: 8, ..LOG };
        assert!(matches!(
            refusal(Some(&opened), Some(Checkpoint::at(9)), raised),
            Refusal::PartitionsChanged { expected: 2, found: 8, .. }
        ));
        let cut = LogBounds { low: 10, ..LOG };
        assert!(matches!(
            refusal(Some(&opened), Some(Checkpoint::at(9)), cut),
            Refusal::LogStartsLater { low: 10, next_offset: 9, .. }
        ));
        assert!(matches!(
            refusal(Some(&opened), Some(Checkpoint::at(11)), LOG),
            Refusal::LogEndsEarlier { high: 10, next_offset: 11, .. }
        ));
        assert!(matches!(
            refusal(Some(&generation(&[])), None, LogBounds { low: 8, ..LOG }),
            Refusal::LogStartsLater { low: 8, next_offset: 7, .. }
        ));
    }

    #[test]
    fn a_log_is_known_again_by_the_last_record_counted() {
        let [ours, other] = ["ours", "other"].map(|v| Fingerprint::of(None, Some(v.as_bytes())));
        let fresh = Checkpoint::at(7);
        assert_eq!(read_from(&fresh, 0), 7, "nothing was counted yet");
        assert_eq!(know_again(1, &fresh, 7, other), Ok(()));

        let counted = Checkpoint { last_record: Some(ours), ..Checkpoint::at(7) };
        assert_eq!((read_from(&counted, 0), read_from(&counted, 6)), (6, 6));
        assert_eq!(read_from(&counted, 7), 7, "the record was cut off with all before it");
        assert_eq!(know_again(1, &counted, 6, ours), Ok(()));
        let another = Err(Refusal::AnotherLog { partition: 1, offset: 6 });
        assert_eq!(know_again(1, &counted, 6, other), another);
        assert_eq!(know_again(1, &counted, 9, ours), another);
    }
}
