//! What the load was told: the state of every edge as far as it is known, and so the counts that an
//! answer may have. Pure.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use likewise_core::Micros;

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It is under way, or its outcome was never told: it may have taken effect, or may not.
    Unknown,
    /// It was acknowledged, and was committed before this moment of MySQL's clock.
    Acknowledged(Micros),
}

#[derive(Clone, Copy, Debug)]
struct Call {
    liked: bool,
    outcome: Outcome,
}

/// A call that is recorded.
#[derive(Clone, Debug)]
pub struct CallId {
    post: String,
    user: String,
    call: usize,
}

/// Which states an edge may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct States {
    liked: bool,
    not_liked: bool,
}

impl States {
    fn only(liked: bool) -> Self {
        Self { liked, not_liked: !liked }
    }

    fn or(self, other: Self) -> Self {
        Self { liked: self.liked || other.liked, not_liked: self.not_liked || other.not_liked }
    }

    /// Whether the edge may be in this state.
    pub fn allow(self, liked: bool) -> bool {
        if liked { self.liked } else { self.not_liked }
    }
}

/// Every call of a load, by edge. The calls of one edge follow each other.
#[derive(Debug, Default)]
pub struct Record {
    posts: HashMap<String, HashMap<String, Vec<Call>>>,
    /// How many calls were acknowledged.
    pub acknowledged: u64,
    /// The outcome of how many was not told.
    pub unknown: u64,
}

impl Record {
    /// A call is about to be made: from now on it may take effect.
    pub fn begin(&mut self, user: &str, post: &str, liked: bool) -> CallId {
        let edges = self.posts.entry(post.to_owned()).or_default();
        let calls = edges.entry(user.to_owned()).or_default();
        calls.push(Call { liked, outcome: Outcome::Unknown });
        CallId { post: post.to_owned(), user: user.to_owned(), call: calls.len() - 1 }
    }

    /// The call was acknowledged. An answer that contradicts what is known of its edge is an error.
    pub fn acknowledge(
        &mut self,
        id: &CallId,
        changed: bool,
        written_at: Micros,
    ) -> Result<(), String> {
        self.acknowledged += 1;
        let calls = self.calls(id);
        let before = states(&calls[..id.call], None);
        let liked = calls[id.call].liked;
        calls[id.call].outcome = Outcome::Acknowledged(written_at);
        if before.allow(liked != changed) {
            Ok(())
        } else {
            Err(format!("{id:?} was told liked {liked}, changed {changed}, and was {before:?}"))
        }
    }

    /// The outcome of the call was not told.
    pub fn leave_unknown(&mut self, _: CallId) {
        self.unknown += 1;
    }

    /// The counts that an answer about the post may have that was read before now and says that it
    /// includes every like before `as_of`.
    pub fn counts(&self, post: &str, as_of: Micros) -> RangeInclusive<u64> {
        let (mut least, mut most) = (0, 0);
        for calls in self.posts.get(post).into_iter().flat_map(HashMap::values) {
            let states = states(calls, Some(as_of));
            least += u64::from(!states.not_liked);
            most += u64::from(states.liked);
        }
        least..=most
    }

    /// Every edge with the states that it may have now.
    pub fn edges(&self) -> impl Iterator<Item = (&str, &str, States)> {
        self.posts.iter().flat_map(|(post, edges)| {
            let edges = edges.iter();
            edges.map(move |(user, calls)| (user.as_str(), post.as_str(), states(calls, None)))
        })
    }

    fn calls(&mut self, id: &CallId) -> &mut Vec<Call> {
        let edges = self.posts.get_mut(&id.post).expect("the call was begun");
        edges.get_mut(&id.user).expect("the call was begun")
    }
}

/// The states that an edge may have for somebody who has seen everything that was committed before
/// `as_of` (none: everything acknowledged), and perhaps more.
fn states(calls: &[Call], as_of: Option<Micros>) -> States {
    let seen = |call: &Call| match call.outcome {
        Outcome::Unknown => false,
        Outcome::Acknowledged(at) => as_of.is_none_or(|as_of| at <= as_of),
    };
    let certain = calls.iter().rposition(seen);
    let at_first = States::only(certain.is_some_and(|at| calls[at].liked));
    let later = &calls[certain.map_or(0, |at| at + 1)..];
    later.iter().fold(at_first, |states, call| states.or(States::only(call.liked)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_includes_what_was_acknowledged_before_it_and_may_include_more() {
        let mut record = Record::default();
        let first = record.begin("ann", "p", true);
        assert_eq!(record.counts("p", Micros(0)), 0..=1, "it may have taken effect");
        record.acknowledge(&first, true, Micros(10)).expect("it was not liked");
        let second = record.begin("ben", "p", true);
        record.acknowledge(&second, true, Micros(20)).expect("it was not liked");
        assert_eq!(record.counts("p", Micros(9)), 0..=2);
        assert_eq!(record.counts("p", Micros(10)), 1..=2);
        assert_eq!(record.counts("p", Micros(20)), 2..=2);
        let third = record.begin("ann", "p", false);
        record.acknowledge(&third, true, Micros(30)).expect("it was liked");
        assert_eq!(record.counts("p", Micros(20)), 1..=2);
        assert_eq!(record.counts("p", Micros(30)), 1..=1);
    }

    #[test]
    fn an_unknown_outcome_leaves_both_states_until_a_later_call_is_acknowledged() {
        let mut record = Record::default();
        let lost = record.begin("ann", "p", true);
        record.leave_unknown(lost);
        assert_eq!(record.counts("p", Micros(99)), 0..=1);
        let again = record.begin("ann", "p", true);
        record.acknowledge(&again, false, Micros(5)).expect("the lost one may have done it");
        assert_eq!(record.counts("p", Micros(5)), 1..=1);
        let edges: Vec<_> = record.edges().collect();
        assert_eq!(edges, [("ann", "p", States::only(true))]);
    }

    #[test]
    fn an_answer_that_contradicts_the_record_is_told() {
        let mut record = Record::default();
        let first = record.begin("ann", "p", true);
        record.acknowledge(&first, true, Micros(1)).expect("it was not liked");
        let repeat = record.begin("ann", "p", true);
        assert!(record.acknowledge(&repeat, true, Micros(2)).is_err());
    }
}
