//! Domains that others use too.

use std::cell::RefCell;

use lessor_proto::ResourceId;
use lessor_proto::message::{DomainEntry, DomainHits, DomainNews};

use super::*;
use crate::domain::{Scope, UNREACHABLE_AFTER};
use crate::waiting::Clock;
use crate::waiting::fake::{FakeClock, Tasks};

/// Five hits in ten seconds, by all clients together.
fn shared() -> Domains {
    let domains = Domains::new(DomainOptions::default());
    let default = Some(Contract::from(policy(5, 10)));
    let rules = Rules { scope: Scope::Shared, default, ..Rules::default() };
    domains.follow(Some(Arc::new(Policies::new(rules).unwrap())));
    domains.attend(Some(1));
    domains
}

/// Reports to the server, which says that another client has made so many hits of `a`, and none but those.
fn update(domains: &Domains, now: Time, hits: u32) {
    let resource = ResourceId::new("calls", 256).unwrap();
    let report = domains.next_message(now, &resource).expect("there is something to tell or to ask");
    let entry = DomainEntry { policy: 0, tier: 1, at: now, hits, is_entered: true };
    let entries = if hits > 0 { vec![entry] } else { Vec::new() };
    let news = DomainNews {
        resource,
        version: report.version,
        now,
        heard: report.id,
        heard_at: now,
        members: 2,
        nodes: 0,
        begins: report.id == 1,
        hot: Vec::new(),
        calm: Vec::new(),
        domains: vec![DomainHits { domain: "a".into(), all: true, others: 1, entries }],
    };
    domains.on_update(now, &news);
}

#[test]
fn before_a_refusal_by_what_others_did_the_server_is_asked_and_nothing_is_held_meanwhile() {
    let (domains, lease, workers, clock) = (shared(), lease(100), gauge(1), FakeClock::default());
    let calls = RefCell::new(Vec::new());
    let request = |hits| {
        Combination::once().gauge(&workers, Price::Once(1)).domain(&domains, &lease, "a", Price::Once(hits))
    };
    let (two, one) = (request(2), request(1));
    let mut tasks = Tasks::new(&clock);
    tasks.pass(Duration::from_secs(1));
    update(&domains, clock.now(), 3);
    drop(two.try_acquire(|| clock.now()).unwrap());
    assert_eq!(one.earlier().collect::<Vec<_>>(), [1], "others are told of what was made");
    tasks.spawn(one.acquire_by(&clock, Duration::from_secs(2), |part| calls.borrow_mut().push(part)));
    assert_eq!((tasks.finished().len(), &*calls.borrow(), workers.in_use()), (0, &vec![1], 0));
    update(&domains, clock.now(), 0);
    tasks.run();
    let (_, permit) = tasks.finished().remove(0);
    let permit = permit.unwrap();
    let TogetherAnswer::Domain(decision) = permit.answers()[1] else { panic!("{permit:?}") };
    assert_eq!((decision.granted, decision.others, workers.in_use()), (1, 1, 1));
}

#[test]
fn a_server_that_does_not_answer_is_not_waited_for_and_out_of_hearing_the_least_is_granted() {
    let (domains, lease, disk, clock) = (shared(), lease(100), lease(3), FakeClock::default());
    let request =
        Combination::between(2, 9).domain(&domains, &lease, "a", Price::Each(1)).rate(&disk, Price::Each(1));
    let mut tasks = Tasks::new(&clock);
    tasks.pass(Duration::from_secs(1));
    update(&domains, clock.now(), 4);
    let bound = |refusal: &Refusal| match &refusal.answers[0] {
        TogetherAnswer::Domain(decision) => (decision.granted, decision.bound, decision.others),
        other => panic!("{other:?}"),
    };
    let refused = request.try_acquire(|| clock.now()).unwrap_err();
    assert_eq!(bound(refused.refusal().unwrap()), (0, Some(Bound::Tiers), 1));
    tasks.spawn(request.acquire_by(&clock, Duration::from_secs(60), |_| ()));
    tasks.pass(UNREACHABLE_AFTER - Duration::from_nanos(1));
    assert_eq!(tasks.finished().len(), 0);
    tasks.pass(Duration::from_millis(2));
    assert_eq!(tasks.finished().len(), 0, "it waits for the moment that policies name");
    let permit = request.try_acquire(|| clock.now()).unwrap();
    let TogetherAnswer::Domain(decision) = permit.answers()[0] else { panic!("{permit:?}") };
    assert_eq!((permit.copies(), permit.bound_by()), (2, Some(0)));
    assert_eq!((decision.ground, decision.bound), (Ground::Unheard, Some(Bound::Tiers)));
    assert_eq!((lease.usage().granted, disk.usage().granted, domains.counts().unheard), (2, 2, 1));
    disk.allow(clock.now(), Allowance::NOTHING);
    let refused = request.try_acquire(|| clock.now()).unwrap_err();
    assert_eq!(refused.refusal().unwrap().answers[0], TogetherAnswer::Agreed);
    assert_eq!(
        (lease.usage().granted, domains.counts().unheard),
        (2, 1),
        "nor that, if another part refuses"
    );
}

/// The first hit of a domain that is hot elsewhere is sent at once, as others have to know of it.
#[test]
fn the_first_hit_of_a_hot_domain_is_sent_at_once() {
    let (domains, lease) = (Domains::new(DomainOptions::default()), lease(100));
    let default = Some(Contract::from(policy(1_000, 10)));
    let rules = Rules { scope: Scope::Shared, default, ..Rules::default() };
    domains.follow(Some(Arc::new(Policies::new(rules).unwrap())));
    domains.attend(Some(1));
    let resource = ResourceId::new("calls", 256).unwrap();
    let question = domains.next_message(at(1.0), &resource).expect("it asks first");
    domains.on_update(
        at(1.0),
        &DomainNews {
            resource: resource.clone(),
            version: question.version,
            now: at(1.0),
            heard: question.id,
            heard_at: at(1.0),
            members: 2,
            nodes: 0,
            begins: true,
            hot: vec!["a".into()],
            calm: Vec::new(),
            domains: Vec::new(),
        },
    );
    drop(Combination::once().domain(&domains, &lease, "a", Price::Once(1)).try_acquire(|| at(2.0)).unwrap());
    let sent = domains.next_message(at(2.0), &resource).expect("it is hot");
    assert_eq!(sent.domains.iter().map(|hits| &*hits.domain).collect::<Vec<_>>(), ["a"]);
}
