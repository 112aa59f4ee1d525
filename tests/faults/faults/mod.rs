//! The faults, by the server that they happen to.

mod aggregator;

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
pub(crate) static ALL: [Fault; 8] = [
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
];

const fn long(name: &'static str, provoke: Provoke) -> Fault {
    Fault { name, is_short: false, leaves: Leaves::Everything, provoke }
}

const fn short(name: &'static str, provoke: Provoke) -> Fault {
    Fault { name, is_short: true, leaves: Leaves::Everything, provoke }
}
