//! Who is known, and what they may do.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use likewise_tests::{Answer, Api, Oracle, eventually, fresh, setting};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::role::Role;

/// Of the tests alone, as its public half in the keys.
const KEY: &str = include_str!("../../services/serving/src/caller/token/rsa.pem");
const KEYS: &str = include_str!("../../services/serving/src/caller/token/jwks.json");
/// A key that is not known is looked for every 10 s.
const ROTATION: Duration = Duration::from_secs(60);
const LIMIT: Duration = Duration::from_secs(60);

fn token(user: &str, seconds: i64) -> String {
    let expires = get_current_timestamp().cast_signed() + seconds;
    let claims = json!({ "sub": user, "iss": "likewise", "aud": "likewise", "exp": expires });
    let key = EncodingKey::from_secret(setting("JWT_SECRET").as_bytes()).expect("a key");
    encode(&Header::default(), &claims, &key).expect("it is signed")
}

async fn call(method: Method, target: &str, token: &str, user: Option<&str>) -> Answer {
    let bearer = format!("Bearer {token}");
    let mut headers = vec![("Authorization", bearer.as_str())];
    headers.extend(user.map(|user| ("X-User-Id", user)));
    Api::new().call(method, target, &headers).await
}

#[tokio::test]
async fn a_user_likes_by_a_token_of_their_own_and_for_nobody_else() {
    let (user, post) = (fresh("user"), fresh("post"));
    let (token, like) = (token(&user, 60), format!("W/v1/posts/{post}/like"));
    let liked = call(Method::PUT, &like, &token, None).await;
    assert_eq!((liked.status.as_u16(), &liked.json["changed"]), (200, &json!(true)));
    assert!(Api::new().liked(&user, &post).await);
    for named in ["somebody-else", &user] {
        let refused = call(Method::PUT, &like, &token, Some(named)).await;
        assert_eq!(refused.status, 400);
        assert_eq!(refused.json["type"], "urn:likewise:problem:unexpected-user");
    }
    assert_eq!(Oracle::new().likes(&post).await, 1);
    let count = call(Method::GET, &format!("R/v1/posts/{post}/count"), &token, None).await;
    assert_eq!(count.status, 200, "any caller reads counts");
    let again = call(Method::DELETE, &like, &token, None).await;
    assert_eq!(again.json["changed"], true);
}

#[tokio::test]
async fn a_user_lists_and_deletes_their_own_likes_and_nobody_elses() {
    let (ann, ben, post) = (fresh("ann"), fresh("ben"), fresh("post"));
    let (anns, bens) = (token(&ann, 60), token(&ben, 60));
    for token in [&anns, &bens] {
        let like = call(Method::PUT, &format!("W/v1/posts/{post}/like"), token, None).await;
        assert_eq!(like.status, 200, "{like:?}");
    }
    let likes = format!("W/v1/users/{ann}/likes");
    let own = call(Method::GET, &likes, &anns, None).await;
    assert_eq!((own.status.as_u16(), &own.json["items"][0]["post_id"]), (200, &json!(post)));
    for (method, target) in [
        (Method::GET, likes.clone()),
        (Method::DELETE, likes.clone()),
        (Method::DELETE, format!("W/v1/posts/{post}/likes")),
    ] {
        let refused = call(method, &target, &bens, None).await;
        assert_eq!(refused.status, 403, "{target}");
        assert_eq!(refused.json["type"], "urn:likewise:problem:forbidden");
    }
    assert_eq!(Oracle::new().likes(&post).await, 2);

    let asked = call(Method::DELETE, &likes, &anns, None).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    let receipt = format!("W{}", asked.headers["location"].to_str().expect("an address"));
    assert_eq!(call(Method::GET, &receipt, &bens, None).await.status, 404);
    eventually("the deletion is done", LIMIT, async || {
        let receipt = call(Method::GET, &receipt, &anns, None).await;
        (receipt.json["done_at"].is_string() && receipt.json["edges"] == 1).then_some(())
    })
    .await;
    assert_eq!(Oracle::new().likes(&post).await, 1);
}

#[tokio::test]
async fn a_token_that_is_not_accepted_is_told_so_and_none_is_asked_for() {
    let like = "W/v1/posts/p/like";
    for refused in [token("ann", -60), token("a b", 60), "a.b.c".to_owned(), "junk".to_owned()] {
        let answer = call(Method::PUT, like, &refused, None).await;
        assert_eq!(answer.status, 401, "{refused}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer error=\"invalid_token\"");
        assert_eq!(answer.json["type"], "urn:likewise:problem:unauthorized");
    }
    let answer = Api::new().call(Method::PUT, like, &[("X-User-Id", "ann")]).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["www-authenticate"]),
        (401, &"Bearer".parse().expect("a value"))
    );
    let operator = setting("OPERATOR_TOKEN");
    for user in [None, Some("ann")] {
        let answer = call(Method::PUT, like, &operator, user).await;
        assert_eq!(answer.status, 403);
        assert_eq!(answer.json["type"], "urn:likewise:problem:forbidden");
    }
    assert!(
        likewise_tests::metric("WRITE_API", "likewise_refused_calls_total{reason=\"expired\"}")
            .await
            >= 1.0
    );
}

/// Serves what it holds to everybody who asks, once that may be read, and counts them.
async fn keys_at(text: Arc<Mutex<String>>, may_read: Arc<Semaphore>) -> (String, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            count.fetch_add(1, Relaxed);
            drop(may_read.acquire().await);
            let text = text.lock().expect("no panic").clone();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
                text.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (format!("http://{address}/keys"), asked)
}

fn signed(id: &str, user: &str) -> String {
    let claims = json!({
        "sub": user, "iss": "likewise", "aud": "likewise", "exp": get_current_timestamp() + 600,
    });
    let key = EncodingKey::from_rsa_pem(KEY.as_bytes()).expect("a key");
    let header = Header { kid: Some(id.to_owned()), ..Header::new(Algorithm::RS256) };
    encode(&header, &claims, &key).expect("it is signed")
}

#[tokio::test]
async fn whoever_hangs_up_does_not_make_keys_be_read_again() {
    let text = Arc::new(Mutex::new(KEYS.to_owned()));
    let may_read = Arc::new(Semaphore::new(1));
    let (url, asked) = keys_at(text.clone(), may_read.clone()).await;
    let role = Role::write_api(&[("LIKEWISE_JWKS", &url)]).await;
    let user = fresh("user");
    let read = |id: &str| {
        let read = reqwest::Client::new().get(role.url("/v1/posts/p/like"));
        read.bearer_auth(signed(id, &user)).send()
    };
    assert_eq!(read("rsa-1").await.expect("it answers").status(), 200);
    let before = asked.load(Relaxed);
    *text.lock().expect("no panic") = KEYS.replace("rsa-1", "rsa-2");
    let hold = may_read.acquire().await.expect("it is not closed");
    // The first one that is let through makes the role ask; each hangs up while that is not answered.
    eventually("the role asks for keys", ROTATION, async || {
        let _ = tokio::time::timeout(Duration::from_millis(50), read("rsa-2")).await;
        (asked.load(Relaxed) > before).then_some(())
    })
    .await;
    for _ in 0..3 {
        let _ = tokio::time::timeout(Duration::from_millis(50), read("rsa-2")).await;
    }
    drop(hold);
    eventually("the new key is known", ROTATION, async || {
        (read("rsa-2").await.expect("it answers").status() == 200).then_some(())
    })
    .await;
    // On a slow machine the role may have given the held one up, and asks again for that.
    let given_up = role.metric("likewise_jwks_failures_total").await;
    assert_eq!(asked.load(Relaxed) as f64, before as f64 + 1.0 + given_up);
}

#[tokio::test]
async fn public_keys_come_from_an_address_and_are_rotated_there() {
    let text = Arc::new(Mutex::new(KEYS.to_owned()));
    let (url, _) = keys_at(text.clone(), Arc::new(Semaphore::new(1))).await;
    let role = Role::write_api(&[("LIKEWISE_JWKS", &url)]).await;
    let user = fresh("user");
    let signed = |id: &str| signed(id, &user);
    let status = async |token: &str| {
        let call = reqwest::Client::new().get(role.url("/v1/posts/p/like")).bearer_auth(token);
        call.send().await.expect("it answers").status().as_u16()
    };
    assert_eq!(status(&signed("rsa-1")).await, 200);
    assert_eq!(status(&signed("rsa-2")).await, 401);
    *text.lock().expect("no panic") = KEYS.replace("rsa-1", "rsa-2");
    eventually("the new key is known", ROTATION, async || {
        (status(&signed("rsa-2")).await == 200).then_some(())
    })
    .await;
    assert_eq!(status(&signed("rsa-1")).await, 401);
    *text.lock().expect("no panic") = "gone".to_owned();
    eventually("it was read that they are gone", ROTATION, async || {
        assert_eq!(status(&signed("rsa-3")).await, 401);
        (role.metric("likewise_jwks_failures_total").await >= 1.0).then_some(())
    })
    .await;
    assert_eq!(status(&signed("rsa-2")).await, 200, "the last keys stand");
}
