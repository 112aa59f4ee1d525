use super::*;

#[test]
fn the_development_secrets_stay_on_loopback() {
    let config =
        Config { service_token: Some(Secret("dev-only-token".to_owned())), ..Config::default() };
    let open: SocketAddr = "0.0.0.0:8080".parse().expect("an address");
    assert!(config.check_listener(config.write_api_listen).is_ok());
    let refused = config.check_listener(open).expect_err("must be refused").to_string();
    assert!(refused.contains("LIKEWISE_SERVICE_TOKEN"), "{refused}");
    let own = Config { service_token: Some(Secret("own".to_owned())), ..config };
    assert!(own.check_listener(open).is_ok());
}

#[test]
fn secrets_are_never_printed() {
    let config =
        Config { mysql_url: Some(Secret("mysql://u:hush@h/d".to_owned())), ..Config::default() };
    assert!(!format!("{config:?}").contains("hush"));
}

#[test]
fn every_problem_is_reported() {
    let config = Config {
        partitions: 0,
        batch_bytes: 0,
        jwt_secret: Some(Secret("short".to_owned())),
        ..Config::default()
    };
    assert_eq!(config.problems().len(), 3);
}

#[test]
fn a_token_that_is_short_or_names_two_callers_is_refused() {
    let problems = |service: &str, operator: &str| {
        let token = |text: &str| Some(Secret(text.to_owned()));
        let (service_token, operator_token) = (token(service), token(operator));
        Config { service_token, operator_token, ..Config::default() }.problems().len()
    };
    let (one, other) = ("0123456789abcdef", "fedcba9876543210");
    assert_eq!((problems(one, other), problems(one, one)), (0, 1));
    assert_eq!((problems(&one[1..], other), problems("", &other[1..])), (1, 2));
}

#[test]
fn a_value_that_cannot_be_read_is_told_with_what_can() {
    let unreadable = |name: &str, value: &str| unreadable(name, value.into());
    for (name, value) in
        [("write_api_listen", "127.0.0.1:1"), ("partitions", "4"), ("service_token", "12345")]
    {
        assert_eq!(unreadable(name, value), None);
    }
    for (name, value, hint) in [
        ("write_api_listen", "localhost:8080", "127.0.0.1:8080"),
        ("partitions", "four", "u32"),
        ("kafka_security", "tls", "sasl_ssl"),
        ("log_format", "xml", "json"),
    ] {
        let error = unreadable(name, value).expect("it cannot be read");
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn every_problem_of_a_file_and_its_values_is_reported() {
    let file = std::env::temp_dir().join(format!("likewise-{}.toml", std::process::id()));
    std::fs::write(&file, "partitions = 0\nfoo = 1\nbar = 2\nlog_format = \"xml\"\n")
        .expect("it is written");
    let refused = Config::load(Some(&file)).expect_err("it is not valid").to_string();
    std::fs::remove_file(&file).expect("it is removed");
    for problem in ["foo is not", "bar is not", "LIKEWISE_PARTITIONS must", "log_format cannot"] {
        assert!(refused.contains(problem), "{refused}");
    }
}

#[test]
fn a_wait_that_outlasts_its_call_is_refused() {
    let problems = |wait: u64| {
        Config { min_as_of_wait_ms: wait, own_count_wait_ms: wait, ..Config::default() }.problems()
    };
    assert!(problems(Config::default().request_deadline_ms - 1).is_empty());
    assert_eq!(problems(Config::default().request_deadline_ms).len(), 2);
}
