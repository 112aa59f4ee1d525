//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Likes, counted exactly once.
///
/// Settings come from the environment (`LIKEWISE_…`) over a file. Data goes to stdout, progress and
/// logs to stderr.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// A TOML file with settings, named as in the environment but in lower case and without the prefix.
    #[arg(long, global = true, env = "LIKEWISE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Role: serve likes and unlikes (8080).
    WriteApi,
    /// Role: serve counts (8081).
    ReadApi,
    /// Role: count the change log (admin port 8082).
    Aggregator,
    /// Role: have posts in doubt recounted, and watch the connector (admin port 8084).
    Reconciler,
    /// Make the Kafka topics that are missing, and compare those that are there.
    Topics,
    /// Bring MySQL's schema up to date and make the first generation of counts. Safe to run twice.
    Migrate,
    /// The Debezium connector.
    Connector {
        #[command(subcommand)]
        command: ConnectorCommand,
    },
    /// Show how far each partition is counted, the connector's state and the live generation.
    ///
    /// Lag is in offsets of the log. Each of the connector's transactions ends in one of its own, which
    /// no reader sees: a partition that is counted to its end shows 1.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Wait until every like committed before this call is counted and no repair is open.
    ///
    /// Waits for a mark in the log, not for a time. Exit code 1 on time-out.
    Drain {
        /// How long to wait at most, in seconds.
        #[arg(long, default_value_t = 120)]
        timeout_s: u64,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Compare every post's count with MySQL. Run it after a drain, while nobody writes.
    ///
    /// Exit code 0 only when there is no difference.
    Verify {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write the truth about posts into the log, where their counts are set to it. Safe while likes flow.
    Recount(RecountArguments),
    /// Replay a CSV file `user_id,post_id,action` (`like` or `unlike`) through the write API.
    Load(LoadArguments),
    /// Exit with 0 when the address answers 200.
    Health {
        /// For example http://127.0.0.1:8080/readyz
        url: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConnectorCommand {
    /// Register the connector of `debezium/connector.json` and wait until changes flow.
    Apply {
        /// How long to wait at most, in seconds.
        #[arg(long, default_value_t = 120)]
        timeout_s: u64,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RecountArguments {
    /// The posts.
    pub(crate) posts: Vec<String>,
    /// Every post that MySQL has a row of, or that has a count.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// The CSV file; a header line `user_id,post_id,action` is needed.
    pub(crate) file: PathBuf,
    /// How many calls are under way at most. The calls of one user follow each other in order.
    #[arg(long, default_value_t = 64)]
    pub(crate) concurrency: usize,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
