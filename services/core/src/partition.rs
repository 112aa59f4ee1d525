//! Which Kafka partition a key falls into.

use murmur2::{KAFKA_SEED, murmur2};

use crate::{Entry, Poison};

/// The partition of a key in a topic of `partitions`, as Kafka's default partitioner (and so
/// Kafka Connect's producer) chooses it: `toPositive(murmur2(key)) % partitions`.
///
/// # Panics
/// If `partitions` is zero.
pub fn partition_of(key: &str, partitions: u32) -> u32 {
    partition_of_bytes(key.as_bytes(), partitions)
}

fn partition_of_bytes(key: &[u8], partitions: u32) -> u32 {
    (murmur2(key, KAFKA_SEED) & 0x7fff_ffff) % partitions
}

/// What a record of `partition` is when its key is `key`: the same, or poison where the key belongs
/// elsewhere. In its own partition a post is counted in order; anywhere else it would be counted twice.
pub fn in_its_partition(
    entry: Entry,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    partition: u32,
    partitions: u32,
) -> Entry {
    let Entry::Change(change) = &entry else { return entry };
    let home = key.map(|key| partition_of_bytes(key, partitions));
    if home == Some(partition) {
        return entry;
    }
    Entry::poison(Poison::WrongPartition, change.row.post().cloned(), value.unwrap_or_default())
}

/// The key of the time mark that falls into `partition`: the first of `mark-<partition>-0`,
/// `mark-<partition>-1`, … that does.
pub fn mark_key(partition: u32, partitions: u32) -> String {
    (0u32..)
        .map(|attempt| format!("mark-{partition}-{attempt}"))
        .find(|key| partition_of(key, partitions) == partition)
        .expect("murmur2 spreads keys over all partitions")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BinlogFile, Change, Position, PostId, RowChange, Server, SourceName, Table};

    /// The expected hashes are those of Kafka's own test, `UtilsTest.testMurmur2`.
    #[test]
    fn hashes_are_those_of_kafkas_own_test() {
        for (key, hash) in [
            ("21", -973_932_308_i32),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes(), KAFKA_SEED).cast_signed(), hash, "{key}");
        }
    }

    #[test]
    fn a_change_is_counted_in_the_partition_of_its_key_alone() {
        let change = Entry::Change(Change {
            source: SourceName("s".into()),
            position: Position {
                server: Server { uuid: 1, tag: "".into(), server_id: 1 },
                transaction: 1,
                file: BinlogFile::parse("binlog.000001").expect("a binlog file"),
                pos: 4,
                row: 0,
                total_order: 1,
            },
            row: RowChange::Edge { post: PostId::from_log("abc"), delta: 1 },
        });
        let home = partition_of("abc", 4);
        for partition in 0..4 {
            let entry = in_its_partition(change.clone(), Some(b"abc"), None, partition, 4);
            assert_eq!(entry == change, partition == home);
        }
        let misplaced = in_its_partition(change.clone(), None, Some(b"value"), home, 4);
        let Entry::Poison { reason: Poison::WrongPartition, post, payload } = misplaced else {
            panic!("{misplaced:?}");
        };
        assert_eq!(
            (post, payload.as_slice()),
            (Some(PostId::from_log("abc")), b"value".as_slice())
        );
        let truncate = Entry::Truncate(Table::Likes);
        let placed = in_its_partition(truncate.clone(), None, None, 3, 4);
        assert_eq!(placed, truncate, "it has no key");
    }

    #[test]
    fn each_partition_has_a_mark_key_that_falls_into_it() {
        for partitions in [1, 4, 64] {
            for partition in 0..partitions {
                assert_eq!(partition_of(&mark_key(partition, partitions), partitions), partition);
            }
        }
    }
}
