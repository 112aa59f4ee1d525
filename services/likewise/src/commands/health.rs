//! `likewise health URL`

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;

/// Needs no settings, so that a container's health check can call it as it is.
pub(crate) async fn run(url: &str) -> anyhow::Result<ExitCode> {
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(3))
        .build()
        .context("failed to make an HTTP client")?;
    let response = client.get(url).send().await.context("no answer")?;
    let status = response.status();
    println!("{}", response.text().await.unwrap_or_default());
    Ok(if status.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
