//! A post's count as it changes, to whoever listens.
//!
//! All listeners of a post share what is read for it, and all posts that somebody listens to are read
//! together, once a tick.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, StreamExt as _, stream};
use likewise_core::PostId;
use likewise_mongodb::CountReader;
use likewise_serving::{AnyCaller, Id, Kind, NoQuery, PostPath, Problem};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::ReadApi;
use crate::counts::{CountAnswer, answer, problem};

/// Two changes a second: more than that nobody can read.
const TICK: Duration = Duration::from_millis(500);
/// How many posts are read in one query.
const AT_ONCE: usize = 1_000;
/// So often proxies and callers hear that the stream is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Who listens to what.
#[derive(Clone)]
pub(crate) struct Streams {
    posts: Arc<Mutex<HashMap<PostId, watch::Sender<CountAnswer>>>>,
    somebody: Arc<Notify>,
    places: Arc<Semaphore>,
    shutdown: CancellationToken,
}

/// One listener. Whoever leaves a post last takes it along.
struct Listener {
    streams: Streams,
    post: PostId,
    told: watch::Receiver<CountAnswer>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut posts = self.streams.posts();
        if posts.get(&self.post).is_some_and(|told| told.receiver_count() == 1) {
            posts.remove(&self.post);
        }
    }
}

impl Streams {
    pub(crate) fn new(most: usize, shutdown: CancellationToken) -> Self {
        let places = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        Self { posts: Arc::default(), somebody: Arc::default(), places, shutdown }
    }

    fn posts(&self) -> MutexGuard<'_, HashMap<PostId, watch::Sender<CountAnswer>>> {
        self.posts.lock().expect("no holder of the lock panics")
    }

    /// Listens to a post that somebody listens to.
    fn join(&self, post: &PostId, place: &mut Option<OwnedSemaphorePermit>) -> Option<Listener> {
        let told = self.posts().get(post)?.subscribe();
        Some(Listener { streams: self.clone(), post: post.clone(), told, _place: place.take() })
    }

    /// Listens to a post; `now` is what is known of it, where nobody else knows better.
    fn listen(
        &self,
        post: &PostId,
        place: Option<OwnedSemaphorePermit>,
        now: CountAnswer,
    ) -> Listener {
        let told =
            self.posts().entry(post.clone()).or_insert_with(|| watch::Sender::new(now)).subscribe();
        self.somebody.notify_one();
        Listener { streams: self.clone(), post: post.clone(), told, _place: place }
    }

    fn tell(&self, post: &PostId, change: impl FnOnce(&CountAnswer) -> CountAnswer) {
        if let Some(told) = self.posts().get(post) {
            told.send_if_modified(|last| {
                let now = change(last);
                let news = (now.count, now.stale) != (last.count, last.stale);
                *last = now;
                news
            });
        }
    }

    /// Reads what somebody listens to until shutdown.
    pub(crate) async fn keep(self, reader: CountReader) -> anyhow::Result<()> {
        let shutdown = self.shutdown.clone();
        shutdown.run_until_cancelled(self.watch(reader)).await;
        Ok(())
    }

    async fn watch(&self, reader: CountReader) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let posts: Vec<PostId> = self.posts().keys().cloned().collect();
            metrics::gauge!("likewise_streamed_posts").set(posts.len() as f64);
            if posts.is_empty() {
                self.somebody.notified().await;
                continue;
            }
            for posts in posts.chunks(AT_ONCE) {
                self.look(&reader, posts).await;
            }
        }
    }

    async fn look(&self, reader: &CountReader, posts: &[PostId]) {
        match reader.read(posts, reader.anew()).await {
            Ok(reading) => {
                for (at, post) in posts.iter().enumerate() {
                    self.tell(post, |_| answer(post, &reading.one(at)));
                }
            }
            // What was told last stands, and is told to be old.
            Err(_) => {
                for post in posts {
                    self.tell(post, |last| CountAnswer { stale: true, ..last.clone() });
                }
            }
        }
    }
}

/// The count of a post now, and again whenever it changes: server-sent events named `count`, at most two a
/// second, each with the data of a count's answer. A comment every 15 s shows that the stream is alive. While
/// the count store is away the last count is `stale`. A caller that comes back gets the count of then:
/// `Last-Event-ID` means nothing here.
#[utoipa::path(
    get, path = "/v1/posts/{post_id}/count/stream", tag = "counts",
    params(("post_id" = Id, Path)),
    responses((status = 200, body = String, content_type = "text/event-stream")),
    security(("bearer" = [])),
)]
pub(crate) async fn stream(
    State(api): State<ReadApi>,
    _: AnyCaller,
    PostPath(post): PostPath,
    _: NoQuery,
) -> Result<Sse<impl Stream<Item = Result<Event, axum::Error>>>, Problem> {
    let full = |_| {
        let detail = "as many callers listen as this process serves; repeat the call later";
        Problem::new(Kind::Unavailable, detail)
    };
    let mut place = Some(api.streams.places.clone().try_acquire_owned().map_err(full)?);
    let listener = match api.streams.join(&post, &mut place) {
        Some(listener) => listener,
        None => {
            let reading = api.reader.read(std::slice::from_ref(&post), api.reader.recent()).await;
            api.streams.listen(&post, place, answer(&post, &reading.map_err(problem)?))
        }
    };
    let shutdown = api.streams.shutdown.clone();
    let told = stream::unfold((listener, true), |(mut listener, first)| async move {
        if !first {
            listener.told.changed().await.ok()?;
        }
        let told = listener.told.borrow_and_update().clone();
        Some((told, (listener, false)))
    });
    let events = told
        .map(|told| Event::default().event("count").json_data(told))
        .take_until(shutdown.cancelled_owned());
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)))
}
