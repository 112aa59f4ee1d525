//! The table of what was provoked, made by runs alone.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

const BEGIN: &str = "<!-- The table is made by scripts/faults from faults/results.json. -->";
const END: &str = "<!-- The table ends. -->";

/// What one fault of one run did.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Row {
    pub(crate) fault: String,
    /// With which it meets the same moments again.
    pub(crate) seed: u64,
    pub(crate) provoked: u64,
    /// How often each rare path was taken.
    pub(crate) reached: BTreeMap<String, u64>,
    /// Whether the oracle agreed and every rare path was taken.
    pub(crate) held: bool,
    pub(crate) seconds: u64,
}

/// One run.
#[derive(Debug, Deserialize, Serialize)]
struct Run {
    seed: u64,
    rows: Vec<Row>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { provoked, seconds, .. } = self;
        write!(f, "provoked {provoked} times in {seconds} s; {}", reached(&self.reached))
    }
}

fn reached(reached: &BTreeMap<String, u64>) -> String {
    let paths: Vec<_> = reached.iter().map(|(what, times)| format!("{what}: {times}")).collect();
    paths.join(", ")
}

/// What all runs of one fault did.
#[derive(Default)]
struct Sum {
    runs: u64,
    held: u64,
    provoked: u64,
    reached: BTreeMap<String, u64>,
    seconds: u64,
}

impl Sum {
    fn add(&mut self, row: &Row) {
        self.runs += 1;
        self.held += u64::from(row.held);
        self.provoked += row.provoked;
        self.seconds += row.seconds;
        for (what, times) in &row.reached {
            *self.reached.entry(what.clone()).or_default() += times;
        }
    }
}

/// The rows, those of one fault added up.
pub(crate) fn text(rows: &[Row]) -> String {
    let mut faults: BTreeMap<&str, Sum> = BTreeMap::new();
    for row in rows {
        faults.entry(&row.fault).or_default().add(row);
    }
    let mut text = String::from(
        "| fault | times provoked | rare path reached | outcome | seconds a run |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for (fault, Sum { runs, held, provoked, reached: paths, seconds }) in faults {
        let outcome = if held == runs { "held" } else { "did not hold" };
        let (paths, mean) = (reached(&paths), seconds / runs);
        writeln!(
            text,
            "| {fault} | {provoked} | {paths} | {outcome}: {held} of {runs} runs | {mean} |"
        )
        .expect("a text takes all");
    }
    text
}

/// Adds a run to what is known, and writes the table of all of them.
pub(crate) fn note(seed: u64, rows: &[Row]) {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let (results, readme) = (tests.join("faults/results.json"), tests.join("README.md"));
    let mut runs: Vec<Run> = match std::fs::read(&results) {
        Ok(known) => serde_json::from_slice(&known).expect("results.json holds runs"),
        Err(_) => Vec::new(),
    };
    runs.push(Run { seed, rows: rows.to_vec() });
    let known = serde_json::to_string_pretty(&runs).expect("runs can be written");
    std::fs::write(&results, known + "\n").expect("results.json can be written");

    let all: Vec<Row> = runs.iter().flat_map(|run| run.rows.clone()).collect();
    let seeds: Vec<_> = runs.iter().map(|run| run.seed.to_string()).collect();
    let page = std::fs::read_to_string(&readme).expect("README.md");
    let (head, rest) = page.split_once(BEGIN).expect("README.md has the table's beginning");
    let (_, tail) = rest.split_once(END).expect("README.md has the table's end");
    let table = format!("Seeds of the recorded runs: {}.\n\n{}", seeds.join(", "), text(&all));
    let page = format!("{head}{BEGIN}\n{table}\n{END}{tail}");
    std::fs::write(&readme, page).expect("README.md can be written");
}
