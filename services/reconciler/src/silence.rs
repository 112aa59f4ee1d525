//! When a connector is silent, and when it may be started again. Pure: the watcher observes and acts.
//!
//! A connector whose link to MySQL was cut says RUNNING and delivers nothing, for ever. It is silent
//! when MySQL and Kafka answer and MySQL has no thread that sends it the binlog, or the log stands
//! still while marks in MySQL move on. A restart goes back to the durable place and loses nothing, but
//! a large transaction then starts over: so pauses grow, and any progress resets them.

use std::time::{Duration, Instant};

use likewise_core::{Micros, Offset};

/// A reader that was there and is missing for a moment is perhaps just connecting again.
const GONE_FOR: Duration = Duration::from_secs(4);
/// A task says RUNNING before it reads.
const STARTS_FOR: Duration = Duration::from_secs(10);
/// Marks are set every few seconds, and take a fraction of a second to arrive.
const STILL_FOR: Duration = Duration::from_secs(15);
/// The pauses between two starts.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// What Kafka Connect says of the connector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    Running,
    Failed,
    /// Stopped by somebody, being started, or unknown: nothing to do about it.
    Other,
}

/// What MySQL and Kafka say, when both answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Whether MySQL sends the binlog to the connector's account.
    pub(crate) is_read: bool,
    /// The newest mark in MySQL.
    pub(crate) mark: Micros,
    /// The ends of the log.
    pub(crate) ends: Vec<Offset>,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    StartFailed,
    /// Everything, for this reason.
    Start(&'static str),
}

/// What is remembered between two looks.
#[derive(Debug)]
pub(crate) struct Silence {
    ends: Vec<Offset>,
    /// The newest mark when the log last grew.
    mark: Option<Micros>,
    grew_at: Instant,
    gone_since: Option<Instant>,
    /// Whether MySQL was read since the connector was last started, as far as that was seen.
    was_read: bool,
    pause: Duration,
    not_before: Instant,
}

impl Silence {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            ends: Vec::new(),
            mark: None,
            grew_at: now,
            gone_since: None,
            was_read: false,
            pause: FIRST_PAUSE,
            not_before: now,
        }
    }

    /// Takes in a look; none of `seen` when MySQL or Kafka did not answer.
    pub(crate) fn look(&mut self, now: Instant, says: Says, seen: Option<Seen>) -> Option<Action> {
        let Some(seen) = seen else {
            // Nothing can flow, and whatever was tried meanwhile says nothing of what comes.
            *self = Self::new(now);
            return None;
        };
        if seen.ends != self.ends || says == Says::Other {
            self.ends = seen.ends;
            self.mark = Some(seen.mark);
            self.grew_at = now;
            self.pause = FIRST_PAUSE;
            self.not_before = self.not_before.min(now + FIRST_PAUSE);
        }
        self.was_read = says != Says::Other && (self.was_read || seen.is_read);
        if seen.is_read || says != Says::Running {
            self.gone_since = None;
        } else {
            self.gone_since.get_or_insert(now);
        }
        let for_long = |since: Instant, limit| now.duration_since(since) >= limit;
        let patience = if self.was_read { GONE_FOR } else { STARTS_FOR };
        let silent = for_long(self.grew_at, STILL_FOR) && self.mark < Some(seen.mark);
        let action = match says {
            Says::Other => return None,
            Says::Failed => Action::StartFailed,
            Says::Running if self.gone_since.is_some_and(|since| for_long(since, patience)) => {
                Action::Start("MySQL has no thread that sends it the binlog")
            }
            Says::Running if silent => Action::Start("the log stands still while marks move on"),
            Says::Running => return None,
        };
        if now < self.not_before {
            return None;
        }
        self.not_before = now + self.pause;
        self.pause = LONGEST_PAUSE.min(self.pause * 2);
        self.gone_since = None;
        self.was_read = false;
        self.grew_at = now;
        Some(action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Clock(Instant, Silence);

    impl Clock {
        fn new() -> Self {
            let now = Instant::now();
            Self(now, Silence::new(now))
        }

        fn look(
            &mut self,
            after_s: u64,
            says: Says,
            seen: Option<(bool, i64, i64)>,
        ) -> Option<Action> {
            self.0 += Duration::from_secs(after_s);
            let seen = seen.map(|(is_read, mark, end)| Seen {
                is_read,
                mark: Micros(mark),
                ends: vec![end],
            });
            self.1.look(self.0, says, seen)
        }
    }

    #[test]
    fn a_connector_that_nobody_reads_for_is_started_soon() {
        let mut clock = Clock::new();
        assert_eq!(clock.look(0, Says::Running, Some((true, 1, 1))), None);
        assert_eq!(clock.look(1, Says::Running, Some((false, 1, 1))), None);
        assert_eq!(clock.look(3, Says::Running, Some((false, 1, 1))), None);
        assert!(matches!(
            clock.look(1, Says::Running, Some((false, 1, 1))),
            Some(Action::Start(_))
        ));
    }

    #[test]
    fn a_task_that_starts_may_take_longer_to_read_than_one_that_was_cut_off() {
        let mut clock = Clock::new();
        assert_eq!(clock.look(0, Says::Other, Some((false, 1, 1))), None);
        for _ in 0..10 {
            assert_eq!(clock.look(1, Says::Running, Some((false, 1, 1))), None);
        }
        assert!(matches!(
            clock.look(1, Says::Running, Some((false, 1, 1))),
            Some(Action::Start(_))
        ));
    }

    #[test]
    fn a_log_that_stands_still_is_silent_only_where_marks_move_on() {
        let mut clock = Clock::new();
        assert_eq!(clock.look(0, Says::Running, Some((true, 1, 1))), None);
        assert_eq!(clock.look(60, Says::Running, Some((true, 1, 1))), None);
        assert!(matches!(clock.look(1, Says::Running, Some((true, 2, 1))), Some(Action::Start(_))));
    }

    #[test]
    fn pauses_grow_and_progress_resets_them() {
        let mut clock = Clock::new();
        let starts = |clock: &mut Clock, seconds: u64, end: i64| {
            (0..seconds)
                .filter(|_| clock.look(1, Says::Failed, Some((false, 1, end))).is_some())
                .count()
        };
        assert_eq!(starts(&mut clock, 100, 1), 4, "after 1, 11, 31 and 71 seconds");
        assert_eq!(starts(&mut clock, 100, 1), 1);
        assert_eq!(clock.look(0, Says::Running, Some((true, 1, 2))), None);
        assert_eq!(starts(&mut clock, 200, 2), 5, "after 10, 20, 40, 80 and 160 seconds");
    }

    #[test]
    fn nothing_is_started_while_mysql_is_away_and_at_once_when_it_is_back() {
        let mut clock = Clock::new();
        for _ in 0..100 {
            assert_eq!(clock.look(5, Says::Failed, None), None);
        }
        assert_eq!(clock.look(1, Says::Failed, Some((false, 1, 1))), Some(Action::StartFailed));
    }

    #[test]
    fn what_somebody_has_stopped_stays_stopped() {
        let mut clock = Clock::new();
        for mark in 0..100 {
            assert_eq!(clock.look(5, Says::Other, Some((false, mark, 1))), None);
        }
    }
}
