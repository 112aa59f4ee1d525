//! `likewise openapi write|read`

use std::process::ExitCode;

use anyhow::Context as _;

use crate::cli::Api;

/// Needs no settings and no server: the document is made from the routes.
pub(crate) fn run(api: Api) -> anyhow::Result<ExitCode> {
    let document = match api {
        Api::Write => likewise_write_api::openapi(),
        Api::Read => likewise_read_api::openapi(),
    };
    let document = document.to_pretty_json().context("failed to write the document")?;
    println!("{document}");
    Ok(ExitCode::SUCCESS)
}
