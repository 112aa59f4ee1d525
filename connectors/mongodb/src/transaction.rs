//! One transaction, run until its outcome is known.
//!
//! The rules are those of MongoDB's transactions specification: after a
//! `TransientTransactionError` nothing was written, and the same statements run again; after an
//! `UnknownTransactionCommitResult` only the *commit* is sent again.

use std::future::Future;
use std::time::{Duration, Instant};

use mongodb::ClientSession;
use mongodb::error::{
    Error as Driver, TRANSIENT_TRANSACTION_ERROR, UNKNOWN_TRANSACTION_COMMIT_RESULT,
};
use mongodb::options::{ReadConcern, WriteConcern};

use crate::{Error, Store};

/// For how long a transaction is run again before the caller hears of it.
const RETRY_FOR: Duration = Duration::from_secs(20);
/// How long the statements of one run may take. The server ends a transaction by itself after its
/// `transactionLifetimeLimitSeconds` (5 in development), and the caller should hear of it before.
const RUN_DEADLINE: Duration = Duration::from_secs(4);
/// The pauses before a transaction is run again, or a commit is sent again: growing, so that whoever
/// is in the way gets done.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How a transaction ended that was not committed for certain.
#[derive(Debug)]
pub(crate) enum Aborted<E> {
    /// Nothing was written: the statements decided so, or the server.
    Nothing(E),
    /// The commit was sent and its outcome is not known.
    InDoubt(Error),
}

/// What went on before a transaction was committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retries {
    /// How often the statements ran again.
    pub(crate) transactions: u64,
    /// How often the commit was sent again.
    pub(crate) commits: u64,
}

impl Store {
    /// Runs the statements in a transaction and commits it. Not cancel-safe: a dropped future leaves the
    /// outcome unknown.
    pub(crate) async fn transact<S: Statements>(
        &self,
        statements: &S,
    ) -> Result<(S::Value, Retries), Aborted<S::Stop>> {
        let nothing = |error: Error| Aborted::Nothing(S::Stop::from(error));
        let mut session =
            self.client.start_session().await.map_err(|error| nothing(error.into()))?;
        let deadline = Instant::now() + RETRY_FOR;
        let mut pauses = Pauses(FIRST_PAUSE);
        let mut retries = Retries::default();
        loop {
            session
                .start_transaction()
                .read_concern(ReadConcern::snapshot())
                .write_concern(WriteConcern::majority())
                .await
                .map_err(|error| nothing(error.into()))?;
            let run_again = |error: &Driver| {
                error.contains_label(TRANSIENT_TRANSACTION_ERROR) && Instant::now() < deadline
            };
            let run = tokio::time::timeout(RUN_DEADLINE, statements.run(self, &mut session)).await;
            // A statement that was cut off may still reach the server: its transaction is never
            // committed, and ends there after its lifetime at the latest.
            let error = match run.unwrap_or_else(|_| Err(Stopped::Overdue)) {
                Ok(value) => {
                    match self.commit_session(&mut session, deadline, &mut retries).await {
                        Ok(()) => return Ok((value, retries)),
                        Err(error) if run_again(&error) => error,
                        // A write concern error may come after the commit took effect.
                        Err(error) => return Err(Aborted::InDoubt(error.into())),
                    }
                }
                Err(Stopped::Overdue) => {
                    // The session is of use to nobody before the server is done with the statement:
                    // the abort waits for that, and only then the session goes back to its pool.
                    tokio::spawn(async move { session.abort_transaction().await });
                    return Err(nothing(Error::Timeout(RUN_DEADLINE.as_millis())));
                }
                Err(Stopped::Driver(error)) => {
                    self.abort(&mut session).await;
                    if !run_again(&error) {
                        return Err(nothing(error.into()));
                    }
                    error
                }
                Err(Stopped::Decided(error)) => {
                    self.abort(&mut session).await;
                    return Err(Aborted::Nothing(error));
                }
            };
            retries.transactions += 1;
            tracing::info!(error = %error.kind, "a transaction met a transient error and is run again");
            pauses.pause().await;
        }
    }

    /// Best effort: the server ends by itself what is not aborted here.
    async fn abort(&self, session: &mut ClientSession) {
        let _ = tokio::time::timeout(self.deadline, session.abort_transaction()).await;
    }

    async fn commit_session(
        &self,
        session: &mut ClientSession,
        deadline: Instant,
        retries: &mut Retries,
    ) -> Result<(), Driver> {
        let mut pauses = Pauses(FIRST_PAUSE);
        loop {
            match session.commit_transaction().await {
                Err(error)
                    if error.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT)
                        && Instant::now() < deadline =>
                {
                    retries.commits += 1;
                    tracing::info!(error = %error.kind, "the outcome of a commit is not known: it is sent again");
                    pauses.pause().await;
                }
                outcome => return outcome,
            }
        }
    }
}

/// Doubles each time.
struct Pauses(Duration);

impl Pauses {
    async fn pause(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = LONGEST_PAUSE.min(self.0 * 2);
    }
}

/// The statements of a transaction. They may run more than once, so they change nothing but MongoDB.
pub(crate) trait Statements {
    /// What they answer.
    type Value;
    /// Why they may decide to stop.
    type Stop: From<Error>;

    /// Runs them once, in the session's transaction.
    fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> impl Future<Output = Result<Self::Value, Stopped<Self::Stop>>> + Send;
}

/// Why the statements of a transaction stopped.
#[derive(Debug)]
pub(crate) enum Stopped<E> {
    /// The driver failed; the error's labels tell what may be done.
    Driver(Driver),
    /// They decided so.
    Decided(E),
    /// They took too long.
    Overdue,
}

impl<E> From<Driver> for Stopped<E> {
    fn from(error: Driver) -> Self {
        Self::Driver(error)
    }
}
