//! What a caller of MySQL can do about a failure.

use mysql_async::{DriverError, Error as Driver};

/// A failed call, by the decision that it asks for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings are wrong: fix them.
    #[error("the MySQL URL is not valid")]
    Settings(#[source] mysql_async::UrlError),
    /// No answer within the deadline: the statement may or may not have taken effect.
    #[error("MySQL did not answer within {0} ms")]
    Timeout(u128),
    /// It cannot be reached, or takes no writes at the moment: try again later.
    #[error("MySQL is not available: {}", innermost(.0))]
    Unavailable(Driver),
    /// Another transaction was in the way: the same statement may be run again at once.
    #[error("MySQL met a deadlock or a lock that was held too long: {}", innermost(.0))]
    Conflict(Driver),
    /// Anything else: trying again does not help.
    #[error("MySQL refused the statement: {}", innermost(.0))]
    Refused(Driver),
    /// The tables or the marks are missing.
    #[error("the schema is not there: run `likewise migrate`")]
    NotMigrated,
    /// A migration failed.
    #[error("a migration failed")]
    Migration(#[source] refinery::Error),
    /// Another migration holds the lock.
    #[error("another migration has been running for {0} s")]
    MigrationRunning(u64),
}

/// `ER_LOCK_DEADLOCK`, `ER_LOCK_WAIT_TIMEOUT`.
const CONFLICT: [u16; 2] = [1213, 1205];
/// `ER_CON_COUNT_ERROR`, `ER_SERVER_SHUTDOWN`, `ER_OPTION_PREVENTS_STATEMENT` (read-only: a replica),
/// `ER_QUERY_INTERRUPTED`, `ER_READ_ONLY_MODE`, `ER_QUERY_TIMEOUT`, `ER_SERVER_ISNT_AVAILABLE`,
/// `ER_SESSION_WAS_KILLED`, `ER_CLIENT_INTERACTION_TIMEOUT`.
const UNAVAILABLE: [u16; 9] = [1040, 1053, 1290, 1317, 1836, 3024, 3168, 3169, 4031];

impl From<Driver> for Error {
    fn from(error: Driver) -> Self {
        match &error {
            Driver::Io(_)
            | Driver::Driver(DriverError::ConnectionClosed | DriverError::PoolDisconnected) => {
                Self::Unavailable(error)
            }
            _ if is_conflict(&error) => Self::Conflict(error),
            Driver::Server(server) if UNAVAILABLE.contains(&server.code) => {
                Self::Unavailable(error)
            }
            _ => Self::Refused(error),
        }
    }
}

/// The driver's errors repeat their causes in their own text: the innermost says it once.
fn innermost(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), innermost)
}

/// Whether another transaction was in the way.
pub(crate) fn is_conflict(error: &Driver) -> bool {
    matches!(error, Driver::Server(server) if CONFLICT.contains(&server.code))
}

impl Error {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Timeout(_) | Self::Unavailable(_) | Self::Conflict(_))
    }
}
