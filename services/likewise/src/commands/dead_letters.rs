//! `likewise dead-letters list`, `show` and `retry`

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use comfy_table::{Table, presets};
use likewise_kafka::CHANGES;
use likewise_mongodb::{KeptLetter, Store};
use likewise_mysql::Mysql;
use serde::Serialize;

use super::print_json;
use crate::cli::{DeadLettersCommand, LetterPlace};
use crate::config::Config;
use crate::roles;

/// A letter as JSON.
#[derive(Debug, Serialize)]
struct Letter {
    partition: u32,
    offset: i64,
    reason: String,
    post_id: Option<String>,
    /// The value's first bytes; what is no UTF-8 is replaced.
    payload: String,
}

impl From<KeptLetter> for Letter {
    fn from(letter: KeptLetter) -> Self {
        Self {
            partition: letter.partition,
            offset: letter.offset,
            reason: letter.reason,
            post_id: letter.post.map(|post| post.to_string()),
            payload: String::from_utf8_lossy(&letter.payload).into_owned(),
        }
    }
}

#[derive(Debug, Serialize)]
struct Retried {
    recounts: u64,
    /// Letters that name no post.
    kept: u64,
}

pub(crate) async fn run(config: &Config, command: DeadLettersCommand) -> anyhow::Result<ExitCode> {
    let store = roles::store(config).await?;
    match command {
        DeadLettersCommand::List { limit, json } => list(&store, limit, json).await,
        DeadLettersCommand::Show { letter, json } => show(&store, letter, json).await,
        DeadLettersCommand::Discard { letters } => discard(&store, letters).await,
        DeadLettersCommand::Retry { letters, all, json } => {
            if letters.is_empty() != all {
                bail!("name the letters to retry, or --all, not both");
            }
            let letters = if all { None } else { Some(letters) };
            let mysql = roles::mysql(config)?;
            let retried = retry(&store, &mysql, letters, json).await;
            mysql.close().await;
            retried
        }
    }
}

async fn list(store: &Store, limit: i64, json: bool) -> anyhow::Result<ExitCode> {
    let failed = "failed to read the dead letters";
    let letters = store.dead_letters(CHANGES, limit).await.context(failed)?;
    let total = store.count_dead_letters(CHANGES).await.context(failed)?;
    if json {
        print_json(&letters.into_iter().map(Letter::from).collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["letter", "post", "bytes", "reason"]);
    for letter in &letters {
        table.add_row([
            format!("{}/{}", letter.partition, letter.offset),
            letter.post.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
            letter.payload.len().to_string(),
            letter.reason.clone(),
        ]);
    }
    if !letters.is_empty() {
        println!("{table}");
    }
    println!("{} of {total} dead letters", letters.len());
    Ok(ExitCode::SUCCESS)
}

async fn one(store: &Store, place: LetterPlace) -> anyhow::Result<KeptLetter> {
    let LetterPlace { partition, offset } = place;
    let letter = store.dead_letter(CHANGES, partition, offset).await;
    let letter = letter.context("failed to read the dead letters")?;
    letter.with_context(|| format!("there is no dead letter {partition}/{offset}"))
}

async fn show(store: &Store, place: LetterPlace, json: bool) -> anyhow::Result<ExitCode> {
    let letter = Letter::from(one(store, place).await?);
    if json {
        print_json(&letter)?;
        return Ok(ExitCode::SUCCESS);
    }
    println!("letter   {}/{} of {CHANGES}", letter.partition, letter.offset);
    println!("reason   {}", letter.reason);
    println!("post     {}", letter.post_id.as_deref().unwrap_or("-"));
    println!("payload  {}", letter.payload);
    Ok(ExitCode::SUCCESS)
}

async fn discard(store: &Store, places: Vec<LetterPlace>) -> anyhow::Result<ExitCode> {
    for place in places {
        let KeptLetter { partition, offset, .. } = one(store, place).await?;
        let removed = store.remove_dead_letter(CHANGES, partition, offset).await;
        removed.with_context(|| format!("failed to remove the letter {partition}/{offset}"))?;
        println!("letter {partition}/{offset} is gone");
    }
    Ok(ExitCode::SUCCESS)
}

/// How many letters are read at once.
const PAGE: i64 = 500;

/// Has the posts of the letters recounted, and removes the letters. None means all.
async fn retry(
    store: &Store,
    mysql: &Mysql,
    places: Option<Vec<LetterPlace>>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let mut retried = Retried { recounts: 0, kept: 0 };
    match places {
        Some(places) => {
            for place in places {
                let letter = one(store, place).await?;
                retry_one(store, mysql, letter, &mut retried).await?;
            }
        }
        None => {
            let failed = "failed to read the dead letters";
            loop {
                let letters = store.named_dead_letters(CHANGES, PAGE).await.context(failed)?;
                if letters.is_empty() {
                    break;
                }
                for letter in letters {
                    retry_one(store, mysql, letter, &mut retried).await?;
                }
            }
            retried.kept = store.count_dead_letters(CHANGES).await.context(failed)?;
        }
    }
    let Retried { recounts, kept } = &retried;
    if json {
        print_json(&retried)?;
    } else {
        println!("{recounts} recounts are on their way; `likewise drain` waits for them");
        if *kept > 0 {
            println!(
                "{kept} letters name no post and stay: `likewise recount --all` makes up for them, \
                 `likewise dead-letters discard` removes them"
            );
        }
    }
    Ok(if *kept == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A letter is never applied: the recount tells the truth about its post, whatever it would have said.
async fn retry_one(
    store: &Store,
    mysql: &Mysql,
    letter: KeptLetter,
    retried: &mut Retried,
) -> anyhow::Result<()> {
    let KeptLetter { partition, offset, post, .. } = letter;
    let Some(post) = post else {
        retried.kept += 1;
        return Ok(());
    };
    mysql.recount(&post).await.with_context(|| format!("failed to recount {post}"))?;
    retried.recounts += 1;
    let removed = store.remove_dead_letter(CHANGES, partition, offset).await;
    removed.with_context(|| format!("failed to remove the letter {partition}/{offset}"))
}
