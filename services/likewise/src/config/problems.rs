//! What settings cannot be, as far as no server has to be asked.

use super::{Config, PREFIX};
use crate::connections;

/// A key of HMAC-SHA-256 is as long as its output, at least.
const MIN_KEY_CHARACTERS: usize = 32;
/// A token of fewer characters can be guessed.
const MIN_TOKEN_CHARACTERS: usize = 16;

/// MongoDB takes 100,000 statements and 16 MiB in one command; a statement is about as long as its record's key.
const MAX_BATCH_RECORDS: u64 = 50_000;
const MAX_BATCH_BYTES: usize = 64 << 20;

impl Config {
    /// All of them, in one go.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, value) in [
            ("PARTITIONS", u64::from(self.partitions)),
            ("REPLICATION_FACTOR", u64::from(self.replication_factor)),
            ("MYSQL_MAX_CONNECTIONS", self.mysql_max_connections as u64),
            ("MONGODB_MAX_CONNECTIONS", u64::from(self.mongodb_max_connections)),
            ("REQUEST_DEADLINE_MS", self.request_deadline_ms),
            ("HEADER_DEADLINE_MS", self.header_deadline_ms),
            ("IDLE_DEADLINE_MS", self.idle_deadline_ms),
            ("SEND_DEADLINE_MS", self.send_deadline_ms),
            ("SHUTDOWN_GRACE_MS", self.shutdown_grace_ms),
            ("MAX_CONNECTIONS", self.max_connections as u64),
            ("MAX_CONCURRENT_REQUESTS", self.max_concurrent_requests as u64),
            ("STORE_DEADLINE_MS", self.store_deadline_ms),
            ("MARK_INTERVAL_MS", self.mark_interval_ms),
            ("IDLE_MARK_INTERVAL_MS", self.idle_mark_interval_ms),
            ("SEQ_RETENTION_S", self.seq_retention_s),
            ("COUNT_CACHE_ENTRIES", self.count_cache_entries),
            ("OWN_COUNT_WAIT_MS", self.own_count_wait_ms),
            ("STREAM_LISTENERS", self.stream_listeners as u64),
            ("BATCH_RECORDS", self.batch_records),
            ("BATCH_BYTES", self.batch_bytes as u64),
            ("PREFETCH_KIB", u64::from(self.prefetch_kib)),
        ] {
            if value == 0 {
                problems.push(format!("{PREFIX}{name} must be at least 1"));
            }
        }
        if self.store_deadline_ms >= self.request_deadline_ms {
            problems.push(format!(
                "{PREFIX}STORE_DEADLINE_MS must be below {PREFIX}REQUEST_DEADLINE_MS, or the caller never hears what was away"
            ));
        }
        for (name, wait) in [
            ("MIN_AS_OF_WAIT_MS", self.min_as_of_wait_ms),
            ("OWN_COUNT_WAIT_MS", self.own_count_wait_ms),
        ] {
            if wait >= self.request_deadline_ms {
                problems.push(format!(
                    "{PREFIX}{name} must be below {PREFIX}REQUEST_DEADLINE_MS, or the wait ends in no answer"
                ));
            }
        }
        if self.batch_records > MAX_BATCH_RECORDS || self.batch_bytes > MAX_BATCH_BYTES {
            problems.push(format!(
                "{PREFIX}BATCH_RECORDS and {PREFIX}BATCH_BYTES must be at most {MAX_BATCH_RECORDS} and {MAX_BATCH_BYTES}: a batch is one transaction"
            ));
        }
        for (name, key) in [("JWT_SECRET", &self.jwt_secret), ("CURSOR_KEY", &self.cursor_key)] {
            if key.as_ref().is_some_and(|key| key.expose().len() < MIN_KEY_CHARACTERS) {
                problems.push(format!(
                    "{PREFIX}{name} must have at least {MIN_KEY_CHARACTERS} characters"
                ));
            }
        }
        for (name, token) in
            [("SERVICE_TOKEN", &self.service_token), ("OPERATOR_TOKEN", &self.operator_token)]
        {
            if token.as_ref().is_some_and(|token| token.expose().len() < MIN_TOKEN_CHARACTERS) {
                problems.push(format!(
                    "{PREFIX}{name} must have at least {MIN_TOKEN_CHARACTERS} characters"
                ));
            }
        }
        if let (Some(service), Some(operator)) = (&self.service_token, &self.operator_token)
            && service.expose() == operator.expose()
        {
            problems.push(format!(
                "{PREFIX}SERVICE_TOKEN and {PREFIX}OPERATOR_TOKEN must differ: one token cannot name two callers"
            ));
        }
        if let Err(error) = self.http() {
            problems.push(format!("{error:#}"));
        }
        problems.extend(connections::problems(self));
        problems
    }
}
