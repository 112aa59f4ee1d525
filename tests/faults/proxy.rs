//! A TCP proxy that is slow, and that can cut its connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast::Sender;
use tokio_util::sync::{CancellationToken, DropGuard};

const DELAY_MS: std::ops::Range<u64> = 50..500;

/// Forwards connections until it is dropped.
pub(crate) struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
    _until: DropGuard,
}

struct State {
    slow: AtomicBool,
    cut: Sender<()>,
}

impl Proxy {
    /// In front of the first server of a `mongodb://` address.
    pub(crate) async fn start(uri: &str, rng: &mut StdRng) -> Self {
        let server = uri.trim_start_matches("mongodb://").split(['/', ',']).next();
        let server = server.expect("an address").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("a port");
        let (cut, _) = tokio::sync::broadcast::channel(1);
        let state = Arc::new(State { slow: true.into(), cut });
        let until = CancellationToken::new();
        let (shared, stop, mut chance) = (state.clone(), until.clone(), StdRng::from_rng(rng));
        tokio::spawn(async move {
            while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
                let Ok((client, _)) = accepted else { break };
                let chance = StdRng::from_rng(&mut chance);
                tokio::spawn(forward(client, server.clone(), shared.clone(), chance));
            }
        });
        Self { address, state, _until: until.drop_guard() }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts every connection.
    pub(crate) fn cut(&self) {
        // Nobody listens where there is no connection.
        let _ = self.state.cut.send(());
    }

    /// Is slow no more.
    pub(crate) fn heal(&self) {
        self.state.slow.store(false, Ordering::Relaxed);
    }
}

async fn forward(client: TcpStream, server: String, state: Arc<State>, mut rng: StdRng) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let mut cut = state.cut.subscribe();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let there = copy(from_client, to_server, state.clone(), StdRng::from_rng(&mut rng));
    let back = copy(from_server, to_client, state, rng);
    tokio::select! {
        () = there => {}
        () = back => {}
        _ = cut.recv() => {}
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, state: Arc<State>, mut rng: StdRng) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if state.slow.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(rng.random_range(DELAY_MS))).await;
        }
        if to.write_all(&bytes[..read]).await.is_err() {
            break;
        }
    }
}
