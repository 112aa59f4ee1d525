//! Servers that are talked to by TLS, and those that must be.

use std::time::Duration;

use likewise_mysql::{Mysql, PoolSettings};
use likewise_tests::{likewise_told, setting};

/// MySQL makes its certificates itself, in its data folder.
fn ca() -> std::path::PathBuf {
    likewise_tests::home().join("mysql/data/ca.pem")
}

#[tokio::test]
async fn mysql_is_talked_to_by_tls_where_its_address_says_so() {
    let url = setting("MYSQL_URL") + "?require_ssl=true&verify_identity=false";
    let told = |url: &str| {
        let settings = PoolSettings {
            url: url.to_owned(),
            max_connections: 1,
            tls_ca: Some(ca()),
            deadline: Duration::from_secs(5),
        };
        Mysql::new(&settings).expect("settings")
    };
    let by_tls = told(&url);
    assert!(by_tls.cipher().await.expect("it answers").is_some_and(|cipher| !cipher.is_empty()));
    let clear = told(&setting("MYSQL_URL"));
    assert_eq!(clear.cipher().await.expect("it answers"), None);
    by_tls.close().await;
    clear.close().await;
}

#[tokio::test]
async fn a_server_elsewhere_is_not_talked_to_in_clear_text() {
    for (name, value) in [
        ("LIKEWISE_MYSQL_URL", "mysql://u:p@db.invalid/likewise"),
        ("LIKEWISE_MONGODB_URI", "mongodb://db.invalid/?replicaSet=rs0"),
        ("LIKEWISE_KAFKA_BROKERS", "kafka.invalid:9092"),
        ("LIKEWISE_JWKS", "http://id.invalid/keys"),
    ] {
        for role in ["write-api", "doctor"] {
            let refused = likewise_told(&[role], &[(name, value)]).await;
            let text = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(refused.status.code(), Some(1), "{role} {name}: {text}");
            assert!(text.contains(name) && text.contains("LIKEWISE_ALLOW_CLEARTEXT"), "{text}");
        }
    }
}
