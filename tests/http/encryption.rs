//! Servers that are talked to by TLS, and those that must be.

use std::path::PathBuf;
use std::time::Duration;

use likewise_mysql::{Mysql, PoolSettings};
use likewise_tests::{likewise_told, setting};

/// MySQL makes its certificates itself, in its data folder, for no host.
#[tokio::test]
async fn mysql_is_talked_to_by_tls_where_its_address_says_so() {
    let ca = likewise_tests::home().join("mysql/data/ca.pem");
    let told = |parameters: &str, tls_ca: Option<PathBuf>| {
        let url = setting("MYSQL_URL") + parameters;
        let deadline = Duration::from_secs(5);
        let settings = PoolSettings { url, max_connections: 1, tls_ca, deadline };
        Mysql::new(&settings).expect("settings")
    };
    let clear = told("", None);
    assert_eq!(clear.cipher().await.expect("it answers"), None);
    let by_tls = told("?require_ssl=true&verify_ca=false", None);
    assert!(by_tls.cipher().await.expect("it answers").is_some());

    let why = |error: likewise_mysql::Error| format!("{error:?}");
    let unknown = told("?require_ssl=true", None).cipher().await;
    let unknown = why(unknown.expect_err("nobody vouches for it"));
    assert!(unknown.contains("UnknownIssuer"), "{unknown}");
    let another = told("?require_ssl=true", Some(ca)).cipher().await;
    let another = why(another.expect_err("it is another one's"));
    assert!(another.contains("NotValidForName"), "{another}");
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
