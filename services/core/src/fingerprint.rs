//! Knowing a record of the log again: a topic that was deleted and made anew has other ones.

use murmur2::{KAFKA_SEED, murmur2};

/// A record's key and value in 32 bits. Two different records have the same one by chance, once in
/// four thousand million times; it guards against accidents, not against an adversary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub u32);

impl Fingerprint {
    /// Of a record; a missing key or value is another record than an empty one.
    pub fn of(key: Option<&[u8]>, value: Option<&[u8]>) -> Self {
        let part =
            |bytes: Option<&[u8]>| bytes.map_or(u32::MAX, |bytes| murmur2(bytes, KAFKA_SEED));
        let parts = [part(key).to_be_bytes(), part(value).to_be_bytes()].concat();
        Self(murmur2(&parts, KAFKA_SEED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_known_again_by_its_key_and_value() {
        let of = |key: &'static str, value: &'static str| {
            Fingerprint::of(Some(key.as_bytes()), Some(value.as_bytes()))
        };
        assert_eq!(of("p1", "{}"), of("p1", "{}"));
        assert_ne!(of("p1", "{}"), of("p2", "{}"));
        assert_ne!(of("p1", "{}"), of("p1", "[]"));
        assert_ne!(Fingerprint::of(None, None), Fingerprint::of(Some(b""), Some(b"")));
    }
}
