//! Ends of what never began: Envoy says that a request has ended also where it was refused, and nothing in the call tells which.
//!
//! So each call that took nothing of a limit on what is under way has one end of its key pass for its own. Which of several ends
//! that is makes no difference, as all give back the same.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use lessor_client::internals::clock;
use lessor_proto::Time;

use crate::claim::{Call, CallAnswer, Claim, Mode, Overall, Verdict};
use crate::rules::LimitKind;

/// The hits of calls that took nothing, by the resources that they would have been taken of.
#[derive(Default, Debug)]
pub(super) struct UnbegunEnds(Mutex<HashMap<Box<str>, Unbegun, FixedState>>);

/// The hits that a resource was not taken, whose ends are to come.
#[derive(Clone, Copy, Debug)]
struct Unbegun {
    hits: u64,
    /// The time at which nobody expects an end any more.
    until: Time,
}

/// The resources that are remembered. Where there are more, no end gives anything back: it is all free again after its window.
const MOST: usize = 100_000;

// === impl UnbegunEnds ===

impl UnbegunEnds {
    /// Takes the ends off a call that are of what never began.
    pub(super) fn pass_over(&self, call: &mut Call<'_>) {
        let mut has_ends = false;
        for claim in call.claims.iter_mut().filter(|claim| is_of(claim, &[Mode::GiveBack])) {
            claim.hits -= self.take(&name(claim), claim.hits, clock::now());
            has_ends = true;
        }
        if has_ends {
            call.claims.retain(|claim| claim.mode != Mode::GiveBack || claim.hits > 0);
        }
    }

    /// Remembers what of a call was not taken.
    pub(super) fn remember(&self, call: &Call<'_>, answer: &CallAnswer) {
        for (claim, answered) in call.claims.iter().zip(&answer.claims) {
            let is_taken = answer.overall == Overall::Granted && answered.verdict == Verdict::Within;
            if !is_taken && is_of(claim, &[Mode::Firm, Mode::Quota, Mode::Shadow]) {
                self.add(name(claim), claim.hits, (clock::now(), claim.limit.window.length()));
            }
        }
    }

    /// Takes off as many of `hits` as are those of what never began.
    fn take(&self, resource: &str, hits: u64, now: Time) -> u64 {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = all.len() >= MOST;
        let Some(unbegun) = all.get_mut(resource) else { return if is_full { hits } else { 0 } };
        let left = if unbegun.until < now { 0 } else { unbegun.hits };
        unbegun.hits = left.saturating_sub(hits);
        if unbegun.hits == 0 {
            all.remove(resource);
        }
        left.min(hits)
    }

    fn add(&self, resource: Box<str>, hits: u64, (now, window): (Time, Duration)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.retain(|_, unbegun| unbegun.until >= now);
        }
        if all.len() < MOST || all.contains_key(&resource) {
            let before =
                all.get(&resource).filter(|unbegun| unbegun.until >= now).map_or(0, |unbegun| unbegun.hits);
            all.insert(resource, Unbegun { hits: before.saturating_add(hits), until: now + window });
        }
    }
}

fn is_of(claim: &Claim<'_>, modes: &[Mode]) -> bool {
    claim.limit.kind == LimitKind::Concurrency && modes.contains(&claim.mode)
}

fn name(claim: &Claim<'_>) -> Box<str> {
    format!("{}{}", claim.limit.resource, claim.key).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(60);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn as_many_ends_are_passed_over_as_never_began() {
        let ends = UnbegunEnds::default();
        ends.add("a".into(), 1, (at(0), WINDOW));
        ends.add("a".into(), 2, (at(1), WINDOW));
        assert_eq!((ends.take("a", 2, at(2)), ends.take("a", 2, at(2)), ends.take("a", 2, at(2))), (2, 1, 0));
        ends.add("b".into(), 5, (at(0), WINDOW));
        assert_eq!(ends.take("b", 5, at(60_001)), 0, "nobody expects them any more");
        ends.add("b".into(), 5, (at(0), WINDOW));
        ends.add("b".into(), 1, (at(60_001), WINDOW));
        assert_eq!(ends.take("b", 5, at(60_002)), 1);
    }

    #[test]
    fn where_not_all_are_remembered_no_end_gives_anything_back() {
        let ends = UnbegunEnds::default();
        for number in 0..=MOST {
            ends.add(number.to_string().into(), 1, (at(0), WINDOW));
        }
        assert_eq!(ends.take("another", 3, at(1)), 3);
        assert_eq!(ends.take("7", 3, at(1)), 1);
        assert_eq!(ends.take("another", 3, at(1)), 0, "there is a place again");
    }
}
