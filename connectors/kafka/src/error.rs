//! What a caller of Kafka can do about a failure.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// A failed call, by the decision that it asks for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The next offset is not in the log: claim again, and look at its bounds.
    #[error("the next offset is outside the log: {0}")]
    OutsideLog(KafkaError),
    /// Kafka failed in a way that librdkafka goes on from by itself.
    #[error("Kafka is not available: {0}")]
    Unavailable(KafkaError),
    /// The client can no longer be used: end the process.
    #[error("the Kafka client failed for good: {0}")]
    Fatal(KafkaError),
    /// There is no such topic.
    #[error("there is no topic {0}: run `likewise topics`")]
    NoTopic(String),
    /// A topic that exists with other settings.
    #[error("topic {topic} has {setting} = {found}, {expected} is needed")]
    TopicDiffers {
        /// Which topic.
        topic: String,
        /// Which setting.
        setting: String,
        /// What it has.
        found: String,
        /// What is needed.
        expected: String,
    },
    /// A topic could not be made.
    #[error("Kafka refused topic {topic}: {code}")]
    TopicRefused {
        /// Which topic.
        topic: String,
        /// Why.
        code: RDKafkaErrorCode,
    },
    /// `kafka/topics.json`, which is part of the program, is not of the known shape.
    #[error("kafka/topics.json is not valid")]
    Definition(#[source] serde_json::Error),
}

impl From<KafkaError> for Error {
    fn from(error: KafkaError) -> Self {
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::OffsetOutOfRange | RDKafkaErrorCode::AutoOffsetReset) => {
                Self::OutsideLog(error)
            }
            Some(RDKafkaErrorCode::Fatal) => Self::Fatal(error),
            _ => Self::Unavailable(error),
        }
    }
}
