use super::*;
use crate::config::Secret;

fn secret(text: &str) -> Option<Secret> {
    serde_json::from_value(serde_json::json!(text)).ok()
}

/// The setting that is refused, if one is.
#[track_caller]
fn refused(config: &Config) -> Option<&'static str> {
    let problems = problems(config);
    assert!(problems.len() < 2, "{problems:?}");
    let problem = problems.first()?;
    ["MYSQL_URL", "MYSQL_ADMIN_URL", "MONGODB_URI", "KAFKA_BROKERS", "JWKS"]
        .into_iter()
        .find(|name| problem.starts_with(&format!("{PREFIX}{name} ")))
}

#[test]
fn mysql_on_another_machine_needs_tls() {
    let refused = |url: &str| refused(&Config { mysql_url: secret(url), ..Config::default() });
    for here in ["127.0.0.1:3306", "localhost", "[::1]:3306", "127.8.8.8"] {
        assert_eq!(refused(&format!("mysql://u:p@{here}/likewise")), None, "{here}");
    }
    let there = "mysql://u:127.0.0.1@db.example:3306/likewise";
    assert_eq!(refused(there), Some("MYSQL_URL"));
    assert_eq!(refused("mysql://u:p@10.0.0.1/likewise?require_ssl=false"), Some("MYSQL_URL"));
    assert_eq!(refused("mysql://u:p@127.0.0.1.example/likewise"), Some("MYSQL_URL"));
    assert_eq!(refused(&format!("{there}?require_ssl=true")), None);
    let twice = format!("{there}?require_ssl=true&require_ssl=false");
    assert_eq!(refused(&twice), Some("MYSQL_URL"));
    let admin = Config { mysql_admin_url: secret(there), ..Config::default() };
    assert_eq!(self::refused(&admin), Some("MYSQL_ADMIN_URL"));
}

#[test]
fn mongodb_on_another_machine_needs_tls() {
    let refused = |uri: &str| refused(&Config { mongodb_uri: secret(uri), ..Config::default() });
    assert_eq!(refused("mongodb://127.0.0.1:27017/?replicaSet=rs0"), None);
    assert_eq!(refused("mongodb://127.0.0.1:27017,db:27017/"), Some("MONGODB_URI"));
    assert_eq!(refused("mongodb://u:p@a,b/?replicaSet=rs0&tls=true"), None);
    assert_eq!(refused("mongodb+srv://cluster.example/"), None);
    assert_eq!(refused("mongodb+srv://localhost/?tls=false"), Some("MONGODB_URI"));
}

#[test]
fn brokers_on_another_machine_need_tls() {
    let config = |brokers: &str, kafka_security| Config {
        kafka_brokers: Some(brokers.to_owned()),
        kafka_security,
        ..Config::default()
    };
    let plain = |brokers| config(brokers, KafkaSecurity::Plaintext);
    assert_eq!(refused(&plain("127.0.0.1:9092, localhost:9093")), None);
    assert_eq!(refused(&plain("127.0.0.1:9092,kafka:9092")), Some("KAFKA_BROKERS"));
    assert_eq!(refused(&config("kafka:9092", KafkaSecurity::Ssl)), None);
    assert!(config("kafka:9092", KafkaSecurity::SaslSsl).brokers().is_err(), "without a user");
}

#[test]
fn keys_of_another_machine_come_by_tls() {
    let refused =
        |jwks: &str| refused(&Config { jwks: Some(jwks.to_owned()), ..Config::default() });
    assert_eq!(refused("http://127.0.0.1:8000/keys"), None);
    assert_eq!(refused("http://id.example/keys"), Some("JWKS"));
    assert_eq!(refused("https://id.example/keys"), None);
    assert_eq!(refused("/etc/likewise/keys.json"), None);
}

#[test]
fn a_safe_network_is_somebodys_word() {
    let config = Config {
        mysql_url: secret("mysql://u:p@mysql/likewise"),
        kafka_brokers: Some("kafka:9092".to_owned()),
        allow_cleartext: true,
        ..Config::default()
    };
    assert_eq!(refused(&config), None);
}
