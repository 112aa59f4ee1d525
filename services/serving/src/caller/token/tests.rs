use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
use serde_json::{Value, json};

use super::*;

const SECRET: &str = "a-secret-of-at-least-thirty-two-characters";
const RSA: &str = include_str!("rsa.pem");
const RSA_PUBLIC: &str = include_str!("rsa.public.pem");
const EC: &str = include_str!("ec.pem");
const KEYS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/caller/token/jwks.json");

fn tokens(jwt_secret: Option<&str>, jwks: Option<&str>) -> Tokens {
    let settings = CallerSettings {
        jwt_secret: jwt_secret.map(str::to_owned),
        jwks: jwks.map(str::to_owned),
        jwt_issuer: "likewise".to_owned(),
        jwt_audience: "likewise".to_owned(),
        ..CallerSettings::default()
    };
    Tokens::new(&settings).expect("settings")
}

fn claims() -> Value {
    let now = get_current_timestamp();
    json!({ "sub": "ann", "iss": "likewise", "aud": "likewise", "exp": now + 60, "nbf": now - 5 })
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn signed(algorithm: Algorithm, id: Option<&str>, key: &EncodingKey, claims: &Value) -> String {
    let header = Header { kid: id.map(str::to_owned), ..Header::new(algorithm) };
    encode(&header, claims, key).expect("it can be signed")
}

fn by_secret(claims: &Value) -> String {
    signed(
        Algorithm::HS256,
        None,
        &EncodingKey::from_secret(SECRET.as_bytes()).expect("a key"),
        claims,
    )
}

async fn read(tokens: &Tokens, token: &str) -> Result<String, &'static str> {
    let user = tokens.user(token.as_bytes()).await;
    user.map(|user| user.to_string()).map_err(|refused| refused.reason)
}

#[tokio::test]
async fn claims_decide() {
    let tokens = tokens(Some(SECRET), None);
    let now = get_current_timestamp();
    assert_eq!(read(&tokens, &by_secret(&claims())).await, Ok("ann".to_owned()));
    let many = with("aud", json!(["other", "likewise"]));
    assert_eq!(read(&tokens, &by_secret(&many)).await, Ok("ann".to_owned()));
    for (name, value, reason) in [
        ("exp", json!(now - LEEWAY_S - 5), "expired"),
        ("nbf", json!(now + LEEWAY_S + 30), "not-yet"),
        ("iss", json!("somebody"), "issuer"),
        ("aud", json!("somebody"), "audience"),
        ("sub", json!("a b"), "subject"),
        ("sub", json!(""), "subject"),
        ("sub", json!(7), "malformed"),
    ] {
        let token = by_secret(&with(name, value.clone()));
        assert_eq!(read(&tokens, &token).await, Err(reason), "{name}: {value}");
    }
    for name in ["exp", "iss", "aud", "sub"] {
        let mut without = claims();
        without.as_object_mut().expect("an object").remove(name);
        assert!(read(&tokens, &by_secret(&without)).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn a_key_verifies_its_own_algorithm_alone() {
    let rsa = EncodingKey::from_rsa_pem(RSA.as_bytes()).expect("a key");
    let ec = EncodingKey::from_ec_pem(EC.as_bytes()).expect("a key");
    let both = tokens(Some(SECRET), Some(KEYS));
    let ann = Ok("ann".to_owned());
    assert_eq!(read(&both, &signed(Algorithm::RS256, Some("rsa-1"), &rsa, &claims())).await, ann);
    assert_eq!(read(&both, &signed(Algorithm::ES256, Some("ec-1"), &ec, &claims())).await, ann);
    assert_eq!(read(&both, &signed(Algorithm::RS256, None, &rsa, &claims())).await, ann);
    let unknown = signed(Algorithm::RS256, Some("rsa-2"), &rsa, &claims());
    assert_eq!(read(&both, &unknown).await, Err("unknown-key"));
    let of_another = signed(Algorithm::RS256, Some("ec-1"), &rsa, &claims());
    assert_eq!(read(&both, &of_another).await, Err("unknown-key"));
    let stronger = signed(Algorithm::RS512, Some("rsa-1"), &rsa, &claims());
    assert_eq!(read(&both, &stronger).await, Err("algorithm"));

    // The public key as the secret of HS256, and no signature at all.
    let public = EncodingKey::from_secret(RSA_PUBLIC.as_bytes()).expect("a key");
    let confused = signed(Algorithm::HS256, Some("rsa-1"), &public, &claims());
    assert_eq!(read(&both, &confused).await, Err("signature"));
    let keys_alone = tokens(None, Some(KEYS));
    assert_eq!(read(&keys_alone, &confused).await, Err("algorithm"));
    let secret_alone = tokens(Some(SECRET), None);
    let by_rsa = signed(Algorithm::RS256, Some("rsa-1"), &rsa, &claims());
    assert_eq!(read(&secret_alone, &by_rsa).await, Err("algorithm"));
    let signed = by_secret(&claims());
    let payload = signed.split('.').nth(1).expect("three parts");
    let unsigned = format!("eyJhbGciOiJub25lIn0.{payload}.");
    assert_eq!(read(&both, &unsigned).await, Err("unknown-token"));
    let other = by_secret(&with("sub", json!("ben")));
    let changed = signed.replace(payload, other.split('.').nth(1).expect("three parts"));
    assert_eq!(read(&both, &changed).await, Err("signature"));
    for junk in [&signed[..signed.len() - 2], "", ".", "..", "a.b.c", "a.b.c.d"] {
        assert!(read(&both, junk).await.is_err(), "{junk}");
    }
}

#[tokio::test]
async fn keys_are_rotated_and_the_last_ones_stand_while_their_file_is_away() {
    let folder = std::env::temp_dir().join(format!("likewise-jwks-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir(&folder).expect("it is made");
    let file = folder.join("jwks.json");
    let rsa = EncodingKey::from_rsa_pem(RSA.as_bytes()).expect("a key");
    let first = signed(Algorithm::RS256, Some("rsa-1"), &rsa, &claims());
    let second = signed(Algorithm::RS256, Some("rsa-2"), &rsa, &claims());
    let path = file.to_str().expect("text");

    let early = tokens(None, Some(path));
    assert_eq!(read(&early, &first).await, Err("keys-away"));

    let keys = std::fs::read_to_string(KEYS).expect("it can be read");
    std::fs::write(&file, &keys).expect("written");
    let tokens = tokens(None, Some(path));
    assert_eq!(read(&tokens, &first).await, Ok("ann".to_owned()));
    std::fs::write(&file, "not keys").expect("written");
    tokens.jwks.as_ref().expect("keys").look(std::time::Duration::ZERO).await;
    assert_eq!(read(&tokens, &first).await, Ok("ann".to_owned()));
    std::fs::write(&file, keys.replace("rsa-1", "rsa-2")).expect("written");
    tokens.jwks.as_ref().expect("keys").look(std::time::Duration::ZERO).await;
    assert_eq!(read(&tokens, &second).await, Ok("ann".to_owned()));
    assert_eq!(read(&tokens, &first).await, Err("unknown-key"));
    std::fs::remove_dir_all(folder).expect("it is removed");
}
