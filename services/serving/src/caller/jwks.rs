//! Public keys that verify users' tokens, and their rotation.

use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use reqwest::redirect::Policy;
use serde::Deserialize;
use tokio::sync::Mutex;

/// Keys are rotated in days.
const REFRESH_URL_EVERY: Duration = Duration::from_secs(300);
const REFRESH_FILE_EVERY: Duration = Duration::from_secs(5);
/// How often a token with an unknown key may make us look again, whoever sends how many of them.
const LOOK_URL_EVERY: Duration = Duration::from_secs(10);
const LOOK_FILE_EVERY: Duration = Duration::from_secs(1);
/// Below a call's deadline.
const FETCH_DEADLINE: Duration = Duration::from_secs(3);
const MAX_BYTES: usize = 1 << 20;

/// The keys at one place.
pub(super) struct Jwks {
    source: Source,
    /// None before they were read for the first time.
    keys: RwLock<Option<Arc<Vec<Key>>>>,
    /// When they were read last, or tried to be.
    looked: Arc<Mutex<Option<Instant>>>,
}

enum Source {
    Url(reqwest::Client, reqwest::Url),
    File(PathBuf),
}

/// A key, and the one algorithm that it verifies.
struct Key {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

pub(super) enum NoKey {
    /// None by that name for that algorithm.
    Unknown,
    /// No keys could be read so far.
    Away,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<serde_json::Value>,
}

impl Jwks {
    pub(super) fn new(source: &str) -> anyhow::Result<Self> {
        let source = if source.starts_with("http://") || source.starts_with("https://") {
            let client = reqwest::Client::builder()
                .timeout(FETCH_DEADLINE)
                .redirect(Policy::none())
                .build()
                .context("failed to make an HTTP client")?;
            Source::Url(client, source.parse().context("the address of the keys is not valid")?)
        } else {
            Source::File(source.into())
        };
        Ok(Self { source, keys: RwLock::default(), looked: Arc::default() })
    }

    pub(super) async fn keep(self: &Arc<Self>) {
        loop {
            self.look(Duration::ZERO).await;
            tokio::time::sleep(match self.source {
                Source::Url(..) => REFRESH_URL_EVERY,
                Source::File(_) => REFRESH_FILE_EVERY,
            })
            .await;
        }
    }

    /// The key by its id; without one, the only key for the algorithm. A key that is not known is looked
    /// for once more.
    pub(super) async fn key(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, NoKey> {
        if let Ok(key) = self.known(id, algorithm) {
            return Ok(key);
        }
        self.look(match self.source {
            Source::Url(..) => LOOK_URL_EVERY,
            Source::File(_) => LOOK_FILE_EVERY,
        })
        .await;
        self.known(id, algorithm)
    }

    fn known(&self, id: Option<&str>, algorithm: Algorithm) -> Result<DecodingKey, NoKey> {
        let keys = self.keys.read().expect("no holder of the lock panics").clone();
        let keys = keys.ok_or(NoKey::Away)?;
        let mut fitting = keys
            .iter()
            .filter(|key| key.algorithm == algorithm && (id.is_none() || key.id.as_deref() == id));
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Ok(key.key.clone()),
            _ => Err(NoKey::Unknown),
        }
    }

    /// Reads the keys, unless that was tried within `at_most_every`. What fails leaves the last ones.
    pub(super) async fn look(self: &Arc<Self>, at_most_every: Duration) {
        // Whoever comes meanwhile waits for the same reading.
        let mut looked = self.looked.clone().lock_owned().await;
        if looked.is_some_and(|looked| looked.elapsed() < at_most_every) {
            return;
        }
        let this = self.clone();
        // In a task of its own: a caller that hangs up must not end what others wait for.
        let reading = tokio::spawn(async move {
            this.read().await;
            *looked = Some(Instant::now());
        });
        if let Err(error) = reading.await {
            tracing::error!(%error, "the reading of callers' keys panicked");
        }
    }

    async fn read(&self) {
        match self.source.read().await {
            Ok(keys) => {
                *self.keys.write().expect("no holder of the lock panics") = Some(Arc::new(keys));
            }
            Err(error) => {
                metrics::counter!("likewise_jwks_failures_total").increment(1);
                tracing::warn!(error = format!("{error:#}"), "the keys of callers cannot be read");
            }
        }
    }
}

impl Source {
    async fn read(&self) -> anyhow::Result<Vec<Key>> {
        let text = match self {
            Self::Url(client, url) => fetch(client, url.clone()).await?,
            Self::File(path) => {
                let path = path.clone();
                let reading = tokio::task::spawn_blocking(move || {
                    std::fs::read(&path)
                        .with_context(|| format!("failed to read {}", path.display()))
                });
                reading.await.context("the reading panicked")??
            }
        };
        let document: Document = serde_json::from_slice(&text).context("this is no set of keys")?;
        // One of a kind that is not known here is none of ours.
        let keys: Vec<Key> = document.keys.into_iter().filter_map(read).collect();
        ensure!(!keys.is_empty(), "there is no key for RS256 or ES256");
        Ok(keys)
    }
}

async fn fetch(client: &reqwest::Client, url: reqwest::Url) -> anyhow::Result<Vec<u8>> {
    let response = client.get(url).send().await.and_then(reqwest::Response::error_for_status);
    let mut response = response.context("failed to fetch the keys")?;
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await.context("failed to fetch the keys")? {
        ensure!(text.len() + chunk.len() <= MAX_BYTES, "the keys are larger than 1 MiB");
        text.extend_from_slice(&chunk);
    }
    Ok(text)
}

/// Symmetric keys are never taken from here: whoever reads public keys could sign with one.
fn read(key: serde_json::Value) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(key).ok()?;
    let algorithm = match (&jwk.algorithm, jwk.common.key_algorithm) {
        (AlgorithmParameters::RSA(_), None | Some(KeyAlgorithm::RS256)) => Algorithm::RS256,
        (AlgorithmParameters::EllipticCurve(curve), None | Some(KeyAlgorithm::ES256))
            if curve.curve == EllipticCurve::P256 =>
        {
            Algorithm::ES256
        }
        _ => return None,
    };
    if !matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature)) {
        return None;
    }
    let key = DecodingKey::from_jwk(&jwk).ok()?;
    Some(Key { id: jwk.common.key_id, algorithm, key })
}
