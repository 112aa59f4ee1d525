//! The one binary: a role or an operator command per subcommand.

mod cli;
mod commands;
mod config;
mod connect;
mod roles;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Command};
use crate::config::Config;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("likewise: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    if let Command::Health { url } = &cli.command {
        return commands::health::run(url).await;
    }
    let config = Config::load(cli.config.as_deref())?;
    match cli.command {
        Command::WriteApi => roles::write_api(&config).await,
        Command::ReadApi => roles::read_api(&config).await,
        Command::Aggregator => roles::aggregator(&config).await,
        Command::Topics => commands::topics::run(&config).await,
        Command::Migrate => commands::migrate::run(&config).await,
        Command::Connector { command } => commands::connector::run(&config, command).await,
        Command::Status { json } => commands::status::run(&config, json).await,
        Command::Drain { timeout_s, json } => commands::drain::run(&config, timeout_s, json).await,
        Command::Verify { json } => commands::verify::run(&config, json).await,
        Command::Load(arguments) => commands::load::run(&config, arguments).await,
        Command::Health { .. } => unreachable!("answered above, without a configuration"),
    }
}
