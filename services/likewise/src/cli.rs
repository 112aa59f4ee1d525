//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};

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

/// An API that callers use.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Api {
    /// Likes, unlikes and what is read from the truth.
    Write,
    /// Counts.
    Read,
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
    /// Ask every server for the settings with which likes could be lost or counted twice.
    ///
    /// Names each with what was found, what is needed, why, and what puts it right. Exit code 1 when one
    /// is refused or a server could not be asked, 0 with warnings alone.
    Doctor {
        /// Print JSON.
        #[arg(long)]
        json: bool,
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
    /// Print the OpenAPI document of an API.
    Openapi {
        /// Which API.
        api: Api,
    },
    /// Records of the log that could not be read.
    DeadLetters {
        #[command(subcommand)]
        command: DeadLettersCommand,
    },
    /// Replay a CSV file `user_id,post_id,action` (`like` or `unlike`) through the write API.
    ///
    /// Calls that met the limit of a user's writes, or an API that was away, are repeated after the time that
    /// it asked for. Every line is sent as of now: a table with times of its own is imported into MySQL.
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

#[derive(Debug, Subcommand)]
pub(crate) enum DeadLettersCommand {
    /// List them by partition and offset.
    List {
        /// How many at most.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(i64).range(1..))]
        limit: i64,
        /// Print JSON, with the payloads.
        #[arg(long)]
        json: bool,
    },
    /// Show one, with the first 4 KiB of its value.
    Show {
        /// Which one.
        #[arg(value_name = "PARTITION/OFFSET")]
        letter: LetterPlace,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove some without a recount: those that name no post, after `likewise recount --all`.
    Discard {
        /// Which ones.
        #[arg(value_name = "PARTITION/OFFSET", required = true)]
        letters: Vec<LetterPlace>,
    },
    /// Have the posts that they were about recounted, and remove them. Never applies them.
    ///
    /// Exit code 1 when letters stay because they name no post.
    Retry {
        /// Which ones.
        #[arg(value_name = "PARTITION/OFFSET")]
        letters: Vec<LetterPlace>,
        /// All of them.
        #[arg(long)]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Where a dead letter stands in the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LetterPlace {
    pub(crate) partition: u32,
    pub(crate) offset: i64,
}

impl FromStr for LetterPlace {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let place = text.split_once('/').and_then(|(partition, offset)| {
            Some(Self { partition: partition.parse().ok()?, offset: offset.parse().ok()? })
        });
        place.ok_or("it is written PARTITION/OFFSET, for example 2/1041")
    }
}

#[derive(Debug, Args)]
pub(crate) struct RecountArguments {
    /// The posts.
    pub(crate) posts: Vec<String>,
    /// Every post that MySQL has a row of, or that has a count. Waits until they are applied; then `as_of`
    /// goes on where a TRUNCATE or a gap in the log made it stand.
    #[arg(long)]
    pub(crate) all: bool,
    /// With --all: first forget how far MySQL's history is counted. For a server that was restored or reset.
    #[arg(long, requires = "all")]
    pub(crate) new_positions: bool,
    /// With --all: how long to wait at most for the log to be read up to here, in seconds.
    #[arg(long, default_value_t = 120)]
    pub(crate) timeout_s: u64,
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
