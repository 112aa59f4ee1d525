//! A second MongoDB, started as the stack's own is, alone or as a replica set of its own.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use likewise_tests::{eventually, fresh};
use mongodb::bson::{Document, doc};
use mongodb::{Client, Database};
use tokio::process::{Child, Command};

use crate::free_port;
use crate::mysqld::{command_of, remove};

const LIMIT: Duration = Duration::from_secs(60);

/// A server that ends with the test.
pub(crate) struct Mongod {
    folder: PathBuf,
    port: u16,
    running: Option<Child>,
}

impl Mongod {
    /// A server on its own, which knows no transactions.
    pub(crate) async fn alone() -> Self {
        let mongod = Self::start(false);
        mongod.primary().await;
        mongod
    }

    /// A replica set of one, without any data.
    pub(crate) async fn empty() -> Self {
        let mongod = Self::start(true);
        let members = [doc! { "_id": 0, "host": format!("127.0.0.1:{}", mongod.port) }];
        let initiate = doc! { "replSetInitiate": { "_id": "rs0", "members": members.to_vec() } };
        let admin = mongod.admin().await;
        eventually("the set is made", LIMIT, async || {
            admin.run_command(initiate.clone()).await.ok()
        })
        .await;
        mongod.primary().await;
        mongod
    }

    fn start(set: bool) -> Self {
        let (folder, port) = (std::env::temp_dir().join(fresh("likewise-mongod")), free_port());
        std::fs::create_dir_all(folder.join("data")).expect("the folder is made");
        let mut words = command_of("mongodb");
        let at = |words: &[String], option: &str| {
            words.iter().position(|word| word == option).expect("the stack's own has it") + 1
        };
        let place = at(&words, "--port");
        words[place] = port.to_string();
        if !set {
            let name = at(&words, "--replSet");
            words.drain(name - 1..=name);
        }
        let running = Command::new(&words[0])
            .args(&words[1..])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        Self { folder, port, running: Some(running) }
    }

    /// The address of it as a member of a set, as the stack's own is.
    pub(crate) fn uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}/?replicaSet=rs0", self.port)
    }

    /// The address of it as it is.
    pub(crate) fn direct_uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}/?directConnection=true", self.port)
    }

    pub(crate) async fn admin(&self) -> Database {
        let client = Client::with_uri_str(self.direct_uri()).await.expect("an URI");
        client.database("admin")
    }

    async fn primary(&self) {
        let admin = self.admin().await;
        eventually("it takes writes", LIMIT, async || {
            let hello: Document = admin.run_command(doc! { "hello": 1 }).await.ok()?;
            hello.get_bool("isWritablePrimary").ok()?.then_some(())
        })
        .await;
    }
}

impl Drop for Mongod {
    fn drop(&mut self) {
        drop(self.running.take());
        remove(&self.folder);
    }
}
