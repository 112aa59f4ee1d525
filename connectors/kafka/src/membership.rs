//! Membership of the consumer group: what librdkafka's callback says, as plain events.
//!
//! The callback decides nothing that needs time. An assignment is acknowledged at once, *without*
//! its partitions; each is added when its checkpoint has been claimed ([`crate::ChangeLog::start`]),
//! which may take as long as it takes while the member stays in the group. A revocation takes effect
//! in the callback, so that a partition is never fetched after it was given away.

use std::collections::HashMap;
use std::sync::Mutex;

use rdkafka::bindings::rd_kafka_resp_err_t as ResponseCode;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::topic_partition_list::{Offset as StartOffset, TopicPartitionList};
use rdkafka::{ClientContext, types::RDKafkaRespErr};
use tokio::sync::mpsc;

/// The number of an assignment: a partition that comes back has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment(u64);

/// A change of what this member of the group owns.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// The partition is ours: claim it and start it.
    Assigned(u32, Assignment),
    /// The partition is not ours any more: let go.
    Revoked(u32),
    /// The group has given us what it has for us, which may be nothing.
    Settled,
    /// The group has dropped us, and has given away what was ours.
    Lost,
}

#[derive(Debug, Default)]
struct Owned {
    assignments: u64,
    partitions: HashMap<u32, (Assignment, Fetching)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fetching {
    Yes,
    No,
}

/// librdkafka's view of the group, turned into events.
#[derive(Debug)]
pub(crate) struct Membership {
    topic: String,
    owned: Mutex<Owned>,
    events: mpsc::UnboundedSender<Event>,
}

impl Membership {
    pub(crate) fn new(topic: String) -> (Self, mpsc::UnboundedReceiver<Event>) {
        let (events, receiver) = mpsc::unbounded_channel();
        (Self { topic, owned: Mutex::default(), events }, receiver)
    }

    /// Fetches a partition from `offset`, if the assignment still stands.
    pub(crate) fn start(
        &self,
        consumer: &impl Consumer<Self>,
        partition: u32,
        assignment: Assignment,
        offset: i64,
    ) -> Result<bool, rdkafka::error::KafkaError> {
        let mut owned = self.lock();
        match owned.partitions.get_mut(&partition) {
            Some((current, fetching)) if *current == assignment => {
                if *fetching == Fetching::Yes {
                    consumer
                        .incremental_unassign(&self.list(&[partition], StartOffset::Invalid))?;
                    *fetching = Fetching::No;
                }
                let start = self.list(&[partition], StartOffset::Offset(offset));
                consumer.incremental_assign(&start)?;
                *fetching = Fetching::Yes;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Stops fetching a partition that stays ours.
    pub(crate) fn pause(
        &self,
        consumer: &impl Consumer<Self>,
        partition: u32,
        assignment: Assignment,
    ) {
        let mut owned = self.lock();
        if let Some((current, fetching)) = owned.partitions.get_mut(&partition)
            && (*current, *fetching) == (assignment, Fetching::Yes)
        {
            *fetching = Fetching::No;
            let list = self.list(&[partition], StartOffset::Invalid);
            if let Err(error) = consumer.incremental_unassign(&list) {
                tracing::warn!(partition, %error, "a partition could not be paused");
            }
        }
    }

    /// Whether the assignment stands.
    pub(crate) fn holds(&self, partition: u32, assignment: Assignment) -> bool {
        self.lock().partitions.get(&partition).is_some_and(|(current, _)| *current == assignment)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Owned> {
        self.owned.lock().expect("no holder of the lock panics")
    }

    fn list(&self, partitions: &[u32], offset: StartOffset) -> TopicPartitionList {
        let mut list = TopicPartitionList::with_capacity(partitions.len());
        for partition in partitions {
            list.add_partition_offset(&self.topic, partition.cast_signed(), offset)
                .expect("an offset of ours is never negative");
        }
        list
    }

    fn partitions_of(&self, list: &TopicPartitionList) -> Vec<u32> {
        list.elements_for_topic(&self.topic)
            .iter()
            .map(|element| element.partition().cast_unsigned())
            .collect()
    }

    fn assigned(&self, consumer: &BaseConsumer<Self>, partitions: &[u32]) {
        // An empty list acknowledges the assignment.
        if let Err(error) = consumer.incremental_assign(&TopicPartitionList::new()) {
            tracing::error!(%error, "an assignment could not be acknowledged");
        }
        let mut owned = self.lock();
        for partition in partitions {
            owned.assignments += 1;
            let assignment = Assignment(owned.assignments);
            owned.partitions.insert(*partition, (assignment, Fetching::No));
            self.send(Event::Assigned(*partition, assignment));
        }
        self.send(Event::Settled);
    }

    fn revoked(&self, consumer: &BaseConsumer<Self>, partitions: &[u32]) {
        if consumer.assignment_lost() {
            self.send(Event::Lost);
        }
        let mut owned = self.lock();
        let mut fetched = Vec::new();
        for partition in partitions {
            if let Some((_, Fetching::Yes)) = owned.partitions.remove(partition) {
                fetched.push(*partition);
            }
            self.send(Event::Revoked(*partition));
        }
        // Called for an empty list too: it acknowledges the revocation.
        let list = self.list(&fetched, StartOffset::Invalid);
        if let Err(error) = consumer.incremental_unassign(&list) {
            tracing::error!(%error, "a revocation could not be acknowledged");
        }
    }

    fn send(&self, event: Event) {
        // Nobody listens any more once the role is on its way out.
        let _ = self.events.send(event);
    }
}

impl ClientContext for Membership {}

impl ConsumerContext for Membership {
    fn rebalance(
        &self,
        consumer: &BaseConsumer<Self>,
        code: RDKafkaRespErr,
        list: &mut TopicPartitionList,
    ) {
        let partitions = self.partitions_of(list);
        match code {
            ResponseCode::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => {
                tracing::info!(?partitions, "partitions were assigned");
                self.assigned(consumer, &partitions);
            }
            ResponseCode::RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS => {
                tracing::info!(?partitions, "partitions were revoked");
                self.revoked(consumer, &partitions);
            }
            _ => {
                tracing::error!(?code, "the group failed to rebalance: everything is let go");
                let all: Vec<u32> = self.lock().partitions.keys().copied().collect();
                self.revoked(consumer, &all);
            }
        }
    }
}
