//! Walks that go on from turn to turn, and reach everybody.

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::internals::domain::Policies;
use lessor_proto::message::{DomainEntry, DomainHits, DomainReport, Hello, HolderKind};
use lessor_proto::{ClientId, Incarnation, ResourceId};

use super::*;
use crate::mutation::Rules;

const USERS: u64 = 100;
/// A number of users that are not added up in one go.
const CROWD: u64 = 600;

fn domains(now: Time) -> SharedDomains {
    SharedDomains::new(now, ResourceId::new("db", 16).unwrap(), policies(400), Rules::default())
}

fn policies(limit: u32) -> Arc<Policies> {
    let (window, active) = (Duration::from_secs(10), Duration::from_secs(60));
    let tier =
        Tier { limit, window, active, cooldown: Duration::ZERO, is_skippable: false, kind: Window::Exact };
    let contract = Contract::from(TierPolicy::new(vec![tier], None, None).unwrap());
    let rules = lessor_client::internals::domain::Rules { default: Some(contract), ..Default::default() };
    Arc::new(Policies::new(rules).unwrap())
}

/// One user says what is new.
fn hit(domains: &mut SharedDomains, now: Time, user: u64, id: u64, hits: u32) {
    let entry = DomainEntry { policy: 0, tier: 1, at: now, hits, is_entered: id == 1 };
    say(domains, user, id, entry, id == 1);
}

/// One user says all that it did.
fn hit_anew(domains: &mut SharedDomains, now: Time, user: u64, id: u64, hits: u32) {
    let entry = DomainEntry { policy: 0, tier: 1, at: now, hits, is_entered: id == 1 };
    say(domains, user, id, entry, true);
}

/// One user says what it did; all of it, or what is new.
fn say(domains: &mut SharedDomains, user: u64, id: u64, entry: DomainEntry, all: bool) {
    let holder = ClientId::new(format!("web-{user}"), 16).unwrap();
    let hello = Hello::new(HolderKind::Client, holder, Incarnation(1));
    let now = entry.at;
    let hits = DomainHits { domain: "tenant".into(), all, others: 0, entries: vec![entry] };
    let (resource, version) = (domains.resource.clone(), domains.policies.version());
    let report = DomainReport { resource, version, id, ask: false, below: None, domains: vec![hits] };
    domains.hear(now, Peer::from(user), &hello, report);
}

/// Those that are told of hits after one turn.
fn turn(domains: &mut SharedDomains, now: Time) -> u64 {
    let mut left = SLICE;
    domains.advance(now, &mut left);
    let mut told = 0;
    while let Some(peer) = domains.next_due(now) {
        let news = domains.news(now, peer);
        told += u64::from(news.is_some_and(|news| !news.domains.is_empty()));
    }
    told
}

#[test]
fn the_end_of_a_round_reaches_everybody_and_in_one_turn_no_more_than_a_slice() {
    let mut now = Time::ZERO + Duration::from_secs(1);
    let mut domains = domains(now);
    (0..USERS).for_each(|user| hit(&mut domains, now, user, 1, 3));
    for _ in 0..USERS {
        turn(&mut domains, now);
    }
    assert!(domains.hot.contains("tenant"), "300 of 400 are used up");
    now += PACE;
    hit(&mut domains, now, 0, 2, 1);
    now += PACE;
    let turns: Vec<u64> = (0..USERS).map(|_| turn(&mut domains, now)).collect();
    assert!(turns.iter().all(|&told| told <= SLICE as u64), "{turns:?}");
    assert!(turns.iter().sum::<u64>() >= USERS - 1, "{turns:?}");
}

/// Hits that count.
fn counted(domains: &SharedDomains, now: Time) -> u32 {
    domains.status(now, 1).busiest[0].hits_in_tier
}

/// A crowd of which each has made a hit, and knows of all of them.
fn crowd() -> (Time, SharedDomains) {
    let mut now = Time::ZERO + Duration::from_secs(1);
    let mut domains = domains(now);
    (0..CROWD).for_each(|user| hit(&mut domains, now, user, 1, 1));
    for _ in 0..10 {
        now += PACE;
        (0..CROWD).for_each(|_| _ = turn(&mut domains, now));
    }
    assert_eq!((domains.hot.len(), counted(&domains, now)), (1, 600));
    (now, domains)
}

#[test]
fn what_is_said_anew_is_added_up_in_slices_and_all_are_told_everything_then() {
    let (mut now, mut domains) = crowd();
    hit_anew(&mut domains, now, 5, 2, 41);
    assert_eq!(counted(&domains, now), 600, "it is not added up in the turn of a report");
    assert_eq!(turn(&mut domains, now), 1, "who says everything is told what is known");
    now += PACE;
    let slices = CROWD / SLICE as u64;
    (0..slices).for_each(|_| assert_eq!(turn(&mut domains, now), 0, "everybody is added up first"));
    // Hits that are said meanwhile count, of those who have been added up and of the others.
    hit(&mut domains, now, 6, 2, 2);
    hit(&mut domains, now, CROWD - 1, 2, 3);
    let told: u64 = (0..CROWD).map(|_| turn(&mut domains, now)).sum();
    assert_eq!(counted(&domains, now), 645);
    assert!(told >= CROWD - 1, "{told} are told");
    let state = &domains.domains["tenant"];
    assert!(!state.is_left_to_walk());
}

#[test]
fn what_is_said_anew_while_all_are_added_up_is_added_up_after_that() {
    let (mut now, mut domains) = crowd();
    hit_anew(&mut domains, now, 5, 2, 41);
    now += PACE;
    (0..10).for_each(|_| _ = turn(&mut domains, now));
    hit_anew(&mut domains, now, 6, 2, 11);
    for _ in 0..10 {
        (0..CROWD).for_each(|_| _ = turn(&mut domains, now));
        now += PACE;
    }
    assert_eq!(counted(&domains, now), 650);
    assert!(!domains.domains["tenant"].is_left_to_walk());
}

#[test]
fn other_policies_are_followed_in_slices_and_who_knows_everything_is_told_nothing() {
    let (mut now, mut domains) = crowd();
    domains.follow(now, policies(800));
    let mut told = 0;
    for _ in 0..4 {
        told += (0..CROWD).map(|_| turn(&mut domains, now)).sum::<u64>();
        now += PACE;
    }
    assert_eq!((told, counted(&domains, now)), (0, 600));
    hit(&mut domains, now, 5, 2, 2);
    now += PACE;
    let told: u64 = (0..CROWD).map(|_| turn(&mut domains, now)).sum();
    assert_eq!((counted(&domains, now), told >= CROWD - 1), (602, true));
}
