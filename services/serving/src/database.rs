//! How a caller is told of an error of MySQL.

use likewise_mysql::Error;

use crate::{Kind, Problem};

/// Tells the log as well, once.
impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match &error {
            Error::Timeout(_) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "a call was cut off");
                Self::new(
                    Kind::Timeout,
                    "no answer from the database within the deadline; the call may have taken effect, and may be repeated",
                )
            }
            error if error.is_transient() => {
                tracing::warn!(error = error as &dyn std::error::Error, "MySQL is away");
                Self::new(Kind::Unavailable, "the database is not available; repeat the call later")
            }
            error => {
                tracing::error!(
                    error = error as &dyn std::error::Error,
                    "MySQL refused a statement"
                );
                Self::failed()
            }
        }
    }
}
