//! The fault suite: a recorded load runs while something dies, stands still or lies; then everything
//! is healed, and the counts must be those that the load was told.
//!
//! With no arguments the short form runs, as `scripts/test` calls it; `scripts/faults` runs all of it
//! on a stack of its own.

mod big;
mod faults;
mod load;
mod metrics;
mod oracle;
mod progress;
mod proxy;
mod scene;
mod stack;
mod table;

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use futures_util::FutureExt as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;

use crate::faults::{ALL, Fault, Leaves};
use crate::load::Running;
use crate::oracle::Agreement;
use crate::progress::Progress;
use crate::scene::Scene;
use crate::table::Row;

/// Provokes faults on the running stack.
#[derive(Debug, Parser)]
struct Arguments {
    /// Decides order and moments; without it, the clock does.
    #[arg(long)]
    seed: Option<u64>,
    /// Begin no fault after so many minutes, and go on until then; without it, each fault runs once.
    #[arg(long)]
    minutes: Option<u64>,
    /// Which faults, separated by commas, or `all`; the short form without it.
    #[arg(long, value_delimiter = ',')]
    faults: Vec<String>,
    /// The short form.
    #[arg(long)]
    short: bool,
    /// Add this run to `results.json` and to the table in `tests/README.md`.
    #[arg(long)]
    note: bool,
    /// What `cargo test` gives to every test; the first is a filter.
    #[arg(long, hide = true)]
    nocapture: bool,
    #[arg(long, hide = true)]
    test_threads: Option<u32>,
    #[arg(hide = true)]
    filter: Option<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let chosen = match chosen(&arguments) {
        Ok(chosen) => chosen,
        Err(unknown) => {
            let known: Vec<_> = ALL.iter().map(|fault| fault.name).collect();
            eprintln!("there is no fault {unknown}; there are {}", known.join(", "));
            return ExitCode::from(2);
        }
    };
    let by_clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let seed = arguments.seed.unwrap_or_else(by_clock);
    let until = arguments.minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let rows = run(seed, &chosen, until).await;
    println!("\n{}", table::text(&rows));
    if arguments.note {
        table::note(seed, &rows);
    }
    match rows.iter().find(|row| !row.held) {
        None => ExitCode::SUCCESS,
        Some(failed) => {
            println!(
                "To repeat it: scripts/faults --seed {} --faults {}",
                failed.seed, failed.fault
            );
            ExitCode::FAILURE
        }
    }
}

fn chosen(arguments: &Arguments) -> Result<Vec<&'static Fault>, String> {
    if let Some(filter) = &arguments.filter {
        return Ok(ALL.iter().filter(|fault| fault.name.contains(filter)).collect());
    }
    let names: Vec<&str> = arguments.faults.iter().map(String::as_str).collect();
    if arguments.short || names.is_empty() {
        return Ok(ALL.iter().filter(|fault| fault.is_short).collect());
    }
    if names == ["all"] {
        return Ok(ALL.iter().collect());
    }
    let known = names
        .into_iter()
        .map(|name| ALL.iter().find(|fault| fault.name == name).ok_or_else(|| name.to_owned()));
    known.collect()
}

/// Runs the faults in an order that the seed decides. The first that does not hold ends the run, so
/// that what it left can be looked at.
async fn run(seed: u64, chosen: &[&'static Fault], until: Option<Instant>) -> Vec<Row> {
    let mut order: Vec<_> =
        chosen.iter().filter(|fault| fault.leaves == Leaves::Everything).collect();
    let last = chosen.iter().filter(|fault| fault.leaves != Leaves::Everything);
    let mut rng = StdRng::seed_from_u64(seed);
    let mut rows: Vec<Row> = Vec::new();
    let is_time = || until.is_none_or(|until| Instant::now() < until);
    println!("seed {seed}");
    for round in 0.. {
        order.shuffle(&mut rng);
        for fault in &order {
            if is_time() && rows.iter().all(|row| row.held) {
                rows.push(one(fault, seed, round).await);
            }
        }
        if until.is_none() || !is_time() || order.is_empty() || rows.iter().any(|row| !row.held) {
            break;
        }
    }
    for fault in last {
        if rows.iter().all(|row| row.held) {
            rows.push(one(fault, seed, 0).await);
        }
    }
    rows
}

/// Provokes one fault under load, heals, and asks the oracle.
async fn one(fault: &Fault, seed: u64, round: u64) -> Row {
    println!("\n{} (seed {seed}, round {round})", fault.name);
    let began = Instant::now();
    stack::heal().await;
    // A fault that is repeated alone meets the same moments.
    let letters = fault.name.bytes();
    let own = letters.fold(seed ^ round, |all, letter| all.wrapping_mul(31) ^ u64::from(letter));
    let rng = StdRng::seed_from_u64(own);
    let running = Running::start(own).await;
    let mut scene = Scene {
        rng,
        load: running.load.clone(),
        progress: Progress::new().await,
        provoked: 0,
        reached: Vec::new(),
    };
    let failure = match held(fault, &mut scene, running).await {
        Ok(Agreement { likes, posts }) => {
            println!("  {posts} posts with {likes} likes agree");
            None
        }
        Err(failure) => Some(failure),
    };
    let row = Row {
        fault: fault.name.to_owned(),
        seed: seed ^ round,
        provoked: scene.provoked,
        reached: scene.reached.iter().map(|(what, times)| ((*what).to_owned(), *times)).collect(),
        held: failure.is_none(),
        seconds: began.elapsed().as_secs(),
    };
    match failure {
        None => println!("  held: {row}"),
        Some(failure) => println!("  DID NOT HOLD: {row}\n  {failure}"),
    }
    row
}

async fn held(fault: &Fault, scene: &mut Scene, running: Running) -> Result<Agreement, String> {
    let load = running.load.clone();
    let provoked = AssertUnwindSafe((fault.provoke)(scene)).catch_unwind().await;
    let provoked = provoked.map_err(|panic| told(panic.as_ref()));
    let mut converged = Ok(());
    if provoked.is_ok() && fault.leaves == Leaves::Everything {
        stack::heal().await;
        // A large transaction may have to be sent again first: until then no count is fresh.
        converged = oracle::drained().await.map(drop);
        if converged.is_ok() {
            load.flows().await;
        }
    }
    running.stop().await;
    provoked?;
    converged?;
    {
        let record = load.record();
        let (acknowledged, unknown, reads) = (record.acknowledged, record.unknown, load.reads());
        println!("  {acknowledged} calls acknowledged, {unknown} unknown, {reads} counts checked");
    }
    let agreement = match fault.leaves {
        Leaves::Everything => oracle::agrees(&load).await?,
        Leaves::NoCounting => oracle::nothing_is_wrong(&load).await?,
    };
    if scene.provoked == 0 || scene.reached.is_empty() {
        return Err("it was not provoked".to_owned());
    }
    match scene.reached.iter().find(|(_, times)| *times == 0) {
        Some((what, _)) => Err(format!("the rare path was not reached: {what}")),
        None => Ok(agreement),
    }
}

/// What a panic said.
fn told(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "it panicked".to_owned())
}
