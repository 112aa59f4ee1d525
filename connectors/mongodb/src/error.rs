//! What a caller of MongoDB can do about a failure.

use mongodb::error::{
    Error as Driver, ErrorKind, RETRYABLE_WRITE_ERROR, TRANSIENT_TRANSACTION_ERROR,
};

/// A failed call, by the decision that it asks for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings are wrong: fix them.
    #[error("the MongoDB URI is not valid")]
    Settings(#[source] Driver),
    /// No answer within the deadline.
    #[error("MongoDB did not answer within {0} ms")]
    Timeout(u128),
    /// It cannot be reached, or has no primary at the moment: try again later.
    #[error("MongoDB is not available: {}", brief(.0))]
    Unavailable(Driver),
    /// Anything else: trying again does not help.
    #[error("MongoDB refused the command: {}", brief(.0))]
    Refused(Driver),
    /// A reply that says less was done than was asked.
    #[error("MongoDB did not carry out every statement: {0}")]
    Incomplete(String),
    /// What is left of a generation whose own document is lost.
    #[error(
        "MongoDB has documents in {0} but no generation: its document was lost, and counting again on \
         top of them would double every count; run `likewise rebuild`"
    )]
    Remains(String),
    /// A document that this version did not write.
    #[error("a document in {collection} is not of the known shape: {what}")]
    Document {
        /// Which collection.
        collection: &'static str,
        /// What is wrong with it.
        what: String,
    },
}

/// `SnapshotUnavailable`: a collection or an index was made a moment ago.
const SNAPSHOT_UNAVAILABLE: i32 = 246;

impl From<Driver> for Error {
    fn from(error: Driver) -> Self {
        let transient = match error.kind.as_ref() {
            ErrorKind::Io(_)
            | ErrorKind::ServerSelection { .. }
            | ErrorKind::ConnectionPoolCleared { .. }
            | ErrorKind::DnsResolve { .. } => true,
            ErrorKind::Command(command) => command.code == SNAPSHOT_UNAVAILABLE,
            _ => false,
        } || error.contains_label(TRANSIENT_TRANSACTION_ERROR)
            || error.contains_label(RETRYABLE_WRITE_ERROR);
        if transient { Self::Unavailable(error) } else { Self::Refused(error) }
    }
}

/// The driver's own text holds the whole topology, or the server's whole reply.
fn brief(error: &Driver) -> String {
    match error.kind.as_ref() {
        ErrorKind::ServerSelection { .. } => "no primary was found in time".to_owned(),
        ErrorKind::Io(error) => error.to_string(),
        kind => kind.to_string(),
    }
}

impl Error {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Timeout(_) | Self::Unavailable(_))
    }
}
