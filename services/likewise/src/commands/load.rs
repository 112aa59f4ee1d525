//! `likewise load FILE`

use std::hash::{BuildHasher as _, RandomState};
use std::process::ExitCode;
use std::sync::Arc;
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

/// How many calls wait for each worker. A user's calls stand close together in most files: the file is
/// read far ahead, so that other workers have something to do meanwhile.
const AHEAD: usize = 1024;
/// How often one call is tried that meets a busy or absent API.
const ATTEMPTS: u32 = 60;
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

/// What every worker shares.
struct Load {
    client: Client,
    url: String,
    token: String,
    progress: ProgressBar,
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
    });

    let started = Instant::now();
    let mut workers = JoinSet::new();
    let mut queues = Vec::new();
    for _ in 0..arguments.concurrency {
        let (queue, lines) = channel(AHEAD);
        queues.push(queue);
        workers.spawn(work(load.clone(), lines));
    }
    let fed = feed(&arguments, queues).await;
    let mut summary = Summary::default();
    while let Some(worker) = workers.join_next().await {
        let part = worker.context("a worker failed")?;
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
        summary.likes_per_second = (summary.sent - summary.failed) as f64 / summary.seconds;
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
    csv::Reader::from_path(&arguments.file)
        .with_context(|| format!("failed to open {}", arguments.file.display()))
}

/// Reads the whole file once, so that a bad line is told before anything is sent.
fn count_lines(arguments: &LoadArguments) -> anyhow::Result<u64> {
    let mut count = 0;
    for line in open(arguments)?.deserialize() {
        let Line { user_id, post_id, .. } = line.context("the file is not valid")?;
        let at = || format!("the file is not valid after {count} lines: {user_id:?}, {post_id:?}");
        UserId::parse(&user_id).with_context(at)?;
        PostId::parse(&post_id).with_context(at)?;
        count += 1;
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

async fn work(load: Arc<Load>, mut lines: Receiver<Line>) -> Summary {
    let mut summary = Summary::default();
    while let Some(line) = lines.recv().await {
        summary.sent += 1;
        match load.send(&line, &mut summary.repeated).await {
            Ok(changed) => summary.changed += u64::from(changed),
            Err(error) => {
                summary.failed += 1;
                let Line { user_id, post_id, action } = &line;
                load.progress
                    .suspend(|| eprintln!("{action:?} of {post_id} by {user_id}: {error:#}"));
            }
        }
        load.progress.inc(1);
    }
    summary
}

impl Load {
    /// Sends one line, again while the API is busy or away: a repeat changes nothing.
    async fn send(&self, line: &Line, repeated: &mut u64) -> anyhow::Result<bool> {
        let mut attempt = 1;
        loop {
            let (why, pause) = match self.send_once(line).await? {
                Outcome::Done { changed } => return Ok(changed),
                Outcome::Later { why, pause } => (why, pause),
            };
            if attempt == ATTEMPTS {
                return Err(why.context(format!("given up after {ATTEMPTS} attempts")));
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
        let response = match request.header("X-User-Id", &line.user_id).send().await {
            Ok(response) => response,
            Err(error) => {
                let why = anyhow::Error::new(error).context("the write API cannot be reached");
                return Ok(Outcome::Later { why, pause: PAUSE });
            }
        };
        let status = response.status();
        if status == StatusCode::OK {
            // An answer that was cut off is like none: the call may be repeated.
            return Ok(match response.json::<Answer>().await {
                Ok(answer) => Outcome::Done { changed: answer.changed },
                Err(error) => Outcome::Later { why: anyhow::Error::new(error), pause: PAUSE },
            });
        }
        let retry_after = response
            .headers()
            .get(reqwest::header::RETRY_AFTER)
            .and_then(|seconds| seconds.to_str().ok()?.parse().ok())
            .map(Duration::from_secs);
        let text = response.text().await.unwrap_or_default();
        let why = anyhow::anyhow!("{status}: {text}");
        match (status, retry_after) {
            (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, pause) => {
                Ok(Outcome::Later { why, pause: pause.unwrap_or(PAUSE) })
            }
            _ => Err(why),
        }
    }
}

enum Outcome {
    Done { changed: bool },
    Later { why: anyhow::Error, pause: Duration },
}
