//! A MySQL that takes calls and answers none: what a stalled disk, a full queue or a cut network look like.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use likewise_core::{PostId, UserId};
use likewise_mysql::{Error, Mysql, PoolSettings};
use likewise_tests::{fresh, setting};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const DEADLINE: Duration = Duration::from_secs(2);
const CONNECTIONS: usize = 4;

/// Forwards connections until it falls silent; from then on each stays open and nothing passes.
struct Line {
    address: SocketAddr,
    /// Whether new connections are silent from their start.
    silent: Arc<AtomicBool>,
    hush: watch::Sender<()>,
    accepted: Arc<AtomicU64>,
}

impl Line {
    async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (hush, heard) = watch::channel(());
        let (silent, accepted) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (is_silent, count) = (silent.clone(), accepted.clone());
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let (server, mut heard) = (server.clone(), heard.clone());
                let silent = is_silent.load(Ordering::Relaxed);
                heard.mark_unchanged();
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(server).await.expect("MySQL listens");
                    if !silent {
                        tokio::select! {
                            _ = copy_bidirectional(&mut client, &mut server) => return,
                            _ = heard.changed() => {}
                        }
                    }
                    // Both ends stay open: nobody is told anything.
                    std::future::pending::<()>().await;
                    drop((client, server));
                });
            }
        });
        Self { address, silent, hush, accepted }
    }

    fn fall_silent(&self) {
        self.silent.store(true, Ordering::Relaxed);
        self.hush.send(()).expect("it forwards");
    }

    /// New connections are forwarded; those that fell silent stay so.
    fn forward_new_ones(&self) {
        self.silent.store(false, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_fell_silent_are_replaced_and_none_is_lost_to_the_pool() {
    let url = setting("MYSQL_URL");
    let (account, address) = url.rsplit_once('@').expect("an account");
    let (server, database) = address.split_once('/').expect("a database");
    let line = Line::to(server.to_owned()).await;
    let settings = PoolSettings {
        url: format!("{account}@{}/{database}", line.address),
        max_connections: CONNECTIONS,
        tls_ca: None,
        deadline: DEADLINE,
    };
    let mysql = Mysql::new(&settings).expect("settings");
    let user = UserId::parse("silent").expect("an id");
    let post = PostId::parse(&fresh("post")).expect("an id");
    let all_at_once = async |calls: usize| {
        let asked = Instant::now();
        let calls = (0..calls).map(|_| mysql.liked(&user, &post));
        (futures_util::future::join_all(calls).await, asked.elapsed())
    };

    let (answers, _) = all_at_once(CONNECTIONS * 2).await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok(false))), "{answers:?}");
    let before = line.accepted.load(Ordering::Relaxed);

    line.fall_silent();
    for _ in 0..2 {
        let (answers, took) = all_at_once(CONNECTIONS * 2).await;
        let timed_out = |answer: &Result<bool, Error>| matches!(answer, Err(Error::Timeout(_)));
        assert!(answers.iter().all(timed_out), "{answers:?}");
        assert!(took < DEADLINE * 2, "{took:?}: a call has one deadline");
    }

    line.forward_new_ones();
    let (answers, _) = all_at_once(CONNECTIONS * 2).await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok(false))), "{answers:?}");
    assert!(line.accepted.load(Ordering::Relaxed) > before, "connections were replaced");
    mysql.close().await;
}
