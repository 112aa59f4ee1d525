//! What the roles' listeners are told.

use std::time::Duration;

use anyhow::{Context as _, bail};
use likewise_serving::{CallerSettings, Callers, HttpSettings, WriteLimit};
use reqwest::header::HeaderValue;

use crate::config::{Config, PREFIX, Secret, need};

impl Config {
    /// The limits of every listener.
    pub(crate) fn http(&self) -> anyhow::Result<HttpSettings> {
        let millis = Duration::from_millis;
        let origins = listed(&self.cors_origins).map(origin).collect::<anyhow::Result<_>>()?;
        let proxies = listed(&self.trusted_proxies).map(|net| {
            let net = net.parse().or_else(|_| net.parse::<std::net::IpAddr>().map(Into::into));
            net.ok().with_context(|| {
                format!("{PREFIX}TRUSTED_PROXIES must hold networks such as 10.0.0.0/8")
            })
        });
        Ok(HttpSettings {
            header_deadline: millis(self.header_deadline_ms),
            idle_deadline: millis(self.idle_deadline_ms),
            send_deadline: millis(self.send_deadline_ms),
            request_deadline: millis(self.request_deadline_ms),
            max_connections: self.max_connections,
            max_concurrent_requests: self.max_concurrent_requests,
            shutdown_grace: millis(self.shutdown_grace_ms),
            cors_origins: origins,
            trusted_proxies: proxies.collect::<anyhow::Result<_>>()?,
        })
    }

    /// By what callers are known.
    pub(crate) fn callers(&self) -> anyhow::Result<Callers> {
        let exposed = |secret: &Secret| secret.expose().to_owned();
        Callers::new(&CallerSettings {
            service_token: exposed(need("SERVICE_TOKEN", self.service_token.as_ref())?),
            operator_token: self.operator_token.as_ref().map(exposed),
            jwt_secret: self.jwt_secret.as_ref().map(exposed),
            jwks: self.jwks.clone(),
            jwt_issuer: self.jwt_issuer.clone(),
            jwt_audience: self.jwt_audience.clone(),
        })
    }

    /// How many writes a minute a user may have.
    pub(crate) fn write_limit(&self) -> WriteLimit {
        WriteLimit::new(self.writes_per_minute)
    }
}

fn listed(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// An origin as a browser sends it: any other text would never be one.
fn origin(text: &str) -> anyhow::Result<HeaderValue> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_origin = host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '*', '?']));
    match text.parse() {
        Ok(origin) if is_origin => Ok(origin),
        _ => bail!("{PREFIX}CORS_ORIGINS must hold origins such as https://example.org"),
    }
}
