//! The load that runs while something fails: clients that like and unlike, and readers that check
//! every count they are told against what the clients know.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use likewise_core::Micros;
use likewise_tests::{Answer, Api, Record, eventually, fresh};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const CLIENTS: usize = 12;
const READERS: usize = 3;
const USERS_OF_A_CLIENT: usize = 20;
const POSTS: usize = 200;
/// How many of them get a large part of the calls.
const HOT: usize = 3;
/// The pauses of a client between two calls: two cores shall not be busy with the load alone.
const PAUSE_MS: std::ops::Range<u64> = 40..120;
const READ_PAUSE_MS: std::ops::Range<u64> = 20..60;
/// A call whose outcome is unknown may take effect for as long as a statement of it may wait: its
/// edge is left alone until then, or it could overtake a later call.
const MAY_STILL_HAPPEN: Duration = Duration::from_secs(6);
/// How many contradictions are kept.
const SHOWN: usize = 20;

/// What clients and readers share.
pub(crate) struct Load {
    prefix: String,
    api: Api,
    record: Mutex<Record>,
    /// What no answer may be.
    wrong: Mutex<Vec<String>>,
    reads: std::sync::atomic::AtomicU64,
}

/// A load that runs.
pub(crate) struct Running {
    pub(crate) load: Arc<Load>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Running {
    /// Starts clients and readers with posts of their own, and waits until they are served.
    pub(crate) async fn start(seed: u64) -> Self {
        let load = Arc::new(Load {
            prefix: fresh("fault")[..14].to_owned(),
            api: Api::new(),
            record: Mutex::default(),
            wrong: Mutex::default(),
            reads: 0.into(),
        });
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        for client in 0..CLIENTS {
            let rng = StdRng::seed_from_u64(seed ^ client as u64);
            tasks.spawn(write(load.clone(), client, rng, stop.clone()));
        }
        for reader in 0..READERS {
            let rng = StdRng::seed_from_u64(seed ^ (1000 + reader as u64));
            tasks.spawn(read(load.clone(), rng, stop.clone()));
        }
        let running = Self { load, stop, tasks };
        running.load.flows().await;
        running
    }

    /// Ends it, every call answered or given up.
    pub(crate) async fn stop(mut self) -> Arc<Load> {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("a client does not panic");
        }
        self.load
    }
}

impl Load {
    /// The posts' ids begin with it.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Its posts.
    pub(crate) fn posts(&self) -> impl Iterator<Item = String> {
        (0..POSTS).map(|number| self.post(number))
    }

    /// What was told.
    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().expect("no holder of the lock panics")
    }

    /// The contradictions that clients and readers met.
    pub(crate) fn wrong(&self) -> Vec<String> {
        self.wrong.lock().expect("no holder of the lock panics").clone()
    }

    /// How many counts were read and checked.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Waits until calls are acknowledged and counts are read, both from now on.
    pub(crate) async fn flows(&self) {
        let (acknowledged, reads) = (self.record().acknowledged, self.reads());
        eventually("the load flows", Duration::from_secs(60), async || {
            let flows = self.record().acknowledged > acknowledged + 50 && self.reads() > reads + 50;
            flows.then_some(())
        })
        .await;
    }

    /// Waits until calls are acknowledged from now on, whether they are counted or not.
    pub(crate) async fn flows_to_mysql(&self) {
        let acknowledged = self.record().acknowledged;
        eventually("calls are acknowledged", Duration::from_secs(60), async || {
            (self.record().acknowledged > acknowledged + 50).then_some(())
        })
        .await;
    }

    fn post(&self, number: usize) -> String {
        format!("{}-{number}", self.prefix)
    }

    fn any_post(&self, rng: &mut StdRng) -> String {
        let all = if rng.random_bool(0.4) { HOT } else { POSTS };
        self.post(rng.random_range(0..all))
    }

    fn contradiction(&self, what: String) {
        let mut wrong = self.wrong.lock().expect("no holder of the lock panics");
        if wrong.len() < SHOWN {
            eprintln!("  wrong: {what}");
            wrong.push(what);
        }
    }
}

/// One client: its users are its own, so the calls of an edge follow each other.
async fn write(load: Arc<Load>, client: usize, mut rng: StdRng, stop: CancellationToken) {
    let mut edges: Vec<(String, String, bool)> = Vec::new();
    let mut not_before: HashMap<usize, Instant> = HashMap::new();
    while !stop.is_cancelled() {
        let known = edges.len();
        let at = if known > 0 && rng.random_bool(0.5) {
            rng.random_range(0..known)
        } else {
            let user = format!("u{client}-{}", rng.random_range(0..USERS_OF_A_CLIENT));
            let post = load.any_post(&mut rng);
            match edges.iter().position(|(u, p, _)| (u, p) == (&user, &post)) {
                Some(at) => at,
                None => {
                    edges.push((user, post, false));
                    known
                }
            }
        };
        if not_before.get(&at).is_none_or(|moment| Instant::now() > *moment) {
            let (user, post, last) = &mut edges[at];
            // A repeat now and then: it must change nothing.
            let liked = if rng.random_bool(0.2) { *last } else { !*last };
            if call(&load, user, post, liked).await {
                *last = liked;
            } else {
                not_before.insert(at, Instant::now() + MAY_STILL_HAPPEN);
            }
        }
        pause(&mut rng, PAUSE_MS, &stop).await;
    }
}

/// Makes one call and records it. Whether it was acknowledged.
async fn call(load: &Load, user: &str, post: &str, liked: bool) -> bool {
    let id = load.record().begin(user, post, liked);
    let answer = load.api.try_write(user, post, liked).await;
    let told = answer.ok().filter(|answer| answer.status == 200).and_then(|answer| {
        let written_at = micros(&answer, "written_at")?;
        if answer.json["liked"] != liked {
            load.contradiction(format!("{user} asked for liked {liked}: {answer:?}"));
        }
        if answer.json["count"].as_i64().is_some_and(|count| count < 0) {
            load.contradiction(format!("a negative count: {answer:?}"));
        }
        Some((answer.json["changed"].as_bool()?, written_at))
    });
    let mut record = load.record();
    match told {
        Some((changed, written_at)) => {
            if let Err(what) = record.acknowledge(&id, changed, written_at) {
                drop(record);
                load.contradiction(what);
            }
            true
        }
        None => {
            record.leave_unknown(id);
            false
        }
    }
}

/// One reader: `as_of` never goes back, and never says more than is counted.
async fn read(load: Arc<Load>, mut rng: StdRng, stop: CancellationToken) {
    let mut last: HashMap<String, Micros> = HashMap::new();
    while !stop.is_cancelled() {
        let post = load.any_post(&mut rng);
        if let Ok(answer) = load.api.try_count(&post).await
            && answer.status == 200
        {
            check(&load, &post, &answer, &mut last);
        }
        pause(&mut rng, READ_PAUSE_MS, &stop).await;
    }
}

fn check(load: &Load, post: &str, answer: &Answer, last: &mut HashMap<String, Micros>) {
    let Some(count) = answer.json["count"].as_u64() else {
        return load.contradiction(format!("no count: {answer:?}"));
    };
    let Some(as_of) = micros(answer, "as_of") else { return };
    let before = last.insert(post.to_owned(), as_of);
    if before.is_some_and(|before| before > as_of) {
        load.contradiction(format!("as_of of {post} went back from {before:?} to {as_of:?}"));
    }
    if answer.json["stale"] == false {
        let counts = load.record().counts(post, as_of);
        if !counts.contains(&count) {
            load.contradiction(format!(
                "{post} has {count} likes as of {as_of:?}, which can be {counts:?} only"
            ));
        }
        load.reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

fn micros(answer: &Answer, name: &str) -> Option<Micros> {
    let time: jiff::Timestamp = answer.json[name].as_str()?.parse().ok()?;
    Some(Micros(time.as_microsecond()))
}

async fn pause(rng: &mut StdRng, range_ms: std::ops::Range<u64>, stop: &CancellationToken) {
    let pause = Duration::from_millis(rng.random_range(range_ms));
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(pause) => {}
    }
}
