//! `likewise load FILE`

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressStyle};
use likewise_core::{PostId, UserId};
use reqwest::{Client, Method, StatusCode};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

use super::print_json;
use crate::cli::LoadArguments;
use crate::config::{Config, need};

/// What the file must begin with.
const HEADER: [&str; 3] = ["user_id", "post_id", "action"];
/// How many calls wait for each worker. A user's calls stand close together in most files: the file is
/// read far ahead, so that other workers have something to do meanwhile.
const AHEAD: usize = 1024;
/// How often one call is tried that meets a busy or absent API.
const ATTEMPTS: u32 = 60;
/// How long the write API may take to be ready.
const WAIT_FOR_API: Duration = Duration::from_secs(30);
/// How many calls pass between two lines of progress.
const TELL_EVERY: u64 = 10_000;
/// The pause where the API is absent, or names none itself.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Like,
    Unlike,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    user_id: String,
    post_id: String,
    action: Action,
}

#[derive(Debug, Default, Serialize)]
struct Summary {
    sent: u64,
    changed: u64,
    /// Lines that were refused, and the lines of the same user behind them.
    failed: u64,
    /// Calls that were repeated because the API was busy or away.
    repeated: u64,
    seconds: f64,
    likes_per_second: f64,
}

#[derive(Deserialize)]
struct Answer {
    changed: bool,
}

#[derive(Default, Deserialize)]
struct Problem {
    detail: String,
}

/// What every worker shares.
struct Load {
    client: Client,
    url: String,
    token: String,
    progress: ProgressBar,
    /// Why calls are repeated is told once.
    has_waited: AtomicBool,
}

pub(crate) async fn run(config: &Config, arguments: LoadArguments) -> anyhow::Result<ExitCode> {
    let url = need("WRITE_API_URL", config.write_api_url.as_ref())?;
    let token = need("SERVICE_TOKEN", config.service_token.as_ref())?;
    if arguments.concurrency == 0 {
        bail!("--concurrency must be at least 1");
    }
    let lines = count_lines(&arguments)?;
    let progress = ProgressBar::new(lines);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} {per_sec} {eta}") {
        progress.set_style(style);
    }
    let client = Client::builder()
        .timeout(Duration::from_secs(15))
        .build()
        .context("failed to make an HTTP client")?;
    let load = Arc::new(Load {
        client,
        url: url.trim_end_matches('/').to_owned(),
        token: token.expose().to_owned(),
        progress,
        has_waited: AtomicBool::new(false),
    });

    load.wait_for_api().await?;
    let started = Instant::now();
    let mut workers = JoinSet::new();
    let mut queues = Vec::new();
    for _ in 0..arguments.concurrency {
        let (queue, lines) = channel(AHEAD);
        queues.push(queue);
        workers.spawn(work(load.clone(), lines));
    }
    // A queue that is closed belongs to a worker that gave up, and says why below.
    let fed = feed(&arguments, queues).await;
    let mut summary = Summary::default();
    while let Some(worker) = workers.join_next().await {
        let part = worker.context("a worker failed")??;
        summary.sent += part.sent;
        summary.changed += part.changed;
        summary.failed += part.failed;
        summary.repeated += part.repeated;
    }
    load.progress.finish_and_clear();
    fed?;
    summary.seconds = started.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    {
        summary.likes_per_second = summary.sent as f64 / summary.seconds;
    }
    if arguments.json {
        print_json(&summary)?;
    } else {
        println!(
            "sent {}, changed {}, failed {}, repeated {}, {:.0} likes/s",
            summary.sent,
            summary.changed,
            summary.failed,
            summary.repeated,
            summary.likes_per_second
        );
    }
    Ok(if summary.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn open(arguments: &LoadArguments) -> anyhow::Result<csv::Reader<std::fs::File>> {
    let file = arguments.file.display();
    // It is read twice, so a pipe will not do.
    let is_file =
        std::fs::metadata(&arguments.file).with_context(|| format!("failed to open {file}"))?;
    if !is_file.is_file() {
        bail!("{file} is not a regular file");
    }
    let mut reader = csv::Reader::from_path(&arguments.file)
        .with_context(|| format!("failed to open {file}"))?;
    let header = reader.headers().with_context(|| format!("failed to read {file}"))?;
    if header.iter().ne(HEADER) {
        bail!("the first line of {file} must be {}", HEADER.join(","));
    }
    Ok(reader)
}

/// Reads the whole file once, so that a bad line is told before anything is sent.
fn count_lines(arguments: &LoadArguments) -> anyhow::Result<u64> {
    let mut count = 0;
    for line in open(arguments)?.deserialize() {
        let Line { user_id, post_id, .. } = line.context("the file is not valid")?;
        count += 1;
        // Behind the header.
        let at = |field: &str, id: &str| format!("line {}, {field} {id:?}", count + 1);
        UserId::parse(&user_id).with_context(|| at("user_id", &user_id))?;
        PostId::parse(&post_id).with_context(|| at("post_id", &post_id))?;
    }
    Ok(count)
}

/// The lines of one user go to one worker, in order.
async fn feed(arguments: &LoadArguments, queues: Vec<Sender<Line>>) -> anyhow::Result<()> {
    let hasher = RandomState::new();
    for line in open(arguments)?.deserialize() {
        let line: Line = line.context("the file is not valid")?;
        let worker = hasher.hash_one(&line.user_id) % queues.len() as u64;
        let worker = usize::try_from(worker).context("a worker's number fits")?;
        queues[worker].send(line).await.context("a worker ended early")?;
    }
    Ok(())
}

/// A line that is refused takes those of the same user behind it along: they would be out of order.
/// An API that cannot be used at all ends the load.
async fn work(load: Arc<Load>, mut lines: Receiver<Line>) -> anyhow::Result<Summary> {
    let mut summary = Summary::default();
    let mut refused = HashSet::new();
    while let Some(line) = lines.recv().await {
        let Line { user_id, post_id, action } = &line;
        if refused.contains(user_id) {
            summary.failed += 1;
        } else {
            summary.sent += 1;
            match load.send(&line, &mut summary.repeated).await? {
                Sent::Changed(changed) => summary.changed += u64::from(changed),
                Sent::Refused(why) => {
                    summary.failed += 1;
                    refused.insert(user_id.clone());
                    let tell = || eprintln!("{action:?} of {post_id} by {user_id}: {why}");
                    load.progress.suspend(tell);
                }
            }
        }
        load.step();
    }
    Ok(summary)
}

/// How a line ended.
enum Sent {
    Changed(bool),
    Refused(String),
}

impl Load {
    /// One call is done. Without a terminal there is no bar, so a line tells now and then.
    fn step(&self) {
        self.progress.inc(1);
        let done = self.progress.position();
        if self.progress.is_hidden() && done.is_multiple_of(TELL_EVERY) {
            eprintln!("{done} of {}", self.progress.length().unwrap_or_default());
        }
    }

    async fn wait_for_api(&self) -> anyhow::Result<()> {
        let mut waited = Duration::ZERO;
        loop {
            let ready = self.client.get(format!("{}/readyz", self.url)).send().await;
            let problem = match ready {
                Ok(response) if response.status().is_success() => return Ok(()),
                Ok(response) => {
                    format!("it is not ready: {}", response.text().await.unwrap_or_default())
                }
                Err(error) => format!("it cannot be reached: {}", error.without_url()),
            };
            if waited.is_zero() {
                eprintln!("waiting for the write API at {}: {problem}", self.url);
            }
            if waited >= WAIT_FOR_API {
                bail!("the write API at {}: {problem}", self.url);
            }
            tokio::time::sleep(PAUSE).await;
            waited += PAUSE;
        }
    }

    /// Sends one line, again while the API is busy or away: a repeat changes nothing.
    async fn send(&self, line: &Line, repeated: &mut u64) -> anyhow::Result<Sent> {
        let mut attempt = 1;
        loop {
            let (why, pause) = match self.send_once(line).await? {
                Outcome::Done(sent) => return Ok(sent),
                Outcome::Later { why, pause } => (why, pause),
            };
            if attempt == ATTEMPTS {
                bail!("given up after {ATTEMPTS} attempts: {why}");
            }
            if !self.has_waited.swap(true, Ordering::Relaxed) {
                self.progress.suspend(|| eprintln!("waiting now and then: {why}"));
            }
            attempt += 1;
            *repeated += 1;
            tokio::time::sleep(pause).await;
        }
    }

    async fn send_once(&self, line: &Line) -> anyhow::Result<Outcome> {
        let method = match line.action {
            Action::Like => Method::PUT,
            Action::Unlike => Method::DELETE,
        };
        let url = format!("{}/v1/posts/{}/like", self.url, line.post_id);
        let request = self.client.request(method, url).bearer_auth(&self.token);
        let later = |error: reqwest::Error| {
            let why = format!("the write API cannot be reached: {}", error.without_url());
            Outcome::Later { why, pause: PAUSE }
        };
        let response = match request.header("X-User-Id", &line.user_id).send().await {
            Ok(response) => response,
            Err(error) => return Ok(later(error)),
        };
        let status = response.status();
        if status == StatusCode::OK {
            // An answer that was cut off is like none.
            return Ok(match response.json::<Answer>().await {
                Ok(answer) => Outcome::Done(Sent::Changed(answer.changed)),
                Err(error) => later(error),
            });
        }
        let retry_after = response
            .headers()
            .get(reqwest::header::RETRY_AFTER)
            .and_then(|seconds| seconds.to_str().ok()?.parse().ok())
            .map(Duration::from_secs);
        let problem: Problem = response.json().await.unwrap_or_default();
        let why = format!("{status}: {}", problem.detail);
        match status {
            StatusCode::UNAUTHORIZED => bail!("{why} (LIKEWISE_SERVICE_TOKEN)"),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Ok(Outcome::Later { why, pause: retry_after.unwrap_or(PAUSE) })
            }
            _ => Ok(Outcome::Done(Sent::Refused(why))),
        }
    }
}

/// What one call came to.
enum Outcome {
    Done(Sent),
    Later { why: String, pause: Duration },
}
