//! The one binary: a role or an operator command per subcommand.

mod cli;
mod commands;
mod config;
mod connections;
mod listeners;
mod roles;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser as _;

use crate::cli::{Cli, Command};
use crate::config::Config;

/// How long calls that block may keep the process from ending: librdkafka's close is one.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ran = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")
        .and_then(|runtime| {
            let ran = runtime.block_on(run(cli));
            runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
            ran
        });
    ran.unwrap_or_else(|error| {
        eprintln!("likewise: {error:#}");
        ExitCode::FAILURE
    })
}

async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let config = || Config::load(cli.config.as_deref());
    match cli.command {
        Command::WriteApi => roles::write_api(&config()?).await,
        Command::ReadApi => roles::read_api(&config()?).await,
        Command::Aggregator => roles::aggregator(&config()?).await,
        Command::Reconciler => roles::reconciler(&config()?).await,
        Command::Topics => commands::topics::run(&config()?).await,
        Command::Migrate => commands::migrate::run(&config()?).await,
        Command::Connector { command } => commands::connector::run(&config()?, command).await,
        Command::Doctor { json } => commands::doctor::run(&config()?, json).await,
        Command::Status { json } => commands::status::run(&config()?, json).await,
        Command::Drain { timeout_s, json } => {
            commands::drain::run(&config()?, timeout_s, json).await
        }
        Command::Verify { json } => commands::verify::run(&config()?, json).await,
        Command::Recount(arguments) => commands::recount::run(&config()?, arguments).await,
        Command::Openapi { api } => commands::openapi::run(api),
        Command::DeadLetters { command } => commands::dead_letters::run(&config()?, command).await,
        Command::Load(arguments) => commands::load::run(&config()?, arguments).await,
        Command::Health { url } => commands::health::run(&url).await,
    }
}
