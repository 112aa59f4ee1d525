//! The faults, by the server that they happen to.

mod aggregator;
mod connect;
mod kafka;
mod log;
mod mongodb;
mod mysql;

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;

use crate::scene::Scene;

/// One way in which something dies, stands still or lies.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    /// Whether it belongs to the short form.
    pub(crate) is_short: bool,
    /// What is left after it: everything as it was, or a stack that can only be wiped.
    pub(crate) leaves: Leaves,
    pub(crate) provoke: Provoke,
}

type Provoke = for<'a> fn(&'a mut Scene) -> LocalBoxFuture<'a, ()>;

/// What a fault leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// Everything comes back: likes, counts and freshness.
    Everything,
    /// Counting has stopped for good, so that this fault is the last of a run.
    NoCounting,
}

/// Every fault. One that leaves no counting behind stands last.
pub(crate) static ALL: [Fault; 26] = [
    short("aggregator-kill", |scene| aggregator::kill(scene).boxed_local()),
    long("aggregator-kill-after-fence", |scene| aggregator::kill_after_fence(scene).boxed_local()),
    long("aggregator-kill-before-commit", |scene| {
        aggregator::kill_before_commit(scene).boxed_local()
    }),
    long("aggregator-kill-after-commit", |scene| {
        aggregator::kill_after_commit(scene).boxed_local()
    }),
    long("aggregator-terminate", |scene| aggregator::terminate(scene).boxed_local()),
    short("aggregator-freeze", |scene| aggregator::freeze(scene).boxed_local()),
    long("aggregator-wakes-first", |scene| aggregator::wakes_first(scene).boxed_local()),
    long("aggregators-come-and-go", |scene| aggregator::come_and_go(scene).boxed_local()),
    short("connect-kill", |scene| connect::kill(scene).boxed_local()),
    long("connect-kill-without-exactly-once", |scene| {
        connect::kill_without_exactly_once(scene).boxed_local()
    }),
    long("connect-pause", |scene| connect::pause(scene).boxed_local()),
    long("kafka-kill", |scene| kafka::kill(scene).boxed_local()),
    long("kafka-freeze-9", |scene| kafka::freeze_9(scene).boxed_local()),
    long("kafka-freeze-75", |scene| kafka::freeze_75(scene).boxed_local()),
    long("mongod-kill", |scene| mongodb::kill(scene).boxed_local()),
    long("mongod-freeze", |scene| mongodb::freeze(scene).boxed_local()),
    long("mongod-step-down", |scene| mongodb::step_down(scene).boxed_local()),
    short("mongod-commit-reply-lost", |scene| mongodb::commit_reply_lost(scene).boxed_local()),
    long("mongod-write-conflict", |scene| mongodb::write_conflict(scene).boxed_local()),
    long("mongod-not-primary", |scene| mongodb::not_primary(scene).boxed_local()),
    long("mongod-slow", |scene| mongodb::slow(scene).boxed_local()),
    long("mysqld-kill", |scene| mysql::kill(scene).boxed_local()),
    long("mysqld-restart", |scene| mysql::restart(scene).boxed_local()),
    short("log-copied", |scene| log::copied(scene).boxed_local()),
    long("connector-forgotten", |scene| connect::forgotten(scene).boxed_local()),
    Fault {
        name: "partitions-raised",
        is_short: false,
        leaves: Leaves::NoCounting,
        provoke: |scene| kafka::partitions_raised(scene).boxed_local(),
    },
];

const fn long(name: &'static str, provoke: Provoke) -> Fault {
    Fault { name, is_short: false, leaves: Leaves::Everything, provoke }
}

const fn short(name: &'static str, provoke: Provoke) -> Fault {
    Fault { name, is_short: true, leaves: Leaves::Everything, provoke }
}
