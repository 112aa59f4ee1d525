//! L7: a topic that was deleted and made again under its name is another log, also when it has grown past
//! what was counted of the first one.

use std::time::Duration;

use likewise_aggregator::{BatchLimits, Settings};
use likewise_kafka::ChangeLogSettings;
use likewise_mongodb::{Store, StoreSettings};
use likewise_serving::{LogFormat, Telemetry};
use likewise_tests::{eventually, fresh, metric_at, setting};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{FutureProducer, FutureRecord};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::STACK;

const LIMIT: Duration = Duration::from_secs(60);

struct Topic {
    name: String,
    admin: AdminClient<DefaultClientContext>,
    producer: FutureProducer,
}

impl Topic {
    fn new() -> Self {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", setting("KAFKA_BROKERS"));
        let admin = config.create().expect("an admin client");
        Self { name: fresh("likewise-test"), admin, producer: config.create().expect("a producer") }
    }

    async fn make(&self) {
        let topic = NewTopic::new(&self.name, 1, TopicReplication::Fixed(1));
        eventually("the topic is made", LIMIT, async || {
            let made = self.admin.create_topics([&topic], &AdminOptions::new()).await;
            made.expect("Kafka answers")[0].is_ok().then_some(())
        })
        .await;
    }

    async fn delete(&self) {
        let deleted = self.admin.delete_topics(&[&self.name], &AdminOptions::new()).await;
        assert!(deleted.expect("Kafka answers")[0].is_ok());
    }

    async fn make_anew(&self) {
        self.delete().await;
        self.make().await;
    }

    async fn append(&self, records: usize, value: &str) {
        for _ in 0..records {
            let record = FutureRecord::to(&self.name).key("k").payload(value);
            self.producer.send(record, LIMIT).await.expect("Kafka takes it");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_made_anew_is_not_counted_on() {
    let _stack = STACK.lock().await;
    let telemetry = Telemetry::start("warn", LogFormat::Text).expect("once a process");
    let topic = Topic::new();
    topic.make().await;
    topic.append(10, "the first log").await;

    let database = fresh("likewise_test");
    let settings = StoreSettings {
        uri: setting("MONGODB_URI"),
        database: database.clone(),
        max_connections: 8,
        deadline: Duration::from_secs(10),
    };
    let store = Store::new(&settings).await.expect("settings");
    store.create_first_generation(&topic.name, &[0]).await.expect("it is made");
    let counted = async || store.next_offset(1, &topic.name, 0).await.expect("MongoDB answers");

    let run = async |shutdown: &CancellationToken| {
        let settings = Settings {
            log: ChangeLogSettings {
                brokers: setting("KAFKA_BROKERS"),
                topic: topic.name.clone(),
                group: topic.name.clone(),
                prefetch_kib: 1024,
            },
            generation: 1,
            limits: BatchLimits {
                records: 1000,
                bytes: 1 << 20,
                age: Duration::from_millis(200),
                linger: Duration::ZERO,
            },
            owner: "test".to_owned(),
            request_deadline: Duration::from_secs(5),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/readyz", listener.local_addr().expect("an address"));
        let (store, telemetry, shutdown) = (store.clone(), telemetry.clone(), shutdown.clone());
        let role = tokio::spawn(async move {
            likewise_aggregator::run(settings, store, listener, &telemetry, shutdown).await
        });
        (url, role)
    };
    let ready = async |url: &str, what: &str| {
        eventually(what, LIMIT, async || {
            let answer = reqwest::get(url).await.ok()?.text().await.ok()?;
            answer.contains(what).then_some(())
        })
        .await;
    };

    let shutdown = CancellationToken::new();
    let (_, role) = run(&shutdown).await;
    eventually("the first log is counted", LIMIT, async || {
        (counted().await == Some(10)).then_some(())
    })
    .await;
    shutdown.cancel();
    role.await.expect("no panic").expect("it ends well");

    // Made anew while nobody looks.
    topic.make_anew().await;
    topic.append(50, "another log").await;
    let shutdown = CancellationToken::new();
    let (url, role) = run(&shutdown).await;
    ready(&url, "another log, made anew").await;
    assert_eq!(counted().await, Some(10));

    // It goes on by itself once the first log is back.
    topic.make_anew().await;
    topic.append(12, "the first log").await;
    eventually("counting goes on", LIMIT, async || (counted().await == Some(12)).then_some(()))
        .await;
    let looked = async || metric_at(&url.replace("/readyz", ""), "likewise_log_looks_total").await;
    let before = looked().await;
    eventually("the log was looked at", LIMIT, async || {
        (looked().await >= before + 2.0).then_some(())
    })
    .await;

    // Made anew while it is read: the reader does not see it.
    topic.make_anew().await;
    topic.append(50, "another log").await;
    ready(&url, "another log, made anew").await;
    let generation = store.generation(1).await.expect("MongoDB answers").expect("a generation");
    assert!(generation.halted.is_some_and(|reason| reason.contains("likewise rebuild")));
    shutdown.cancel();
    role.await.expect("no panic").expect("it ends well");

    topic.delete().await;
    let client = mongodb::Client::with_uri_str(setting("MONGODB_URI")).await.expect("a client");
    client.database(&database).drop().await.expect("it is dropped");
}
