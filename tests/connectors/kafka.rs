//! Topics, and a member of the group that reads from where it is told.

use std::collections::HashMap;
use std::time::Duration;

use likewise_kafka::{
    Assignment, Bounds, ChangeLog, ChangeLogSettings, Error, Event, TopicSettings, Topics,
};
use likewise_tests::{fresh, setting};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{FutureProducer, FutureRecord};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(60);

/// A topic of its own, deleted at the end of the test.
struct Topic {
    name: String,
    admin: AdminClient<DefaultClientContext>,
    producer: FutureProducer,
}

impl Topic {
    async fn new() -> Self {
        Self::with_partitions(1).await
    }

    async fn with_partitions(partitions: i32) -> Self {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", setting("KAFKA_BROKERS"));
        let admin: AdminClient<_> = config.create().expect("an admin client");
        let name = fresh("likewise-test");
        let topic = NewTopic::new(&name, partitions, TopicReplication::Fixed(1));
        let made =
            admin.create_topics([&topic], &AdminOptions::new()).await.expect("Kafka answers");
        assert!(made[0].is_ok(), "{made:?}");
        Self { name, admin, producer: config.create().expect("a producer") }
    }

    async fn append(&self, value: &str) {
        let record = FutureRecord::to(&self.name).key("k").payload(value);
        self.producer.send(record, LIMIT).await.expect("Kafka takes it");
    }

    fn join(&self, group: &str) -> (ChangeLog, UnboundedReceiver<Event>) {
        let settings = ChangeLogSettings {
            brokers: setting("KAFKA_BROKERS").into(),
            topic: self.name.clone(),
            group: group.to_owned(),
            prefetch_kib: 1024,
        };
        ChangeLog::join(&settings).expect("it joins")
    }

    async fn delete(self) {
        self.admin.delete_topics(&[&self.name], &AdminOptions::new()).await.expect("Kafka deletes");
    }
}

/// The next event, while the member serves its group.
async fn event(log: &ChangeLog, events: &mut UnboundedReceiver<Event>) -> Event {
    tokio::select! {
        event = timeout(LIMIT, events.recv()) => event.expect("an event comes").expect("events come"),
        error = log.serve() => panic!("{error}"),
    }
}

/// The next assignment of partition 0.
async fn assigned(log: &ChangeLog, events: &mut UnboundedReceiver<Event>) -> Assignment {
    loop {
        if let Event::Assigned(0, assignment) = event(log, events).await {
            return assignment;
        }
    }
}

async fn values(
    log: &ChangeLog,
    queue: &likewise_kafka::PartitionQueue,
    count: usize,
) -> Vec<(i64, String)> {
    let read = async {
        let mut values = Vec::new();
        while values.len() < count {
            let record = queue.next().await.expect("a record");
            let value = String::from_utf8_lossy(record.value().unwrap_or_default()).into_owned();
            values.push((record.offset(), value));
        }
        values
    };
    tokio::select! {
        values = timeout(LIMIT, read) => values.expect("records come"),
        error = log.serve() => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_is_read_from_the_offset_that_it_is_started_at() {
    let topic = Topic::new().await;
    for value in ["zero", "one", "two", "three"] {
        topic.append(value).await;
    }
    let (log, mut events) = topic.join(&topic.name);
    let assignment = assigned(&log, &mut events).await;
    let bounds = log.bounds(0).await.expect("Kafka answers");
    assert_eq!((bounds.partitions, bounds.low, bounds.high), (1, 0, 4));

    let queue = log.start(0, assignment, 2).expect("it starts").expect("it is ours");
    assert_eq!(values(&log, &queue, 2).await, [(2, "two".to_owned()), (3, "three".to_owned())]);
    // Claimed anew, a partition is read again from where the checkpoint says.
    log.pause(0, assignment);
    drop(queue);
    let queue = log.start(0, assignment, 1).expect("it starts").expect("it is ours");
    topic.append("four").await;
    let again = values(&log, &queue, 4).await;
    assert_eq!(again.iter().map(|(offset, _)| *offset).collect::<Vec<_>>(), [1, 2, 3, 4]);
    drop(queue);
    log.leave().await;
    topic.delete().await;
}

/// L7: it never jumps.
#[tokio::test(flavor = "multi_thread")]
async fn an_offset_outside_the_log_is_an_error() {
    let topic = Topic::new().await;
    topic.append("zero").await;
    let (log, mut events) = topic.join(&topic.name);
    let assignment = assigned(&log, &mut events).await;
    let queue = log.start(0, assignment, 700).expect("it starts").expect("it is ours");
    let error = tokio::select! {
        record = timeout(LIMIT, queue.next()) => record.expect("an answer comes").map(|r| r.offset()).expect_err("outside"),
        error = log.serve() => panic!("{error}"),
    };
    assert!(matches!(error, Error::OutsideLog(_)), "{error:?}");
    drop(queue);
    log.leave().await;
    topic.delete().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_went_to_another_member_is_not_started_again() {
    let topic = Topic::with_partitions(2).await;
    let (first, mut first_events) = topic.join(&topic.name);
    let mut assignments = HashMap::new();
    while assignments.len() < 2 {
        if let Event::Assigned(partition, assignment) = event(&first, &mut first_events).await {
            assignments.insert(partition, assignment);
        }
    }
    // The newcomer takes one of the two over.
    let (second, mut second_events) = topic.join(&topic.name);
    let moved = async {
        loop {
            if let Event::Revoked(partition) = first_events.recv().await.expect("events come") {
                return partition;
            }
        }
    };
    let taken = async {
        loop {
            let event = second_events.recv().await.expect("events come");
            if let Event::Assigned(partition, assignment) = event {
                return (partition, assignment);
            }
        }
    };
    let (moved, (taken, assignment)) = tokio::select! {
        both = timeout(LIMIT, async { tokio::join!(moved, taken) }) => both.expect("it moves"),
        error = first.serve() => panic!("{error}"),
        error = second.serve() => panic!("{error}"),
    };
    assert_eq!(moved, taken);
    assert!(!first.holds(moved, assignments[&moved]));
    assert!(first.start(moved, assignments[&moved], 0).expect("Kafka answers").is_none());
    let stays = 1 - moved;
    assert!(first.start(stays, assignments[&stays], 0).expect("Kafka answers").is_some());
    assert!(second.start(taken, assignment, 0).expect("Kafka answers").is_some());
    first.leave().await;
    second.leave().await;
    topic.delete().await;
}

/// The stack's own topics are there as defined; other numbers are refused, never changed.
#[tokio::test]
async fn topics_that_are_there_are_compared() {
    let topics = Topics::new(setting("KAFKA_BROKERS")).expect("settings");
    let partitions: u32 = setting("PARTITIONS").parse().expect("a number");
    let settings = TopicSettings { partitions, replication_factor: 1 };
    assert_eq!(topics.create(settings).await.expect("they are there"), Vec::<&str>::new());
    let raised = TopicSettings { partitions: partitions * 2, ..settings };
    let error = topics.create(raised).await.expect_err("it must be refused");
    assert!(
        matches!(&error, Error::TopicDiffers { setting, .. } if setting == "partitions"),
        "{error}"
    );
    let bounds = Bounds::new(setting("KAFKA_BROKERS"), "likewise.no-such-topic").expect("settings");
    assert!(matches!(bounds.partitions().await, Err(Error::NoTopic(_))));
}
