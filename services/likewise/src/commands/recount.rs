//! `likewise recount`

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use likewise_core::PostId;
use serde::Serialize;
use tokio::sync::mpsc::channel;

use super::{live, print_json};
use crate::cli::RecountArguments;
use crate::config::Config;
use crate::roles;

/// How many posts are read ahead.
const AHEAD: usize = 256;

#[derive(Debug, Default, Serialize)]
struct Recounted {
    recounts: u64,
}

pub(crate) async fn run(config: &Config, arguments: RecountArguments) -> anyhow::Result<ExitCode> {
    if arguments.posts.is_empty() != arguments.all {
        bail!("name the posts to recount, or --all");
    }
    let mysql = roles::mysql(config)?;
    let (send, mut posts) = channel::<PostId>(AHEAD);
    let list = async {
        let each = async |post| drop(send.send(post).await);
        if arguments.all {
            // A post that MySQL no longer knows may still have a count: 0 is a truth too.
            let store = roles::store(config).await?;
            let generation = live(&store).await?.generation;
            mysql.each_known_post(each).await.context("failed to list the posts of MySQL")?;
            store
                .each_count(generation, async |post, _| drop(send.send(post).await))
                .await
                .context("failed to list the posts of MongoDB")?;
        } else {
            for post in &arguments.posts {
                each(PostId::from_log(post)).await;
            }
        }
        drop(send);
        anyhow::Ok(())
    };
    let recount = async {
        let mut recounted = Recounted::default();
        while let Some(post) = posts.recv().await {
            let failed = || format!("failed to recount {post}; {} were", recounted.recounts);
            mysql.recount(&post).await.with_context(failed)?;
            recounted.recounts += 1;
        }
        anyhow::Ok(recounted)
    };
    let ((), recounted) = tokio::try_join!(list, recount)?;
    if arguments.json {
        print_json(&recounted)?;
    } else {
        println!(
            "{} recounts are on their way; `likewise drain` waits for them",
            recounted.recounts
        );
    }
    Ok(ExitCode::SUCCESS)
}
