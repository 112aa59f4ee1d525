//! Which Kafka partition a key falls into.

use murmur2::{KAFKA_SEED, murmur2};

/// The partition of a key in a topic of `partitions`, as Kafka's default partitioner (and so
/// Kafka Connect's producer) chooses it: `toPositive(murmur2(key)) % partitions`.
///
/// # Panics
/// If `partitions` is zero.
pub fn partition_of(key: &str, partitions: u32) -> u32 {
    (murmur2(key.as_bytes(), KAFKA_SEED) & 0x7fff_ffff) % partitions
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
    fn each_partition_has_a_mark_key_that_falls_into_it() {
        for partitions in [1, 4, 64] {
            for partition in 0..partitions {
                assert_eq!(partition_of(&mark_key(partition, partitions), partitions), partition);
            }
        }
    }
}
