//! A user's own token: a JWT, its signature, and its claims.

use std::sync::Arc;

use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use likewise_core::UserId;
use serde::Deserialize;

use super::jwks::{Jwks, NoKey};
use super::{CallerSettings, Refused};
use crate::{Kind, Problem};

/// How far two machines' clocks may be apart, for `exp` and `nbf`.
const LEEWAY_S: u64 = 10;

pub(super) struct Tokens {
    secret: Option<DecodingKey>,
    jwks: Option<Arc<Jwks>>,
    issuer: String,
    audience: String,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
}

impl Tokens {
    pub(super) fn new(settings: &CallerSettings) -> anyhow::Result<Self> {
        let secret = settings.jwt_secret.as_ref();
        Ok(Self {
            secret: secret.map(|key| DecodingKey::from_secret(key.as_bytes())).transpose()?,
            jwks: settings.jwks.as_deref().map(Jwks::new).transpose()?.map(Arc::new),
            issuer: settings.jwt_issuer.clone(),
            audience: settings.jwt_audience.clone(),
        })
    }

    /// Ends never, or at once where there are no public keys to keep.
    pub(super) async fn keep(&self) {
        match &self.jwks {
            Some(jwks) => jwks.keep().await,
            None => std::future::pending().await,
        }
    }

    /// The user that a token names. The algorithm decides which key may speak: the secret for HS256, a
    /// public key for the one algorithm that it is made for, and nothing for any other.
    pub(super) async fn user(&self, token: &[u8]) -> Result<UserId, Refused> {
        let unknown = || Refused::token("unknown-token", "the token is not known here");
        // Another algorithm's name, `none` among them, cannot be read.
        let header = decode_header(token).map_err(|_| unknown())?;
        match (header.alg, &self.secret, &self.jwks) {
            (Algorithm::HS256, Some(secret), _) => self.verified(token, header.alg, secret),
            (Algorithm::RS256 | Algorithm::ES256, _, Some(jwks)) => {
                let key = jwks.key(header.kid.as_deref(), header.alg).await.map_err(no_key)?;
                self.verified(token, header.alg, &key)
            }
            _ => Err(Refused::token("algorithm", "no key here verifies the token's algorithm")),
        }
    }

    fn verified(&self, token: &[u8], by: Algorithm, key: &DecodingKey) -> Result<UserId, Refused> {
        let mut validation = Validation::new(by);
        validation.leeway = LEEWAY_S;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(&[&self.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        let decoded = decode::<Claims>(token, key, &validation).map_err(|error| refused(&error))?;
        UserId::parse(&decoded.claims.sub)
            .map_err(|_| Refused::token("subject", "the token's sub is not the id of a user"))
    }
}

fn refused(error: &Error) -> Refused {
    let (reason, detail) = match error.kind() {
        ErrorKind::ExpiredSignature => ("expired", "the token has expired"),
        ErrorKind::ImmatureSignature => ("not-yet", "the token is not valid yet"),
        ErrorKind::InvalidIssuer => ("issuer", "the token was made by somebody else"),
        ErrorKind::InvalidAudience => ("audience", "the token is for somebody else"),
        ErrorKind::InvalidSignature => ("signature", "the token's signature is not valid"),
        ErrorKind::MissingRequiredClaim(_) => {
            ("claims", "the token must have exp, iss, aud and sub")
        }
        _ => ("malformed", "the token cannot be read"),
    };
    Refused::token(reason, detail)
}

fn no_key(why: NoKey) -> Refused {
    match why {
        NoKey::Unknown => Refused::token("unknown-key", "the token's key is not known here"),
        NoKey::Away => Refused {
            reason: "keys-away",
            problem: Problem::new(
                Kind::Unavailable,
                "the keys that verify tokens are not available; repeat the call later",
            ),
        },
    }
}

#[cfg(test)]
#[path = "token/tests.rs"]
mod tests;
