//! A second MySQL, started as the stack's own is, that may be broken.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use likewise_tests::{eventually, fresh, likewise_told, pid_of, setting};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts};
use tokio::process::{Child, Command};

use crate::free_port;

/// Making the data folder writes and syncs some hundred MB.
const LIMIT: Duration = Duration::from_secs(120);

/// May do everything; the application's accounts are there too.
const BREAKER: &str = "CREATE USER IF NOT EXISTS breaker@'%' IDENTIFIED BY 'breaker';
GRANT ALL ON *.* TO breaker@'%' WITH GRANT OPTION;
";

/// A server that ends with the test.
pub(crate) struct Mysqld {
    folder: PathBuf,
    port: u16,
    running: Option<Child>,
    application: String,
    admin: String,
}

impl Mysqld {
    /// Makes its data folder. It does not run yet, and has no tables.
    pub(crate) async fn new() -> Self {
        let (folder, port) = (std::env::temp_dir().join(fresh("likewise-mysqld")), free_port());
        std::fs::create_dir_all(folder.join("data")).expect("the folder is made");
        std::fs::write(folder.join("accounts.sql"), accounts().await + BREAKER).expect("written");
        let here = |name: &str| {
            let url = setting(name);
            let theirs = Opts::from_url(&url).expect("an URL").tcp_port();
            url.replace(&format!(":{theirs}/"), &format!(":{port}/"))
        };
        let (application, admin) = (here("MYSQL_URL"), here("MYSQL_ADMIN_URL"));
        let this = Self { folder, port, running: None, application, admin };
        this.configure("");
        let made = this.command().arg("--initialize-insecure").status().await;
        assert!(made.expect("it starts").success(), "look into {}", this.folder.display());
        this
    }

    /// As the stack's own, with `more` lines in its option file.
    pub(crate) async fn start(&mut self, more: &str) {
        self.stop().await;
        self.configure(more);
        let accounts = format!("--init-file={}", self.folder.join("accounts.sql").display());
        self.running = Some(self.command().arg(accounts).spawn().expect("it starts"));
        self.connection().await;
    }

    pub(crate) async fn stop(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.kill().await.expect("it ends");
        }
    }

    /// Brings its tables up.
    pub(crate) async fn migrate(&self) {
        let migrated = likewise_told(&["migrate"], &self.told()).await;
        assert!(migrated.status.success(), "{migrated:?}");
    }

    /// What leads the binary to it instead of the stack's own.
    pub(crate) fn told(&self) -> [(&str, &str); 2] {
        [("LIKEWISE_MYSQL_URL", &self.application), ("LIKEWISE_MYSQL_ADMIN_URL", &self.admin)]
    }

    /// A connection that may break everything, as soon as the server answers.
    pub(crate) async fn connection(&self) -> Conn {
        let url = format!("mysql://breaker:breaker@127.0.0.1:{}/likewise", self.port);
        eventually("MySQL answers", LIMIT, async || Conn::from_url(&url).await.ok()).await
    }

    /// Runs statements, as an operator pastes them.
    pub(crate) async fn run(&self, statements: &str) {
        let mut conn = self.connection().await;
        let statements = statements.split(';').map(str::trim);
        for statement in statements.filter(|text| !text.is_empty() && !text.starts_with("--")) {
            conn.query_drop(statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        conn.disconnect().await.expect("it ends");
    }

    /// The command of the stack's own server, with a folder and a port of its own.
    fn command(&self) -> Command {
        let mut words = command_of("mysql").into_iter().map(|word| {
            match word.split_once('=').map_or("", |(option, _)| option) {
                "--defaults-file" => format!("--defaults-file={}", self.options().display()),
                "--datadir" => format!("--datadir={}", self.folder.join("data").display()),
                "--port" => format!("--port={}", self.port),
                _ => word,
            }
        });
        let mut command = Command::new(words.next().expect("it has a name"));
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder.join("log"))
            .expect("it is made");
        command
            .args(words)
            .current_dir(self.folder.join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true);
        command
    }

    fn options(&self) -> PathBuf {
        self.folder.join("my.cnf")
    }

    fn configure(&self, more: &str) {
        let theirs = command_of("mysql")
            .into_iter()
            .find_map(|word| word.strip_prefix("--defaults-file=").map(PathBuf::from))
            .expect("it has an option file");
        let theirs = std::fs::read_to_string(theirs).expect("it can be read");
        std::fs::write(self.options(), format!("{theirs}\n{more}\n")).expect("it is written");
    }
}

impl Drop for Mysqld {
    fn drop(&mut self) {
        drop(self.running.take());
        if !std::thread::panicking() {
            remove(&self.folder);
        }
    }
}

/// A folder that a server of ours was killed in.
pub(crate) fn remove(folder: &Path) {
    if let Err(error) = std::fs::remove_dir_all(folder) {
        eprintln!("{} stays: {error}", folder.display());
    }
}

/// The words with which a server of the stack was started.
pub(crate) fn command_of(server: &str) -> Vec<String> {
    let words = std::fs::read(format!("/proc/{}/cmdline", pid_of(server))).expect("it runs");
    let words = String::from_utf8(words).expect("text");
    words.split_terminator('\0').map(str::to_owned).collect()
}

/// The statements that make the stack's accounts.
async fn accounts() -> String {
    let password = |name: &str| {
        let opts = Opts::from_url(&setting(name)).expect("an URL");
        opts.pass().expect("a password").to_owned()
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/mysql-accounts.sh");
    let printed = Command::new("sh")
        .arg(script)
        .env("MYSQL_APP_PASSWORD", password("MYSQL_URL"))
        .env("MYSQL_ADMIN_PASSWORD", password("MYSQL_ADMIN_URL"))
        .env("MYSQL_DEBEZIUM_PASSWORD", "unused")
        .output()
        .await
        .expect("sh starts");
    assert!(printed.status.success(), "{printed:?}");
    String::from_utf8(printed.stdout).expect("text")
}
