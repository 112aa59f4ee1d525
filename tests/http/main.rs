//! What every call meets before its handler: connections, limits, callers and conventions, against the
//! stack's own roles, or a role of the test's where a limit must be near.

mod callers;
mod connections;
mod conventions;
mod encryption;
mod limits;
mod lock;
mod raw;
mod role;
mod stopping;
