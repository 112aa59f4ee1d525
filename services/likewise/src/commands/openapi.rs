//! `likewise openapi write|read`

use std::process::ExitCode;

use anyhow::Context as _;

use crate::cli::Api;

/// Needs no settings and no server: the document is made from the routes.
pub(crate) fn run(api: Api) -> anyhow::Result<ExitCode> {
    print!("{}", document(api)?);
    Ok(ExitCode::SUCCESS)
}

fn document(api: Api) -> anyhow::Result<String> {
    let document = match api {
        Api::Write => likewise_write_api::openapi(),
        Api::Read => likewise_read_api::openapi(),
    };
    Ok(document.to_pretty_json().context("failed to write the document")? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: &str = include_str!("../../../write-api/openapi.json");
    const READ: &str = include_str!("../../../read-api/openapi.json");

    #[test]
    fn the_committed_documents_are_those_of_the_routes() {
        for (api, committed, name) in [(Api::Write, WRITE, "write"), (Api::Read, READ, "read")] {
            let document = document(api).expect("it can be written");
            assert!(
                document == committed,
                "run `cargo run openapi {name} > services/{name}-api/openapi.json`"
            );
        }
    }
}
