//! Those who know everything: the log of all hits that were made, and one who decides about all requests alone.
//!
//! The log is a list of times for each tier, and the rules are applied to it word for word: it shares no code with what it
//! judges. It knows one policy, exact windows, and requests for one hit.

use std::time::Duration;

use lessor_algorithms::tiers::{Ask, Contract, Domain, Global, Tier, Window, Windows};
use lessor_proto::Time;

use super::client::TenantHit;

const SECOND: u64 = 1_000_000_000;

/// Those who know everything.
#[derive(Debug)]
pub(super) struct Truth {
    contract: Contract,
    /// Of each tier, when it was entered, and its hits.
    tiers: Vec<Log>,
    /// All hits.
    hits: Vec<u64>,
    /// One who is asked for every hit.
    center: Domain,
}

/// The events in a tier, in order.
#[derive(Clone, Debug, Default)]
struct Log {
    entered: Vec<u64>,
    hits: Vec<u64>,
}

/// A later look at what was known at some time.
#[derive(Clone, Copy, Debug)]
struct Observation {
    now: u64,
    known: u64,
}

// === impl Truth ===

impl Truth {
    /// # Panics
    /// When `contract` is not one policy of exact windows.
    pub(super) fn new(contract: Contract) -> Truth {
        let [policy] = contract.policies() else { panic!("the log knows one policy") };
        assert!(policy.tiers().iter().all(|tier| tier.kind == Window::Exact), "the log is exact");
        let tiers = vec![Log::default(); policy.tiers().len()];
        Truth { contract, tiers, hits: Vec::new(), center: Domain::new() }
    }

    /// Whether the center grants a hit.
    pub(super) fn ask_center(&mut self, now: Time) -> bool {
        let mut all = Global::default();
        self.center.request(&self.contract, &mut all, now.as_nanos(), Ask::ONE).granted > 0
    }

    /// A hit was made, in the tier that was the current one for whoever granted it. Returns whether there was room for it.
    pub(super) fn make(&mut self, now: Time, hit: TenantHit) -> bool {
        let had_room = self.would_grant(now);
        let look = Observation::at(now);
        let tier = if hit.tier > 0 { hit.tier } else { self.current(look) };
        self.hits.push(look.now);
        if tier == 0 {
            return had_room;
        }
        let is_active = self.is_active(tier, look);
        let log = &mut self.tiers[tier - 1];
        if hit.is_entered && !is_active {
            log.entered.push(look.now);
        }
        log.hits.push(look.now);
        had_room
    }

    /// Whether there is room for a hit.
    pub(super) fn would_grant(&self, now: Time) -> bool {
        self.has_room(Observation::at(now))
    }

    /// Whether there would be for everyone who knows what happened until so long ago, even if it was thought to have happened
    /// so much earlier.
    pub(super) fn would_have_granted(&self, now: Time, young: Duration) -> bool {
        let known = now.as_nanos().saturating_sub(nanos(young));
        [now, now + young].iter().all(|now| self.has_room(Observation { now: now.as_nanos(), known }))
    }

    fn has_room(&self, look: Observation) -> bool {
        if self.contract.hard_limit().is_some_and(|hard| look.count(&self.hits, SECOND) >= hard as usize) {
            return false;
        }
        let has_room = |tier: usize| {
            let rule = self.rule(tier);
            let from = self.counts_from(tier, look);
            look.count_from(&self.tiers[tier - 1].hits, from, nanos(rule.window)) < rule.limit as usize
        };
        let current = self.current(look);
        if current > 0 && has_room(current) {
            return true;
        }
        for tier in current + 1..=self.tiers.len() {
            if self.is_inactive(tier, look) && has_room(tier) {
                return true;
            }
            if !self.rule(tier).is_skippable {
                return false;
            }
        }
        false
    }

    /// The time from which hits of a tier count, if they lie in the window: where windows are reset, that of the last entry, or
    /// else that of the next one.
    fn counts_from(&self, tier: usize, look: Observation) -> u64 {
        match self.contract.policies()[0].windows() {
            Windows::Keep => 0,
            Windows::Reset if self.is_inactive(tier, look) => u64::MAX,
            Windows::Reset => look.last(&self.tiers[tier - 1].entered).unwrap_or(0),
        }
    }

    fn rule(&self, tier: usize) -> &Tier {
        &self.contract.policies()[0].tiers()[tier - 1]
    }

    /// The active tier with the greatest index.
    fn current(&self, look: Observation) -> usize {
        (1..=self.tiers.len()).rev().find(|&tier| self.is_active(tier, look)).unwrap_or(0)
    }

    fn is_active(&self, tier: usize, look: Observation) -> bool {
        look.last(&self.tiers[tier - 1].entered)
            .is_some_and(|since| look.now < since + nanos(self.rule(tier).active))
    }

    fn is_inactive(&self, tier: usize, look: Observation) -> bool {
        let rule = self.rule(tier);
        let rests = nanos(rule.active) + nanos(rule.cooldown);
        look.last(&self.tiers[tier - 1].entered).is_none_or(|since| look.now >= since + rests)
    }
}

// === impl Observation ===

impl Observation {
    /// With everything known.
    fn at(now: Time) -> Observation {
        Observation { now: now.as_nanos(), known: now.as_nanos() }
    }

    fn last(self, times: &[u64]) -> Option<u64> {
        times.iter().rev().find(|&&at| at <= self.known).copied()
    }

    /// The number of `times` that lie in the window.
    fn count(self, times: &[u64], window: u64) -> usize {
        self.count_from(times, 0, window)
    }

    /// Those that are not before `from` either.
    fn count_from(self, times: &[u64], from: u64, window: u64) -> usize {
        let times = &times[times.partition_point(|&at| at < from)..];
        let within = times.iter().rev().take_while(|&&at| self.now <= at.saturating_add(window));
        within.filter(|&&at| at <= self.known).count()
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::tenants::TenantsRun;

    /// The log and the rules as clients apply them agree where one makes all hits.
    #[test]
    fn the_log_grants_what_the_center_grants() {
        let contract = TenantsRun::default().contract;
        check(contract.clone());
        let policies = contract.policies().iter().cloned().map(|policy| policy.with_windows(Windows::Reset));
        check(Contract::new(policies.collect()).unwrap());
    }

    fn check(contract: Contract) {
        let mut truth = Truth::new(contract);
        let (mut rng, mut now) = (Rng::new(1), Time::ZERO);
        let (mut granted, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let mean = Duration::from_millis(rng.between(5, 60));
            now += rng.exponential(mean);
            let expected = truth.would_grant(now);
            let mut all = Global::default();
            let decision = truth.center.request(&truth.contract, &mut all, now.as_nanos(), Ask::ONE);
            assert_eq!(decision.granted > 0, expected, "at {now:?}");
            if expected {
                let hit = TenantHit { tier: decision.tier, is_entered: decision.burst, is_unheard: false };
                truth.make(now, hit);
            }
            (granted, refused) = (granted + u64::from(expected), refused + u64::from(!expected));
        }
        assert!(granted > 1_000 && refused > 1_000, "{granted} {refused}");
    }
}
