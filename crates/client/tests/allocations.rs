//! A request of a domain that is known takes no memory from the allocator, nor does settling what it cost. In a program of its
//! own, as the allocator that counts is that of the whole program.
//!
//! There is one exception, which is not here: who pays a part of a debt and is refused is told when the next part can be paid,
//! and for that the history is copied.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::time::Duration;

use allocation_counter::measure;
use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::DomainOptions;
use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::domain::{Domains, Override, Policies, Rules};
use lessor_client::internals::limiter::Limiter;
use lessor_proto::{Amount, Glob, Time};

/// A resource on a clock of its own.
struct House {
    domains: Domains,
    lease: Limiter,
    now: Time,
}

// === impl House ===

impl House {
    /// `short/*` has two tiers that are soon full, `long/*` one with so many times that they lie in cells, and `all/*` shares
    /// a limit with all others.
    fn new() -> House {
        let each = |glob: &str, contract| Override { glob: Glob::new(glob).unwrap(), contract };
        let overrides = vec![
            each("short/*", contract(vec![tier(5, 1, 0), tier(20, 5, 15)], Some(10), None)),
            each("long/*", contract(vec![tier(100, 60, 0)], Some(50), None)),
            each("all/*", contract(vec![tier(5, 1, 0)], None, Some(20))),
        ];
        let domains = Domains::new(DomainOptions::default());
        domains.follow(Some(Arc::new(Policies::new(Rules { overrides, ..Rules::default() }).unwrap())));
        let lease = Limiter::new(Duration::from_secs(1));
        lease.allow(Time::ZERO, Allowance::forever(Amount::from_units(100)));
        House { domains, lease, now: Time::from_nanos(1 << 40) }
    }

    /// Makes `requests` requests for up to three hits, `every` milliseconds apart; returns how many were granted.
    fn live(&mut self, domain: &str, requests: u32, every: u64) -> u32 {
        let is_granted = |turn| {
            self.now += Duration::from_millis(every);
            let decision = self.domains.request(&self.lease, domain, 1 + turn % 3, 1, self.now);
            // Costs that are more than was thought, and less.
            match turn % 70 {
                30 => {
                    self.domains.settle(
                        &self.lease,
                        domain,
                        decision.granted,
                        decision.granted + 3,
                        self.now,
                    );
                    self.now += Duration::from_secs(100);
                }
                5 | 15 | 25 => self.domains.settle(&self.lease, domain, decision.granted, 0, self.now),
                _ => {}
            }
            decision.is_granted()
        };
        (0..requests).map(is_granted).map(u32::from).sum()
    }
}

fn tier(limit: u32, seconds: u64, cooldown: u64) -> Tier {
    let [window, active, cooldown] = [seconds, seconds, cooldown].map(Duration::from_secs);
    Tier { limit, window, active, cooldown, is_skippable: false, kind: Window::Exact }
}

fn contract(tiers: Vec<Tier>, hard: Option<u32>, global: Option<u32>) -> Contract {
    Contract::from(TierPolicy::new(tiers, hard, global).unwrap())
}

/// Counts what a domain takes once it has lived for a while.
#[track_caller]
fn check(domain: &str, every: u64) {
    let (mut house, mut granted) = (House::new(), 0);
    house.live(domain, 2_000, every);
    let counted = measure(|| granted = house.live(domain, 2_000, every));
    assert!(granted > 20 && granted < 1_980, "some were granted and some refused: {granted} of 2000");
    assert_eq!(counted.count_total, 0, "{counted:?}");
}

#[test]
fn a_domain_with_a_short_history_takes_no_memory() {
    check("short/tenant", 70);
}

#[test]
fn a_domain_with_a_long_history_takes_no_memory() {
    check("long/tenant", 70);
}

#[test]
fn where_all_domains_share_a_limit_none_takes_memory() {
    check("all/tenant", 70);
}

/// That is, what is counted is counted.
#[test]
fn a_domain_that_is_not_known_takes_memory() {
    let mut house = House::new();
    let counted = measure(|| _ = house.live("short/tenant", 1, 1));
    assert!(counted.count_total > 0);
}
