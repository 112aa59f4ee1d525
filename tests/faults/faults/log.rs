//! The log itself, copied with what may stand in it.

use std::sync::LazyLock;
use std::time::Duration;

use likewise_aggregator::{BatchLimits, Settings};
use likewise_core::{Offset, PostId};
use likewise_kafka::{Bounds, CHANGES, ChangeLogSettings};
use likewise_mongodb::{Store, StoreSettings};
use likewise_serving::{LogFormat, Telemetry};
use likewise_tests::{eventually, fresh, setting};
use mongodb::bson::{Document, doc};
use rand::RngExt as _;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{Consumer as _, StreamConsumer};
use rdkafka::message::OwnedMessage;
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::topic_partition_list::{Offset as Start, TopicPartitionList};
use rdkafka::{ClientConfig, Message as _};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::big::Rows;
use crate::load::Running;
use crate::metrics::Counters;
use crate::oracle;
use crate::scene::Scene;

/// How many records are written a second time at once.
const REPEATED: f64 = 0.2;
/// How often everything from somewhere before is written again.
const REPLAYED: f64 = 0.005;
/// How far back that goes at most.
const REPLAY_OF: usize = 300;
const POISONED: f64 = 0.01;
const POISON: [&[u8]; 4] =
    [b"not JSON", b"{}", br#"{"op":"c"}"#, br#"{"op":"?","source":{"table":"post_likes"}}"#];
/// The key of all poison, and so the one post that it puts in doubt.
const POISONED_POST: &str = "poison";
/// Far smaller than a replay, so that repeats and their originals stand in different batches.
const BATCH_RECORDS: u64 = 100;

/// It starts once in a process.
static TELEMETRY: LazyLock<Telemetry> = LazyLock::new(|| {
    Telemetry::start("off", LogFormat::Text).expect("nothing else logs in this process")
});

/// L2, L3, L5: a second topic, copied from the log with a fifth of its records repeated, old prefixes
/// replayed and poison mixed in, is counted to the same numbers, through a restart in the middle.
pub(super) async fn copied(scene: &mut Scene) {
    let from = scene.progress.ends().await.expect("Kafka answers");
    let running = Running::start(scene.rng.random()).await;
    scene.any_moment(4_000..8_000).await;
    let load = running.stop().await;
    let rows = Rows::new(scene, 2_000);
    rows.insert().await.expect("it does not panic").expect("MySQL takes the rows");
    oracle::drained().await.expect("it is drained");
    let to = scene.progress.ends().await.expect("Kafka answers");

    let topic = fresh("likewise.copy");
    make_topic(&topic, to.len()).await;
    let mut written = Written::default();
    for (partition, (from, to)) in (0..).zip(from.into_iter().zip(to)) {
        let records = records(partition, from, to).await;
        write(scene, &topic, partition, &records, &mut written).await;
    }
    scene.provoked += written.repeats;
    let counted = Counted::of(&topic).await;
    let letters = counted.documents("dead_letters", doc! {}).await;
    assert_eq!(letters, written.poison, "dead letters");
    let others = counted.documents("repairs", doc! { "post_id": { "$ne": POISONED_POST } }).await;
    assert_eq!(others, 0, "positions that could not be compared");
    let truth = oracle::truth(&load).await;
    assert!(!truth.is_empty(), "nothing was written");
    for post in load.posts() {
        let likes = truth.get(&post).map_or(0, std::collections::HashSet::len);
        let sum = counted.sum(&post).await;
        assert_eq!(sum, i64::try_from(likes).expect("a count"), "the copy's count of {post}");
    }
    scene.reach("repeats dropped", counted.repeats);
    scene.reach("dead letters", letters);
    counted.drop().await;
    admin().delete_topics(&[&topic], &AdminOptions::new()).await.expect("Kafka answers");
}

/// What was added to the copy.
#[derive(Default)]
struct Written {
    repeats: u64,
    poison: u64,
}

/// Every committed record of a partition between two offsets.
async fn records(partition: i32, from: Offset, to: Offset) -> Vec<OwnedMessage> {
    let consumer: StreamConsumer = ClientConfig::new()
        .set("bootstrap.servers", setting("KAFKA_BROKERS"))
        .set("group.id", "likewise-tests")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("isolation.level", "read_committed")
        .create()
        .expect("a consumer");
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(CHANGES, partition, Start::Offset(from)).expect("an offset");
    consumer.assign(&list).expect("an assignment");
    let mut records = Vec::new();
    loop {
        match consumer.recv().await {
            Ok(message) if message.offset() < to => records.push(message.detach()),
            Ok(_) | Err(rdkafka::error::KafkaError::PartitionEOF(_)) => return records,
            Err(error) => panic!("the log cannot be read: {error}"),
        }
    }
}

/// Writes the copy of one partition, in order.
async fn write(
    scene: &mut Scene,
    topic: &str,
    partition: i32,
    records: &[OwnedMessage],
    written: &mut Written,
) {
    let producer: FutureProducer = ClientConfig::new()
        .set("bootstrap.servers", setting("KAFKA_BROKERS"))
        // Without it, a batch that is sent again may overtake the one before.
        .set("enable.idempotence", "true")
        .create()
        .expect("a producer");
    let mut sent = Vec::new();
    let mut send = |key: &[u8], value: Option<&[u8]>| {
        let mut record = FutureRecord::to(topic).partition(partition).key(key);
        record.payload = value;
        sent.push(producer.send_result(record).map_err(|(error, _)| error).expect("there is room"));
    };
    for (at, record) in records.iter().enumerate() {
        let mut again = vec![record];
        if scene.rng.random_bool(REPEATED) {
            again.push(record);
        }
        if scene.rng.random_bool(REPLAYED) {
            let back = scene.rng.random_range(1..=REPLAY_OF).min(at);
            again.extend(&records[at - back..=at]);
        }
        written.repeats += again.len() as u64 - 1;
        for record in again {
            send(record.key().unwrap_or_default(), record.payload());
        }
        if scene.rng.random_bool(POISONED) {
            let poison = POISON[scene.rng.random_range(0..POISON.len())];
            send(POISONED_POST.as_bytes(), Some(poison));
            written.poison += 1;
        }
    }
    for delivery in sent {
        delivery.await.expect("the producer lives").expect("Kafka takes it");
    }
}

/// What an aggregator made of a copy, in a database of its own.
struct Counted {
    store: Store,
    database: mongodb::Database,
    /// How many changes were dropped, at least.
    repeats: u64,
}

impl Counted {
    /// Counts it to its end, with an aggregator that is started again on the way.
    async fn of(topic: &str) -> Self {
        let name = fresh("likewise_test");
        let uri = setting("MONGODB_URI");
        let client = mongodb::Client::with_uri_str(&uri).await.expect("a client");
        let settings = StoreSettings {
            uri,
            database: name.clone(),
            max_connections: 16,
            deadline: Duration::from_secs(5),
        };
        let store = Store::new(&settings).await.expect("a client");
        let log = Bounds::new(setting("KAFKA_BROKERS"), topic).expect("a client");
        let ends = log.ends().await.expect("Kafka answers");
        let starts = vec![0; ends.len()];
        store.create_first_generation(topic, &starts).await.expect("it is made");
        let total: Offset = ends.iter().sum();

        let mut repeats = 0;
        for until in [total / 2, total] {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let url = format!("http://{}", listener.local_addr().expect("a port"));
            let stop = CancellationToken::new();
            let aggregator = tokio::spawn(likewise_aggregator_until(
                topic.to_owned(),
                store.clone(),
                listener,
                stop.clone(),
            ));
            let counters = Counters::follow(&url).await;
            eventually("the copy is counted", Duration::from_secs(120), async || {
                let partitions = store.partitions(1).await.ok()?;
                let sum: Offset = partitions.iter().map(|known| known.next_offset).sum();
                (sum >= until).then_some(())
            })
            .await;
            repeats += counters.added("likewise_repeats_total").await;
            stop.cancel();
            aggregator.await.expect("it does not panic").expect("it ends well");
        }
        Self { store, database: client.database(&name), repeats }
    }

    async fn sum(&self, post: &str) -> i64 {
        self.store.count(1, &PostId::from_log(post)).await.expect("MongoDB answers").sum
    }

    async fn documents(&self, collection: &str, filter: Document) -> u64 {
        let collection = self.database.collection::<Document>(collection);
        collection.count_documents(filter).await.expect("MongoDB answers")
    }

    async fn drop(self) {
        self.database.drop().await.expect("it is dropped");
    }
}

async fn likewise_aggregator_until(
    topic: String,
    store: Store,
    listener: TcpListener,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let settings = Settings {
        log: ChangeLogSettings {
            brokers: setting("KAFKA_BROKERS").into(),
            group: topic.clone(),
            topic,
            prefetch_kib: 1024,
        },
        generation: 1,
        limits: BatchLimits {
            records: BATCH_RECORDS,
            bytes: 8 << 20,
            age: Duration::from_millis(200),
            linger: Duration::ZERO,
        },
        owner: "likewise-tests".to_owned(),
        http: likewise_serving::HttpSettings::default(),
    };
    likewise_aggregator::run(settings, store, listener, &TELEMETRY, stop).await
}

async fn make_topic(topic: &str, partitions: usize) {
    let partitions = i32::try_from(partitions).expect("a few");
    let new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
    let made = admin().create_topics(&[new], &AdminOptions::new()).await.expect("Kafka answers");
    assert!(made.iter().all(Result::is_ok), "{made:?}");
}

fn admin() -> AdminClient<DefaultClientContext> {
    ClientConfig::new()
        .set("bootstrap.servers", setting("KAFKA_BROKERS"))
        .create()
        .expect("a client")
}
