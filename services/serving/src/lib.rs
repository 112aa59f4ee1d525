//! What every role that listens shares: start and stop, telemetry, health, conditions,
//! callers, problems.

mod app;
mod caller;
mod conditions;
mod cursor;
mod database;
mod health;
mod layers;
mod openapi;
mod page;
mod problem;
mod request;
mod server;
mod settings;
mod tasks;
mod telemetry;
mod time;
mod writes;

pub use app::app;
pub use caller::{AnyCaller, Caller, CallerSettings, Callers, HasCallers, User};
pub use conditions::{Condition, Conditions, Met};
pub use cursor::{Cursors, List};
pub use health::{Readiness, ready_when};
pub use openapi::{Id, describe, documentation};
pub use page::Page;
pub use problem::{Kind, Problem, ProblemBody};
pub use request::{NoQuery, Parameters, PostPath, UserPath};
pub use server::{serve, shutdown_on_signal};
pub use settings::HttpSettings;
pub use tasks::Tasks;
pub use telemetry::{LogFormat, Telemetry};
pub use time::{parse_rfc3339, rfc3339};
pub use writes::WriteLimit;
