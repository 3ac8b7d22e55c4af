//! A run in numbers.

use std::time::Duration;

use lessor_algorithms::tiers::Bound;
use serde::Serialize;

use super::history::{Doing, History, Lane, Request};
use super::{SECOND, notation};

/// The results of a run. Times are in seconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TiersFigures {
    /// Requests that were made.
    pub requests: u64,
    /// Hits that they asked for.
    pub asked: u64,
    /// Hits that were granted.
    pub granted: u64,
    /// The others, by what refused them.
    pub refused: Refused,
    /// The most hits that were granted within any second.
    pub most_in_a_second: u64,
    /// The longest that nothing was granted though somebody asked: from the first refusal to the next grant, or to the end.
    pub longest_without_s: f64,
    /// The tiers of all policies, in ascending order.
    pub tiers: Vec<TierFigures>,
}

/// Hits that were refused, by what had no room for them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Refused {
    /// The tiers.
    pub tiers: u64,
    /// The hard limit.
    pub hard: u64,
    /// The global limit.
    pub global: u64,
}

/// The results of a run for one tier.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TierFigures {
    /// Counted from 1.
    pub policy: usize,
    /// Counted from 1.
    pub tier: usize,
    /// Hits that it allows in a window.
    pub limit: u32,
    /// The window.
    pub window_s: f64,
    /// Hits that were granted in it.
    pub hits: u64,
    /// Hits that it had no room for, so that they were refused.
    pub refused: u64,
    /// The number of times that it was entered.
    pub entered: u64,
    /// For how long it was active.
    pub active_s: f64,
    /// For how long of that a higher tier was the current one.
    pub shadowed_s: f64,
    /// For how long it could not be entered.
    pub cooldown_s: f64,
    /// The most hits that counted in its window.
    pub fullest: u32,
}

// === impl TiersFigures ===

impl TiersFigures {
    /// Those of a run.
    #[must_use]
    pub fn new(history: &History) -> TiersFigures {
        let requests = &history.requests;
        let mut refused = Refused::default();
        requests.iter().for_each(|request| refused.add(request));
        let sum = |of: fn(&Request) -> u32| requests.iter().map(|request| u64::from(of(request))).sum();
        TiersFigures {
            requests: requests.len() as u64,
            asked: sum(|request| request.arrival.copies),
            granted: sum(|request| request.decision.granted),
            refused,
            most_in_a_second: most_in_a_second(requests),
            longest_without_s: as_seconds(longest_without(requests, history.end)),
            tiers: history.lanes.iter().map(TierFigures::new).collect(),
        }
    }
}

fn most_in_a_second(requests: &[Request]) -> u64 {
    let (mut first, mut sum, mut most) = (0, 0_u64, 0);
    for request in requests {
        sum += u64::from(request.decision.granted);
        while request.arrival.at - requests[first].arrival.at > SECOND {
            sum -= u64::from(requests[first].decision.granted);
            first += 1;
        }
        most = most.max(sum);
    }
    most
}

fn longest_without(requests: &[Request], end: u64) -> u64 {
    let (mut since, mut longest) = (None, 0);
    for Request { arrival, decision } in requests {
        if decision.granted == 0 && arrival.copies > 0 {
            since.get_or_insert(arrival.at);
        } else if let Some(since) = since.take() {
            longest = longest.max(arrival.at - since);
        }
    }
    since.map_or(longest, |since| longest.max(end - since))
}

fn as_seconds(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64()
}

// === impl Refused ===

impl Refused {
    /// All of them.
    #[must_use]
    pub fn sum(self) -> u64 {
        self.tiers + self.hard + self.global
    }

    fn add(&mut self, request: &Request) {
        let refused = u64::from(request.arrival.copies - request.decision.granted);
        match request.decision.bound {
            Some(Bound::Hard) => self.hard += refused,
            Some(Bound::Global) => self.global += refused,
            // Nothing is ever owed here.
            Some(Bound::Tiers | Bound::Debt) | None => self.tiers += refused,
        }
    }
}

// === impl TierFigures ===

impl TierFigures {
    fn new(lane: &Lane) -> TierFigures {
        let shadowed = lane.time(Doing::Shadowed);
        let columns = lane.columns.iter();
        TierFigures {
            policy: lane.policy + 1,
            tier: lane.number,
            limit: lane.tier.limit,
            window_s: lane.tier.window.as_secs_f64(),
            hits: lane.hits,
            refused: columns.clone().map(|column| u64::from(column.refused)).sum(),
            entered: lane.entered.len() as u64,
            active_s: as_seconds(lane.time(Doing::Current) + shadowed),
            shadowed_s: as_seconds(shadowed),
            cooldown_s: as_seconds(lane.time(Doing::Cooling)),
            fullest: columns.map(|column| column.fullest).max().unwrap_or(0),
        }
    }
}

/// The policies of a contract as they are written, with `and` between them.
pub(super) fn title(history: &History) -> String {
    let policies = history.contract.policies().iter().map(notation::shown);
    policies.collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use lessor_algorithms::tiers::Contract;

    use super::super::{Arrival, Tiers, run};
    use super::*;

    #[test]
    fn the_figures_are_those_of_the_requests() {
        let policy = "4/2s".parse::<Tiers>().unwrap().policy(Some(3), None).unwrap();
        let at = |millis: u64, copies| Arrival { at: millis * 1_000_000, copies, min: 1 };
        // Three of five by the hard limit; then one, and none for lack of room until 2 s are over.
        let asked = [at(0, 5), at(1500, 2), at(1700, 1), at(2100, 1)];
        let figures = TiersFigures::new(&run(&Contract::from(policy), &asked, &[], 4 * SECOND));
        assert_eq!((figures.requests, figures.asked, figures.granted), (4, 9, 5));
        assert_eq!(figures.refused, Refused { tiers: 2, hard: 2, global: 0 });
        assert_eq!((figures.most_in_a_second, figures.longest_without_s), (3, 0.4));
        let tier = &figures.tiers[0];
        assert_eq!((tier.hits, tier.refused, tier.entered, tier.fullest), (5, 2, 2, 4));
        assert_eq!((tier.active_s, tier.shadowed_s, tier.cooldown_s), (3.9, 0.0, 0.0));
    }

    #[test]
    fn who_is_refused_to_the_end_waits_until_then() {
        let policy = "1/9s".parse::<Tiers>().unwrap().policy(None, None).unwrap();
        let at = |seconds| Arrival { at: seconds * SECOND, copies: 1, min: 1 };
        let figures = TiersFigures::new(&run(&Contract::from(policy), &[at(0), at(1)], &[], 5 * SECOND));
        assert_eq!((figures.granted, figures.longest_without_s), (1, 4.0));
    }
}
