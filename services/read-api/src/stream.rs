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
    /// A post that nobody listens to any more is here until the next tick.
    posts: Arc<Mutex<HashMap<PostId, watch::Sender<CountAnswer>>>>,
    somebody: Arc<Notify>,
    places: Arc<Semaphore>,
}

/// One listener, as long as it lives.
struct Listener {
    told: watch::Receiver<CountAnswer>,
    _place: OwnedSemaphorePermit,
}

impl Streams {
    pub(crate) fn new(most: usize) -> Self {
        let places = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        Self { posts: Arc::default(), somebody: Arc::default(), places }
    }

    fn posts(&self) -> MutexGuard<'_, HashMap<PostId, watch::Sender<CountAnswer>>> {
        self.posts.lock().expect("no holder of the lock panics")
    }

    /// A place among the listeners; none while all are taken.
    fn place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.places.clone().try_acquire_owned().map_err(|_| {
            metrics::counter!("likewise_refused_calls_total", "reason" => "listeners").increment(1);
            let detail = "as many callers listen as this process serves; repeat the call later";
            Problem::new(Kind::Overloaded, detail)
        })
    }

    /// What is told of a post that somebody listens to.
    fn join(&self, post: &PostId) -> Option<watch::Receiver<CountAnswer>> {
        self.posts().get(post).map(watch::Sender::subscribe)
    }

    /// The same of any post; `now` is what is known of it, where nobody else knows better.
    fn listen(&self, post: &PostId, now: CountAnswer) -> watch::Receiver<CountAnswer> {
        let told =
            self.posts().entry(post.clone()).or_insert_with(|| watch::Sender::new(now)).subscribe();
        self.somebody.notify_one();
        told
    }

    /// The posts that somebody listens to; the others are forgotten.
    fn listened_to(&self) -> Vec<PostId> {
        let mut posts = self.posts();
        posts.retain(|_, told| told.receiver_count() > 0);
        posts.keys().cloned().collect()
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

    /// Reads what somebody listens to until `shutdown`.
    pub(crate) async fn keep(
        self,
        reader: CountReader,
        shutdown: CancellationToken,
    ) -> anyhow::Result<()> {
        shutdown.run_until_cancelled(self.watch(reader)).await;
        Ok(())
    }

    async fn watch(&self, reader: CountReader) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let posts = self.listened_to();
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
    let place = api.streams.place()?;
    let told = match api.streams.join(&post) {
        Some(told) => told,
        None => {
            let reading = api.reader.read(std::slice::from_ref(&post), api.reader.recent()).await;
            api.streams.listen(&post, answer(&post, &reading.map_err(problem)?))
        }
    };
    let listener = Listener { told, _place: place };
    let told = stream::unfold((listener, true), |(mut listener, first)| async move {
        if !first {
            listener.told.changed().await.ok()?;
        }
        let told = listener.told.borrow_and_update().clone();
        Some((told, (listener, false)))
    });
    // The server ends it when the role stops.
    let events = told.map(|told| Event::default().event("count").json_data(told));
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(post: &PostId) -> CountAnswer {
        CountAnswer { post_id: post.to_string(), count: 0, as_of: None, stale: false }
    }

    /// However they leave: many at once, on as many threads as there are.
    #[test]
    fn a_post_is_read_as_long_as_somebody_listens_to_it() {
        let (streams, left, kept) =
            (Streams::new(100), PostId::from_log("left"), PostId::from_log("kept"));
        let _listener = streams.listen(&kept, of(&kept));
        for _ in 0..100 {
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| drop(streams.listen(&left, of(&left))));
                }
            });
            assert_eq!(streams.listened_to(), std::slice::from_ref(&kept));
        }
        let first = streams.listen(&left, of(&left));
        let second = streams.join(&left).expect("somebody listens");
        drop(first);
        assert_eq!(streams.listened_to().len(), 2);
        drop(second);
        assert_eq!(streams.listened_to(), [kept]);
        assert!(streams.join(&left).is_none());
    }

    #[test]
    fn one_more_listener_than_there_are_places_is_refused_until_one_leaves() {
        let streams = Streams::new(2);
        let (first, _second) = (streams.place().expect("a place"), streams.place());
        assert_eq!(streams.place().expect_err("full").kind(), Kind::Overloaded);
        drop(first);
        assert!(streams.place().is_ok());
    }
}
