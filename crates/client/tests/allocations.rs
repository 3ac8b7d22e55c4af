//! A request of a domain that is known takes no memory from the allocator, nor does settling what it cost. In a program of its
//! own, as the allocator that counts is that of the whole program.
//!
//! There is one exception, which is not here: who pays a part of a debt and is refused is told when the next part can be paid,
//! and for that the history is copied.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use allocation_counter::measure;
use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::domain::{Domains, Override, Policies, Rules};
use lessor_client::internals::limiter::Limiter;
use lessor_client::internals::session::{Change, Session, SessionConfig};
use lessor_client::internals::window::{KeysOptions, WindowHolder, WindowKeys};
use lessor_client::{DomainOptions, Rung};
use lessor_proto::message::UseWindow;
use lessor_proto::{Amount, ClientId, Glob, Incarnation, ResourceId, Time};

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

/// The bytes that each of so many keys of a window takes in a client, with its session, when it is idle; measured where a key has
/// been asked for once and nothing is in use.
#[test]
fn an_idle_key_of_a_window_takes_little_memory_and_a_use_of_a_warm_one_none() {
    const KEYS: u64 = 2_000;
    let now = Time::from_nanos(1 << 40);
    let keys = Arc::new(WindowKeys::new("api/", KeysOptions::default(), Waker::noop().clone()));
    let name = ClientId::new("web-1", 256).unwrap();
    let mut session = Session::new(SessionConfig::new(name, Incarnation(1), vec!["a:1".into()]));
    let mut holder = WindowHolder::new();
    let names: Vec<String> = (0..KEYS).map(|number| format!("tenant-{number}")).collect();
    let all = measure(|| {
        for name in &names {
            assert!(keys.try_acquire(name, 1, || now).is_err());
            holder.hear(now, &keys, |_| false, &mut session);
        }
    });
    let each = all.bytes_current / i64::try_from(KEYS).unwrap();
    println!("{each} bytes a key");
    assert!(each < 2_000, "{each} bytes a key");
    // The first one is leased something.
    let window = UseWindow { length: Duration::from_secs(60), limit: 100 };
    let lease = Allowance::new(Some(Amount::from_units(100)), now + Duration::from_secs(900));
    let allowance = Allowance { window: Some(window), ..lease };
    let resource = ResourceId::new("api/tenant-0", 256).unwrap();
    let change = Change {
        resource,
        allowance,
        rung: Rung::Leased,
        fault: None,
        learns_until: None,
        bound_by: None,
        domains: None,
    };
    assert!(holder.apply(now, &change, &mut session));
    // Uses of one moment are one entry.
    let hit = |_| keys.try_acquire("tenant-0", 1, || now).is_ok();
    assert!((0..2).all(hit));
    let warm = measure(|| assert!((0..90).all(hit)));
    assert_eq!(warm.count_total, 0, "{warm:?}");
}
