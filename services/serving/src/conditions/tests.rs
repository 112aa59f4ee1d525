use likewise_core::Severity;

use super::*;

/// A server whose answers a test chooses: which one it is, and what is wrong with it.
#[derive(Clone)]
struct Fake(Arc<Mutex<Answers>>);

struct Answers {
    which: Result<String, String>,
    findings: Vec<Finding>,
    checks: u32,
}

impl Fake {
    fn new() -> Self {
        let answers = Answers { which: Ok("first".to_owned()), findings: Vec::new(), checks: 0 };
        Self(Arc::new(Mutex::new(answers)))
    }

    fn is(&self, which: Result<&str, &str>, findings: Vec<Finding>) {
        let mut inner = self.0.lock().expect("no test panics here");
        inner.which = which.map(str::to_owned).map_err(str::to_owned);
        inner.findings = findings;
    }

    fn checks(&self) -> u32 {
        self.0.lock().expect("no test panics here").checks
    }

    fn condition(&self) -> Condition {
        let which = |fake: Self| async move { fake.0.lock().expect("no panic").which.clone() };
        let check = |fake: Self| async move {
            let mut inner = fake.0.lock().expect("no panic");
            inner.checks += 1;
            inner.which.clone().map(|_| inner.findings.clone())
        };
        Condition::new("MySQL", self.clone(), which, check)
    }

    async fn look(&self) -> anyhow::Result<Conditions> {
        Conditions::look([self.condition()]).await
    }
}

fn finding(severity: Severity, setting: &str) -> Finding {
    Finding {
        severity,
        thing: "MySQL".to_owned(),
        setting: setting.to_owned(),
        found: "OFF".to_owned(),
        needed: "ON".to_owned(),
        why: "likes are lost".to_owned(),
        fix: format!("SET PERSIST {setting} = ON;"),
    }
}

fn refused() -> Vec<Finding> {
    vec![finding(Severity::Refused, "gtid_mode"), finding(Severity::Refused, "log_bin")]
}

#[tokio::test]
async fn what_is_refused_at_the_start_is_told_in_one_go() {
    let server = Fake::new();
    server.is(Ok("first"), refused());
    let error = server.look().await.err().expect("it is refused").to_string();
    for expected in ["gtid_mode is OFF, ON is needed", "fix: SET PERSIST log_bin = ON;"] {
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_warning_stops_nothing() {
    let server = Fake::new();
    server.is(Ok("first"), vec![finding(Severity::Warning, "net_write_timeout")]);
    let conditions = server.look().await.expect("it starts");
    assert_eq!(conditions.met().ready(), Ok(()));
}

#[tokio::test]
async fn a_server_that_is_away_makes_a_role_not_ready_and_is_checked_when_it_is_back() {
    let server = Fake::new();
    server.is(Err("connection refused"), Vec::new());
    let mut conditions = server.look().await.expect("it starts");
    let met = conditions.met();
    let reason = met.ready().expect_err("it is away");
    assert_eq!(reason, "the settings of MySQL could not be checked: connection refused");

    server.is(Ok("first"), Vec::new());
    conditions.look_again().await.expect("nothing is wrong");
    assert_eq!(met.ready(), Ok(()));

    server.is(Err("connection refused"), Vec::new());
    conditions.look_again().await.expect("it is away");
    assert!(met.ready().is_err());
    server.is(Ok("first"), refused());
    conditions.look_again().await.expect_err("it is refused");
}

#[tokio::test]
async fn a_server_that_stays_is_checked_once_and_another_one_anew() {
    let server = Fake::new();
    let mut conditions = server.look().await.expect("it starts");
    for _ in 0..3 {
        conditions.look_again().await.expect("nothing is wrong");
    }
    assert_eq!(server.checks(), 1);
    server.is(Ok("second"), refused());
    conditions.look_again().await.expect_err("the second is refused");
    assert_eq!(server.checks(), 2);
}

/// A mongod without a replica set has no primary, and says so itself.
#[tokio::test]
async fn what_was_seen_counts_also_where_the_server_is_of_no_use() {
    let check = |()| async { Ok::<_, String>(refused()) };
    let which = |()| async { Err::<String, _>("no primary was found in time") };
    let conditions = Conditions::look([Condition::new("MongoDB", (), which, check)]).await;
    assert!(conditions.is_err());
}

#[tokio::test]
async fn a_server_that_never_answers_holds_no_other_up() {
    let server = Fake::new();
    let frozen = Fake::new();
    let which = |fake: Fake| async move {
        if fake.checks() > 0 {
            std::future::pending::<()>().await;
        }
        Ok::<_, String>(String::new())
    };
    let check = |fake: Fake| async move {
        fake.0.lock().expect("no panic").checks += 1;
        Ok::<_, String>(Vec::new())
    };
    let frozen = Condition::new("Kafka", frozen, which, check);
    let conditions = Conditions::look([frozen, server.condition()]).await.expect("it starts");
    server.is(Ok("second"), refused());
    conditions.keep(CancellationToken::new()).await.expect_err("the second is refused");
}
