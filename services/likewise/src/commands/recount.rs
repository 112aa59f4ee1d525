//! `likewise recount POST…` and `likewise recount --all`

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use futures_util::TryStreamExt as _;
use futures_util::stream::poll_fn;
use likewise_core::{GenerationId, Micros, Offset, PostId};
use likewise_kafka::CHANGES;
use likewise_mongodb::{Counts, Store};
use likewise_mysql::Mysql;
use serde::Serialize;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::sync::oneshot;

use super::{halted, live, print_json};
use crate::cli::RecountArguments;
use crate::config::Config;
use crate::roles;

/// How many posts are read ahead.
const AHEAD: usize = 256;
/// How many recounts are under way: they share the server's fsyncs.
const AT_ONCE: usize = 16;
/// How often the checkpoints are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug, Default, Serialize)]
struct Recounted {
    recounts: u64,
    /// With `--all`: partitions in which `as_of` had stood still, and goes on.
    went_on: Option<u64>,
}

pub(crate) async fn run(config: &Config, arguments: RecountArguments) -> anyhow::Result<ExitCode> {
    if arguments.posts.is_empty() != arguments.all {
        bail!("name the posts to recount, or --all, not both");
    }
    // Not the rule for callers: an import may have put any text there that fits.
    if let Some(post) =
        arguments.posts.iter().find(|post| !(1..=64).contains(&post.chars().count()))
    {
        bail!("{post:?} is no post: an id has 1 to 64 characters");
    }
    let mysql = roles::mysql(config)?;
    let recounted = if arguments.all {
        let store = roles::store(config).await?;
        let generation = live(&store).await?.generation;
        if arguments.new_positions {
            let begun = store.begin_new_positions(generation).await;
            begun.context("failed to begin new positions")?;
        }
        let all = All { mysql: &mysql, store: &store, generation };
        all.recount(Duration::from_secs(arguments.timeout_s)).await?
    } else {
        let (send, posts) = channel(AHEAD);
        let list = async {
            for post in &arguments.posts {
                let _ = send.send(PostId::from_log(post)).await;
            }
            drop(send);
            anyhow::Ok(())
        };
        let ((), recounts) = tokio::try_join!(list, recount(&mysql, posts))?;
        Recounted { recounts, went_on: None }
    };
    mysql.close().await;
    let Recounted { recounts, went_on } = &recounted;
    match went_on {
        _ if arguments.json => print_json(&recounted)?,
        Some(0) => println!("{recounts} recounts are applied"),
        Some(partitions) => {
            println!(
                "{recounts} recounts are applied, and as_of goes on in {partitions} partitions"
            );
        }
        None => println!("{recounts} recounts are on their way; `likewise drain` waits for them"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a recount of each post that comes.
async fn recount(mysql: &Mysql, mut posts: Receiver<PostId>) -> anyhow::Result<u64> {
    let recounts = AtomicU64::new(0);
    let posts = poll_fn(|context| posts.poll_recv(context).map(|post| post.map(anyhow::Ok)));
    let each = async |post: PostId| {
        let failed = || format!("failed to recount {post}; {} were", recounts.load(Relaxed));
        mysql.recount(&post).await.with_context(failed)?;
        recounts.fetch_add(1, Relaxed);
        anyhow::Ok(())
    };
    posts.try_for_each_concurrent(AT_ONCE, each).await?;
    Ok(recounts.into_inner())
}

/// Recounting everything.
struct All<'a> {
    mysql: &'a Mysql,
    store: &'a Store,
    generation: GenerationId,
}

impl All<'_> {
    /// The posts of MySQL are listed when every partition has been read up to now: what made it necessary
    /// has no key and no order, and changes from before it may still be on their way in other partitions.
    ///
    /// Those of MongoDB are listed when everything from before MySQL's list is counted, and whatever their
    /// count is. A like that was lost, and whose unlike was not, may have left MySQL without a row and the
    /// count at −1, which the next like hides behind a 0.
    async fn recount(&self, timeout: Duration) -> anyhow::Result<Recounted> {
        let listed_from = self.pass_a_mark(timeout).await?;
        let (begun, mysql_has_begun) = oneshot::channel::<()>();
        let mut begun = Some(begun);
        let (send_liked, liked) = channel(AHEAD);
        let (send_counted, counted) = channel(AHEAD);
        let (send, posts) = channel(AHEAD);
        let in_mysql = async {
            // The list is as of the moment at which its first post comes, at the latest.
            let each = async |post| {
                drop(begun.take());
                drop(send_liked.send(post).await);
            };
            let listed = self.mysql.each_known_post(each).await;
            drop((begun.take(), send_liked));
            listed.context("failed to list the posts of MySQL")
        };
        let in_mongodb = async {
            // It is never sent, and dropped when the list has begun.
            let _ = mysql_has_begun.await;
            self.pass_a_mark(timeout).await?;
            // A post that MySQL no longer knows may still have a count: 0 is a truth too.
            let each = async |post, _| drop(send_counted.send(post).await);
            let listed = self.store.each_count(self.generation, Counts::All, each).await;
            drop(send_counted);
            listed.context("failed to list the posts of MongoDB")
        };
        let each_once = async {
            let mut merged = Merged::new(liked, counted).await;
            while let Some(post) = merged.next().await {
                let _ = send.send(post).await;
            }
            drop(send);
            anyhow::Ok(())
        };
        let recounting = recount(self.mysql, posts);
        let ((), (), (), recounts) = tokio::try_join!(in_mysql, in_mongodb, each_once, recounting)?;
        self.pass_a_mark(timeout).await?;
        let went_on = self.store.let_as_of_go_on(self.generation, CHANGES, &listed_from).await;
        let went_on = went_on.context("failed to let as_of go on")?;
        Ok(Recounted { recounts, went_on: Some(went_on) })
    }

    /// Sets the marks and waits until each partition has passed its one. Answers with how far each is.
    async fn pass_a_mark(&self, timeout: Duration) -> anyhow::Result<Vec<(u32, Offset)>> {
        let until = Instant::now() + timeout;
        let mark = self.mysql.set_all_marks().await.context("failed to set the marks")?;
        let mark = mark.context("there are no marks: run `likewise migrate`")?;
        loop {
            let behind = match self.passed(mark).await {
                Ok(Ok(offsets)) => return Ok(offsets),
                Ok(Err(partition)) => format!("partition {partition} has not passed it"),
                Err(error) => format!("{error:#}"),
            };
            if Instant::now() >= until {
                bail!(
                    "the log was not read up to a mark within {} s: {behind}; see `likewise status`",
                    timeout.as_secs()
                );
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The next offset of each partition, or one that has not passed the mark.
    async fn passed(&self, mark: Micros) -> anyhow::Result<Result<Vec<(u32, Offset)>, u32>> {
        let live = live(self.store).await?;
        if let Some(reason) = halted(self.store, live.generation).await? {
            bail!("generation {} is halted: {reason}", live.generation);
        }
        let counted = self.store.partitions(live.generation).await?;
        let of = |partition| counted.iter().find(move |known| known.partition == partition);
        let offset = |partition| match of(partition) {
            Some(known) if known.passed >= Some(mark) => Ok((partition, known.next_offset)),
            _ => Err(partition),
        };
        Ok((0..live.partitions).map(offset).collect())
    }
}

/// Two lists of posts, each ordered by the bytes of the id, as one without duplicates.
struct Merged {
    lists: [Receiver<PostId>; 2],
    heads: [Option<PostId>; 2],
}

impl Merged {
    async fn new(mut a: Receiver<PostId>, mut b: Receiver<PostId>) -> Self {
        let heads = [a.recv().await, b.recv().await];
        Self { lists: [a, b], heads }
    }

    async fn next(&mut self) -> Option<PostId> {
        let least = self.heads.iter().flatten().min()?.clone();
        for (list, head) in self.lists.iter_mut().zip(&mut self.heads) {
            if head.as_ref() == Some(&least) {
                *head = list.recv().await;
            }
        }
        Some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_post_that_both_sides_know_is_recounted_once() {
        let list = async |posts: &[&str]| {
            let (send, receive) = channel(AHEAD);
            for post in posts {
                send.send(PostId::from_log(post)).await.expect("there is room");
            }
            receive
        };
        let (liked, counted) = (list(&["a", "c", "d"]).await, list(&["b", "c", "e"]).await);
        let mut merged = Merged::new(liked, counted).await;
        let mut posts = String::new();
        while let Some(post) = merged.next().await {
            posts += post.as_str();
        }
        assert_eq!(posts, "abcde");
    }
}
