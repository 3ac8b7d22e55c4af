//! Leases of domains: what is asked for, and what passes.

use std::sync::atomic::AtomicU32;
use std::task::Wake;

use lessor_algorithms::tiers::{Tier, TierPolicy, Window};
use lessor_proto::Glob;
use lessor_proto::message::{DomainHits, DomainNews};
use proptest::prelude::*;

use super::super::{Degraded, DomainOptions, Domains, Override, Rules};
use super::*;
use crate::decision::Ground;
use crate::together::{Combination, Price, TogetherAnswer, TogetherDenied};

#[derive(Default)]
struct Notifier(AtomicU32);

impl Wake for Notifier {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

fn contract(limits: &[(u32, u64)]) -> Contract {
    let policy = |&(limit, millis): &(u32, u64)| {
        let window = Duration::from_millis(millis);
        let (active, cooldown) = (window, Duration::ZERO);
        let tier = Tier { limit, window, active, cooldown, is_skippable: false, kind: Window::Exact };
        TierPolicy::new(vec![tier], None, None).unwrap()
    };
    Contract::new(limits.iter().map(policy).collect()).unwrap()
}

fn rules(scope: Scope, limit: u32) -> Option<Arc<Policies>> {
    let vip = Override { glob: Glob::new("vip").unwrap(), contract: contract(&[(100, 1_000)]) };
    let closed = Contract::from(TierPolicy::new(vec![], None, None).unwrap());
    let closed = Override { glob: Glob::new("closed").unwrap(), contract: closed };
    let default = Some(contract(&[(limit, 1_000)]));
    let ignore_configured = vec!["probe".to_owned()];
    let rules = Rules { scope, default, overrides: vec![vip, closed], ignore_configured, ..Rules::default() };
    Some(Arc::new(Policies::new(rules).unwrap()))
}

/// Domains with leases, and how often somebody was woken for them.
fn domains(limit: u32) -> (Domains, Arc<Notifier>) {
    let notifier = Arc::new(Notifier::default());
    let resource = ResourceId::new("db", 256).unwrap();
    let lender = Lender { resource, notifier: Waker::from(Arc::clone(&notifier)) };
    let domains = Domains::new(DomainOptions::default()).with_lender(lender);
    domains.follow(rules(Scope::Strict, limit));
    (domains, notifier)
}

/// A lease of `units` of the resource, which are there at once from the first second on.
fn lease(units: u64) -> Limiter {
    let lease = Limiter::new(Duration::from_secs(1));
    lease.allow(Time::ZERO, Allowance::forever(Amount::from_units(units)));
    lease
}

/// The news, as the resource and whether it is asked for.
fn news(domains: &Domains) -> Vec<(String, Option<Arc<Sublease>>)> {
    let told = |news| match news {
        News::Ask(lease) => (lease.resource().to_string(), Some(lease)),
        News::Leave(resource) => (resource.to_string(), None),
    };
    domains.subleases().take_news().into_iter().map(told).collect()
}

/// The one lease that is asked for.
fn asked(domains: &Domains) -> Arc<Sublease> {
    news(domains).remove(0).1.unwrap()
}

fn parts(lease: &Sublease, parts: u64) -> Allowance {
    Allowance::forever(Amount::from_micros(lease.share().part().as_micros() * parts))
}

#[test]
fn a_domain_is_refused_until_its_lease_has_come_and_then_has_what_that_brings() {
    let ((domains, notifier), lease) = (domains(29), lease(1_000));
    let first = domains.request(&lease, "a", 5, 1, at(1_000));
    assert_eq!((first.granted, first.bound), (0, Some(Bound::Asking)));
    assert_eq!(first.retry_at, Some(at(1_010)));
    assert_eq!(domains.request(&lease, "a", 5, 1, at(1_100)).retry_at, Some(at(1_150)));
    let sublease = asked(&domains);
    assert_eq!((sublease.resource().as_str(), notifier.0.load(Ordering::Relaxed)), ("db|d:a", 1));
    // Three parts of nine a second.
    assert_eq!((sublease.share().parts(), sublease.share().part()), (3, Amount::from_f64(8.999_999)));
    sublease.allow(at(1_200), parts(&sublease, 2));
    assert_eq!(domains.request(&lease, "a", 5, 1, at(1_200)).bound, Some(Bound::Sublease));
    let some = domains.request(&lease, "a", 5, 1, at(1_400));
    assert_eq!((some.granted, some.bound, some.ground), (2, Some(Bound::Sublease), Ground::Policies));
    let spent = domains.request(&lease, "a", 1, 1, at(1_410));
    assert_eq!(spent.granted, 0, "{spent:?}");
    assert!(spent.retry_at.is_some_and(|again| again > at(1_410) && again < at(1_520)), "{spent:?}");
    let more = domains.request(&lease, "a", 5, 5, at(2_000));
    assert_eq!(
        (more.granted, more.bound, more.retry_at),
        (0, Some(Bound::Sublease), None),
        "there are three parts"
    );
    assert_eq!(lease.usage().granted, 2);
}

#[test]
fn nothing_is_taken_of_either_lease_unless_both_have_enough() {
    let ((domains, _), lease) = (domains(29), lease(2));
    domains.request(&lease, "a", 1, 1, at(1_000));
    let sublease = asked(&domains);
    sublease.allow(at(1_000), parts(&sublease, 3));
    // Three by its own lease, two by that of the resource.
    let refused = domains.request(&lease, "a", 3, 3, at(2_000));
    assert_eq!((refused.granted, refused.bound), (0, Some(Bound::Burst { most: 2 })));
    let granted = domains.request(&lease, "a", 3, 1, at(2_000));
    assert_eq!((granted.granted, granted.bound), (2, Some(Bound::Lease)));
    assert_eq!(sublease.limiter.usage().granted, 2);
    // One is left of its own, none of the other; and then it is the other way round.
    assert_eq!(domains.request(&lease, "a", 1, 1, at(2_000)).bound, Some(Bound::Lease));
    lease.allow(at(2_000), Allowance::forever(Amount::from_units(1_000)));
    let last = domains.request(&lease, "a", 3, 1, at(2_010));
    assert_eq!((last.granted, last.bound), (1, Some(Bound::Sublease)));
    assert_eq!(domains.request(&lease, "a", 3, 1, at(2_010)).bound, Some(Bound::Sublease));
    assert_eq!((sublease.limiter.usage().granted, lease.usage().granted), (3, 3));
}

#[test]
fn what_was_shared_before_is_no_ground_for_a_grant_without_a_lease() {
    let ((domains, _), lease) = (domains(29), lease(1_000));
    let shared = rules(Scope::Shared, 29);
    let version = shared.as_ref().map_or(0, |policies| policies.version());
    domains.follow(shared);
    domains.attend(Some(1));
    assert_eq!(domains.request(&lease, "a", 29, 29, at(6_000)).granted, 29);
    let hits = DomainHits { domain: "a".into(), all: false, others: 1, entries: vec![] };
    let news = DomainNews {
        resource: ResourceId::new("db", 256).unwrap(),
        version,
        now: Time::ZERO,
        heard: 0,
        heard_at: Time::ZERO,
        members: 2,
        nodes: 0,
        begins: false,
        hot: vec![],
        calm: vec![],
        domains: vec![hits],
    };
    domains.on_update(at(6_000), &news);
    // Others are out of hearing; but that says nothing under other policies.
    assert_eq!(domains.request(&lease, "a", 1, 1, at(6_900)).granted, 0);
    for (scope, millis) in [(Scope::Client, 20_000), (Scope::Strict, 20_500)] {
        domains.follow(rules(scope, 29));
        let granted: u32 = (0..60).map(|_| domains.request(&lease, "a", 1, 1, at(millis)).granted).sum();
        assert_eq!(granted, if scope == Scope::Client { 29 } else { 0 }, "{scope:?}");
    }
}

#[test]
fn what_cost_more_than_was_granted_is_made_up_for_by_its_own_lease() {
    let ((domains, _), lease) = (domains(29), lease(1_000));
    domains.request(&lease, "a", 1, 1, at(1_000));
    let sublease = asked(&domains);
    sublease.allow(at(1_000), parts(&sublease, 3));
    assert_eq!(domains.request(&lease, "a", 3, 3, at(2_000)).granted, 3);
    domains.settle(&lease, "a", 3, 30, at(2_000));
    // Twenty-seven hits come in a second.
    let refused = domains.request(&lease, "a", 1, 1, at(2_990));
    assert_eq!(refused.granted, 0, "{refused:?}");
    assert!(sublease.limiter.ready(at(2_990)).is_err());
    assert_eq!(sublease.limiter.ready(at(3_200)), Ok(3), "and three are saved up again");
}

#[test]
fn who_is_degraded_has_the_least_by_its_own_lease_and_nothing_without() {
    let ((domains, _), lease) = (domains(29), Limiter::new(Duration::from_secs(1)));
    let options = DomainOptions { degraded: Degraded::GrantLeast, ..DomainOptions::default() };
    let degraded = Domains::new(options).with_lender(domains.subleases().lender.clone().unwrap());
    degraded.follow(rules(Scope::Strict, 29));
    assert_eq!(degraded.request(&lease, "a", 3, 2, at(1_000)).bound, Some(Bound::Asking));
    let sublease = asked(&degraded);
    sublease.allow(at(1_000), parts(&sublease, 3));
    let least = degraded.request(&lease, "a", 3, 2, at(2_000));
    assert_eq!((least.granted, least.ground), (2, Ground::Degraded));
    assert_eq!(degraded.request(&lease, "a", 3, 2, at(2_000)).granted, 0, "one is left");
}

#[test]
fn together_with_other_things_the_lease_of_a_domain_is_one_of_those_that_have_to_have_enough() {
    let ((domains, _), [lease, other]) = (domains(29), [1_000, 2].map(lease));
    let ask = |min, millis| {
        let request = Combination::between(min, 5).domain(&domains, &lease, "a", Price::Each(1));
        request.rate(&other, Price::Each(1)).try_acquire(|| at(millis))
    };
    let bound = |answer: &TogetherAnswer| match answer {
        TogetherAnswer::Domain(decision) => (decision.granted, decision.bound),
        other => panic!("{other:?}"),
    };
    let refusal = |denied: TogetherDenied| denied.refusal().unwrap().clone();
    let first = refusal(ask(1, 1_000).unwrap_err());
    assert_eq!((bound(&first.answers[0]), first.retry_at), ((0, Some(Bound::Asking)), Some(at(1_010))));
    let sublease = asked(&domains);
    sublease.allow(at(1_000), parts(&sublease, 3));
    let refused = refusal(ask(3, 2_000).unwrap_err());
    assert_eq!(refused.answers[0], TogetherAnswer::Agreed, "three are there of its lease, two of the other");
    let permit = ask(1, 2_000).unwrap();
    assert_eq!((permit.copies(), permit.bound_by(), bound(&permit.answers()[0])), (2, Some(1), (2, None)));
    other.allow(at(2_000), Allowance::forever(Amount::from_units(1_000)));
    let permit = ask(1, 2_010).unwrap();
    assert_eq!((permit.copies(), bound(&permit.answers()[0])), (1, (1, Some(Bound::Sublease))));
    let spent = refusal(ask(1, 2_010).unwrap_err());
    assert_eq!(
        (bound(&spent.answers[0]), &spent.answers[1]),
        ((0, Some(Bound::Sublease)), &TogetherAnswer::Agreed)
    );
    assert_eq!([&sublease.limiter, &lease, &other].map(|limiter| limiter.usage().granted), [3, 3, 3]);
    domains.settle(&lease, "a", 1, 3, at(2_010));
    assert_eq!(sublease.limiter.usage().granted, 5, "what cost more is taken of its lease as well");
}

#[test]
fn what_is_not_bound_by_policies_needs_no_lease_of_its_own() {
    let ((domains, _), lease) = (domains(29), lease(1_000));
    assert_eq!(domains.request(&lease, "probe", 9, 9, at(1_000)).ground, Ground::Ignored);
    assert_eq!(domains.request(&lease, "closed", 9, 1, at(1_000)).bound, Some(Bound::Tiers));
    assert!(domains.subleases().is_empty());
    domains.set_kill_switch(true);
    assert_eq!(domains.request(&lease, "a", 9, 9, at(1_000)).granted, 9);
    assert!(domains.subleases().is_empty());
}

#[test]
fn leases_are_given_back_when_policies_are_others_and_when_nobody_asks() {
    let ((domains, notifier), lease) = (domains(29), lease(1_000));
    for domain in ["a", "vip", "b"] {
        domains.request(&lease, domain, 1, 1, at(1_000));
    }
    assert_eq!(news(&domains).len(), 3);
    // What is the same for a domain stays.
    domains.follow(rules(Scope::Strict, 49));
    let left: Vec<_> = news(&domains).into_iter().map(|(resource, _)| resource).collect();
    assert_eq!((left, domains.subleases().len()), (vec!["db|d:a".to_owned(), "db|d:b".to_owned()], 1));
    domains.request(&lease, "a", 1, 1, at(5_000));
    assert_eq!(asked(&domains).share().parts(), 5);
    domains.subleases().retire(at(10_999));
    assert_eq!(domains.subleases().len(), 2);
    domains.subleases().retire(at(11_000));
    assert_eq!((news(&domains)[0].0.as_str(), domains.subleases().len()), ("db|d:vip", 1));
    domains.follow(rules(Scope::Client, 49));
    assert_eq!((news(&domains).len(), domains.subleases().len()), (1, 0));
    assert_eq!(domains.request(&lease, "a", 1, 1, at(12_000)).granted, 1);
    assert_eq!(notifier.0.load(Ordering::Relaxed), 4);
}

#[test]
fn no_lease_is_asked_for_where_there_can_be_none() {
    let ((domains, notifier), lease) = (domains(29), lease(10_000));
    let bound = |domain: &str| domains.request(&lease, domain, 1, 1, at(1_000)).bound;
    for domain in ["a\n", "a|safe", &"x".repeat(300)] {
        assert_eq!(bound(domain), Some(Bound::Unleasable), "{domain:?}");
    }
    assert_eq!(notifier.0.load(Ordering::Relaxed), 0);
    assert_eq!(bound("held by the program"), Some(Bound::Asking));
    asked(&domains).bar();
    assert_eq!(bound("held by the program"), Some(Bound::Unleasable));
    for number in 1..MOST_LEASES {
        assert_eq!(bound(&number.to_string()), Some(Bound::Asking));
    }
    assert_eq!(bound("one more"), Some(Bound::Crowded));
    assert_eq!(domains.subleases().len(), MOST_LEASES);
    let alone = Domains::new(DomainOptions::default());
    alone.follow(rules(Scope::Strict, 29));
    assert_eq!(alone.request(&lease, "a", 1, 1, at(1_000)).bound, Some(Bound::Unleasable));
    let few = Domains::new(DomainOptions { most: 0, ..DomainOptions::default() });
    few.follow(rules(Scope::Strict, 29));
    assert_eq!(few.request(&lease, "a", 1, 1, at(1_000)).bound, Some(Bound::Crowded), "it is not remembered");
    let together = Combination::once().domain(&few, &lease, "a", Price::Each(1)).try_acquire(|| at(1_000));
    let refusal = together.unwrap_err().refusal().unwrap().clone();
    let crowded = |answer: &TogetherAnswer| matches!(answer, TogetherAnswer::Domain(decision) if decision.bound == Some(Bound::Crowded));
    assert!(crowded(&refusal.answers[0]), "{refusal}");
    assert_eq!(lease.usage().granted, 0);
}

#[test]
fn a_lease_is_asked_for_as_long_as_something_is_wanted() {
    let ((domains, _), lease) = (domains(29), lease(1_000));
    domains.request(&lease, "a", 1, 1, at(1_000));
    let sublease = asked(&domains);
    let mut demand = sublease.estimator();
    let mut wants = |seconds: u64| {
        sublease.observe(at(seconds * 1_000), &mut demand).as_f64() / sublease.share().part().as_f64()
    };
    assert_eq!((wants(1), wants(2)), (1.0, 1.0));
    sublease.allow(at(2_000), parts(&sublease, 1));
    for tick in 2_000..3_000 {
        domains.request(&lease, "a", 1, 1, at(tick));
    }
    assert!((wants(3) - 3.0).abs() < 1e-9, "a thousand were wanted, and there are three parts");
    assert_eq!((wants(4), wants(5), wants(6)), (3.0, 0.0, 0.0));
}

/// An event that may happen to those who share the lease of a domain.
#[derive(Clone, Debug)]
enum Event {
    /// This number of nanoseconds goes by.
    Pass(u64),
    /// One asks for so many hits.
    Ask(usize, u32),
    /// This number of parts goes from one to another, who has them when the first one has not.
    Move(usize, usize, u64),
    /// The lease of one has ended, and another has what it had.
    End(usize, usize),
}

fn event() -> impl Strategy<Value = Event> {
    let who = 0..CLIENTS;
    prop_oneof![
        3 => prop_oneof![1u64..10_000_000, 1u64..2_000_000_000].prop_map(Event::Pass),
        5 => (who.clone(), 1u32..12).prop_map(|(who, hits)| Event::Ask(who, hits)),
        2 => (who.clone(), who.clone(), 1u64..6).prop_map(|(from, to, parts)| Event::Move(from, to, parts)),
        1 => (who.clone(), who).prop_map(|(from, to)| Event::End(from, to)),
    ]
}

const CLIENTS: usize = 6;

/// Clients that share the lease of a domain, as a server divides it.
struct Town {
    contract: Contract,
    share: Share,
    limiters: Vec<Limiter>,
    parts: [u64; CLIENTS],
    now: u64,
    /// When each hit was made.
    hits: Vec<u64>,
}

impl Town {
    fn new(limits: &[(u32, u64)]) -> Town {
        let contract = contract(limits);
        let share = Share::of(&contract).unwrap().unwrap();
        let limiters = (0..CLIENTS).map(|_| Limiter::in_parts(share.part())).collect();
        let mut town = Town { contract, share, limiters, parts: [0; CLIENTS], now: 0, hits: Vec::new() };
        town.give(0, share.parts());
        town
    }

    fn give(&mut self, who: usize, parts: u64) {
        self.parts[who] = parts;
        let capacity = Amount::from_micros(self.share.part().as_micros() * parts);
        self.limiters[who].allow(Time::from_nanos(self.now), Allowance::forever(capacity));
    }

    fn happen(&mut self, event: &Event) {
        match *event {
            Event::Pass(nanos) => self.now += nanos,
            Event::Ask(who, hits) => {
                let now = Time::from_nanos(self.now);
                let Ok(ready) = self.limiters[who].ready(now) else { return };
                let granted = ready.min(hits);
                self.limiters[who].try_acquire(granted, || now).unwrap();
                self.hits.extend((0..granted).map(|_| self.now));
            }
            Event::Move(from, to, parts) if from != to => {
                let moved = parts.min(self.parts[from]);
                self.give(from, self.parts[from] - moved);
                self.give(to, self.parts[to] + moved);
            }
            Event::Move(..) => {}
            Event::End(from, to) if from != to => {
                let parts = self.parts[from];
                self.parts[from] = 0;
                self.limiters[from].allow(Time::from_nanos(self.now), Allowance::NOTHING);
                self.give(to, self.parts[to] + parts);
            }
            Event::End(..) => {}
        }
    }

    /// No window of any limit has more hits than that.
    fn check(&self) {
        for policy in self.contract.policies() {
            let tier = &policy.tiers()[0];
            let (limit, window) = (tier.limit as usize, tier.window.as_nanos() as u64);
            for (first, beyond) in self.hits.iter().zip(self.hits.iter().skip(limit)) {
                assert!(beyond - first > window, "{} hits from {first} to {beyond}", limit + 1);
            }
        }
    }
}

#[test]
fn one_who_takes_all_that_comes_has_nearly_all_of_the_limit_and_never_more() {
    for (limit, window) in [(1, 300), (5, 1_000), (19, 1_000), (100, 10_000), (997, 1_000)] {
        let mut town = Town::new(&[(limit, window)]);
        for _ in 0..window * 10 {
            town.happen(&Event::Pass(1_000_000));
            town.happen(&Event::Ask(0, u32::MAX));
        }
        town.check();
        let (made, most) = (town.hits.len(), limit as usize * 10);
        assert!(made >= most * 89 / 100 && made <= most, "{made} of {most}");
    }
}

proptest! {
    /// However leases move, whoever asks: never more than the limits, counted over all.
    #[test]
    fn all_clients_together_never_pass_a_limit(
        limits in prop::collection::vec((1u32..60, 1u64..4_000), 1..3),
        events in prop::collection::vec(event(), 1..300),
    ) {
        let mut town = Town::new(&limits);
        for event in &events {
            town.happen(event);
        }
        town.check();
    }

    /// Everybody saves up all that can be saved, and spends it at once; then the lease of all moves to one, who does the same.
    #[test]
    fn what_was_saved_by_many_is_not_made_up_for_by_one(limit in 1u32..200, window in 1u64..3_000, pause in 0u64..4_000) {
        let mut town = Town::new(&[(limit, window)]);
        for part in 0..town.share.parts() {
            town.happen(&Event::Move(0, 1 + part as usize % (CLIENTS - 1), 1));
        }
        town.happen(&Event::Pass(town.share.first_hit().as_nanos() as u64 * 2));
        (0..CLIENTS).for_each(|who| town.happen(&Event::Ask(who, u32::MAX)));
        (1..CLIENTS).for_each(|who| town.happen(&Event::Move(who, 0, u64::MAX)));
        for _ in 0..100 {
            town.happen(&Event::Pass(pause * 100_000));
            town.happen(&Event::Ask(0, u32::MAX));
        }
        town.check();
    }
}
