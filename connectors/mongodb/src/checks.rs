//! Looking at what MongoDB and its address are set to, for whoever would lose counts with it.

mod rules;

use futures_util::future::join_all;
use likewise_core::Finding;
use mongodb::Client;
use mongodb::bson::doc;
use mongodb::options::{ClientOptions, ServerAddress};

pub(crate) use crate::checks::rules::asked;
use crate::checks::rules::{Answers, LIFETIME};
use crate::{Error, Store};

impl Store {
    /// Which server is the primary.
    pub async fn primary(&self) -> Result<String, Error> {
        let hello = self.within(self.database.run_command(doc! { "hello": 1 })).await?;
        Ok(hello.get_str("me").unwrap_or_default().to_owned())
    }

    /// What is not as it must be in the address, and in each server of it that answers. An error where
    /// none does. A server that is no member of a replica set is found too: a client that looks for
    /// the set would only say that it finds no primary.
    pub async fn check(&self) -> Result<Vec<Finding>, Error> {
        let asked = join_all(self.options.hosts.iter().map(|host| self.ask(host))).await;
        let mut findings = self.asked.to_vec();
        let mut away = None;
        let mut answered = false;
        for found in asked {
            match found {
                Ok(found) => {
                    answered = true;
                    findings.extend(found);
                }
                Err(error) => away = Some(error),
            }
        }
        match away {
            Some(error) if !answered && !findings.iter().any(Finding::is_refused) => Err(error),
            _ => Ok(findings),
        }
    }

    /// Asks one server, whatever it is.
    async fn ask(&self, host: &ServerAddress) -> Result<Vec<Finding>, Error> {
        let mut options = ClientOptions::clone(&self.options);
        options.hosts = vec![host.clone()];
        options.direct_connection = Some(true);
        options.load_balanced = None;
        options.repl_set_name = None;
        let client = Client::with_options(options).map_err(Error::Settings)?;
        let admin = client.database("admin");
        let ask = |command| self.within(admin.run_command(command));
        let answers = match ask(doc! { "hello": 1 }).await {
            // A router has neither of these, and an account may not see them.
            Ok(hello) => Ok(Answers {
                hello,
                lifetime: ask(doc! { "getParameter": 1, (LIFETIME): 1 }).await.ok(),
                set: ask(doc! { "replSetGetConfig": 1 }).await.ok(),
            }),
            Err(error) => Err(error),
        };
        client.shutdown().await;
        Ok(rules::answered(&host.to_string(), &answers?))
    }
}
