//! L7: a topic that was deleted and made again under its name is another log, also when it has grown past
//! what was counted of the first one.

use std::sync::LazyLock;
use std::time::Duration;

use likewise_aggregator::{BatchLimits, Settings};
use likewise_kafka::ChangeLogSettings;
use likewise_mongodb::{Store, StoreSettings};
use likewise_serving::{LogFormat, Telemetry};
use likewise_tests::{eventually, fresh, metric_at, setting};
use mongodb::bson::{Document, doc};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{FutureProducer, FutureRecord};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::STACK;

const LIMIT: Duration = Duration::from_secs(60);

static TELEMETRY: LazyLock<Telemetry> = LazyLock::new(|| {
    Telemetry::start("warn", LogFormat::Text).expect("nothing else logs in this process")
});

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

/// A topic of its own, counted into a database of its own.
struct Scene {
    topic: Topic,
    database: String,
    store: Store,
}

/// An aggregator that counts the topic of a scene.
struct Role {
    url: String,
    shutdown: CancellationToken,
    running: JoinHandle<anyhow::Result<()>>,
}

impl Scene {
    /// A log of ten records, all of them counted.
    async fn counted() -> Self {
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
        let scene = Self { topic, database, store };
        let role = scene.start().await;
        scene.is_counted(10).await;
        role.stop().await;
        scene
    }

    async fn start(&self) -> Role {
        let settings = Settings {
            log: ChangeLogSettings {
                brokers: setting("KAFKA_BROKERS").into(),
                topic: self.topic.name.clone(),
                group: self.topic.name.clone(),
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
            http: likewise_serving::HttpSettings::default(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let shutdown = CancellationToken::new();
        let (store, asked) = (self.store.clone(), shutdown.clone());
        let running = tokio::spawn(async move {
            likewise_aggregator::run(settings, store, listener, &TELEMETRY, asked).await
        });
        Role { url, shutdown, running }
    }

    async fn next_offset(&self) -> Option<i64> {
        self.store.next_offset(1, &self.topic.name, 0).await.expect("MongoDB answers")
    }

    async fn is_counted(&self, records: i64) {
        let what = format!("{records} records are counted");
        eventually(&what, LIMIT, async || {
            (self.next_offset().await == Some(records)).then_some(())
        })
        .await;
    }

    async fn halted(&self) -> Option<String> {
        let generation = self.store.generation(1).await.expect("MongoDB answers");
        generation.expect("a generation").halted
    }

    async fn end(self) {
        self.topic.delete().await;
        self.mongodb().await.drop().await.expect("it is dropped");
    }

    async fn mongodb(&self) -> mongodb::Database {
        let client = mongodb::Client::with_uri_str(setting("MONGODB_URI")).await;
        client.expect("a client").database(&self.database)
    }
}

impl Role {
    /// Waits until `/readyz` says so.
    async fn says(&self, what: &str) {
        eventually(what, LIMIT, async || {
            let answer = reqwest::get(format!("{}/readyz", self.url)).await.ok()?;
            answer.text().await.ok()?.contains(what).then_some(())
        })
        .await;
    }

    /// Waits until the log was compared with what was counted, twice: then there is an anchor.
    async fn has_looked(&self) {
        let looked = async || metric_at(&self.url, "likewise_log_looks_total").await;
        let before = looked().await;
        eventually("the log was looked at", LIMIT, async || {
            (looked().await >= before + 2.0).then_some(())
        })
        .await;
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.running.await.expect("no panic").expect("it ends well");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_made_anew_is_not_counted_on() {
    let _stack = STACK.lock().await;
    let scene = Scene::counted().await;

    // Made anew while nobody looks.
    scene.topic.make_anew().await;
    scene.topic.append(50, "another log").await;
    let role = scene.start().await;
    role.says("another log, made anew").await;
    assert_eq!(scene.next_offset().await, Some(10));

    // It goes on by itself once the first log is back.
    scene.topic.make_anew().await;
    scene.topic.append(12, "the first log").await;
    scene.is_counted(12).await;
    role.has_looked().await;

    // Made anew while it is read. Either the reader asks while the new log is still too short, and its
    // next claim is refused before anything is counted; or the reader sees nothing, and the watch halts.
    scene.topic.make_anew().await;
    scene.topic.append(50, "another log").await;
    role.says("another log, made anew").await;
    match scene.halted().await {
        Some(reason) => assert!(reason.contains("likewise rebuild"), "{reason}"),
        None => assert_eq!(scene.next_offset().await, Some(12)),
    }
    role.stop().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_changed_under_its_reader_halts_the_generation() {
    let _stack = STACK.lock().await;
    let scene = Scene::counted().await;
    let role = scene.start().await;
    role.has_looked().await;
    assert_eq!(scene.halted().await, None);

    // Whether a reader sees that a topic was made anew is a matter of moments; it never sees this: the
    // log is the same, and what was counted is said to be another one.
    let checkpoints = scene.mongodb().await.collection::<Document>("checkpoints");
    let another = doc! { "$set": { "last_record": 1_i64 } };
    let changed = checkpoints.update_one(doc! {}, another).await.expect("MongoDB answers");
    assert_eq!(changed.modified_count, 1);
    role.says("another log, made anew").await;
    let reason = scene.halted().await.expect("the generation is halted");
    assert!(reason.contains("likewise rebuild"), "{reason}");
    role.stop().await;
    scene.end().await;
}
