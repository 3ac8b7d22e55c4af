//! Tests of the messages about domains: which are refused, and that any other survives the wire.

use std::sync::Arc;

use super::*;
use crate::Time;
use crate::message::{
    Census, DomainEntry, DomainHits, DomainNews, DomainReport, LONGEST_DOMAIN, MOST_DOMAINS, MOST_ENTRIES,
};

// === what is refused ===

fn entry() -> wire::DomainEntry {
    wire::DomainEntry { tier: Some(1), at_nanos: Some(7), ..wire::DomainEntry::default() }
}

fn hits() -> wire::DomainHits {
    wire::DomainHits { domain: Some("tenant".into()), entry: vec![entry()], ..wire::DomainHits::default() }
}

fn said(domain: Vec<wire::DomainHits>) -> wire::DomainsRequest {
    let resource_id = Some("db".into());
    wire::DomainsRequest { resource_id, version: Some(3), id: Some(1), domain, ..Default::default() }
}

#[track_caller]
fn check_said(said: wire::DomainsRequest, wanted: &str) {
    check(Message::Domains(said), Some(HolderKind::Client), wanted);
}

#[test]
fn a_report_of_domains_says_of_what_and_which_it_is() {
    check_said(said(vec![hits()]), "accepted");
    check_said(said(Vec::new()), "accepted");
    check_said(
        wire::DomainsRequest { resource_id: None, ..said(Vec::new()) },
        "domains.resource_id: is missing; wanted 1 to 256 bytes of text without control characters",
    );
    check_said(
        wire::DomainsRequest { version: None, ..said(Vec::new()) },
        "domains.version: is missing; wanted the version of the policies of domains that the holder has",
    );
    check_said(
        wire::DomainsRequest { id: None, ..said(Vec::new()) },
        "domains.id: is missing; wanted a number greater than that of any before on this stream",
    );
    check(
        Message::Domains(said(Vec::new())),
        None,
        "message: is of domains; wanted a hello, as the first message",
    );
}

#[test]
fn a_faulty_domain_is_refused_by_its_place() {
    let check_second = |domain, wanted: &str| check_said(said(vec![hits(), domain]), wanted);
    let of = |bytes| wire::DomainHits { domain: Some("a".repeat(bytes)), ..hits() };
    check_second(of(LONGEST_DOMAIN), "accepted");
    check_second(
        of(LONGEST_DOMAIN + 1),
        "domains.domain[1].domain: has 257 bytes; wanted at most 256 bytes of text",
    );
    check_second(
        wire::DomainHits { domain: None, ..hits() },
        "domains.domain[1].domain: is missing; wanted at most 256 bytes of text",
    );
    let check_entry = |entry, wanted: &str| {
        check_second(wire::DomainHits { entry: vec![self::entry(), entry], ..hits() }, wanted);
    };
    check_entry(
        wire::DomainEntry { tier: None, ..entry() },
        "domains.domain[1].entry[1].tier: is missing; wanted a number",
    );
    check_entry(
        wire::DomainEntry { at_nanos: None, ..entry() },
        "domains.domain[1].entry[1].at_nanos: is missing; wanted a number",
    );
}

#[test]
fn more_than_a_message_may_hold_is_refused() {
    check_said(said(vec![hits(); MOST_DOMAINS]), "accepted");
    check_said(
        said(vec![hits(); MOST_DOMAINS + 1]),
        "domains in one message: 1001 is over the limit of 1000",
    );
    let of = |entries| wire::DomainHits { entry: vec![entry(); entries], ..hits() };
    let half = MOST_ENTRIES / 2;
    check_said(said(vec![of(half), of(half)]), "accepted");
    check_said(
        said(vec![of(half), of(half + 1)]),
        "entries of domains in one message: 16385 is over the limit of 16384",
    );
}

#[test]
fn news_of_domains_that_cannot_be_meant_are_malformed() {
    let check = |news: wire::DomainNews, wanted: &str| {
        let message = wire::session_down::Message::Domains(news);
        let read = Down::from_wire(wire::SessionDown { message: Some(message) }, NOON);
        let found = read.map_or_else(|malformed| malformed.to_string(), |_| "accepted".to_owned());
        assert_eq!(found, wanted);
    };
    let news = || wire::DomainNews { resource_id: "db".into(), ..wire::DomainNews::default() };
    check(news(), "accepted");
    check(
        wire::DomainNews { resource_id: String::new(), ..news() },
        "malformed answer: domains.resource_id: is empty",
    );
    check(
        wire::DomainNews { hot: vec!["a".into(); MOST_DOMAINS + 1], ..news() },
        "malformed answer: domains.hot: has 1001 names, more than 1000",
    );
    check(
        wire::DomainNews { calm: vec!["a".repeat(LONGEST_DOMAIN + 1)], ..news() },
        "malformed answer: domains.calm: has a name of 257 bytes, more than 256",
    );
    let bare = wire::DomainHits { entry: vec![wire::DomainEntry { tier: None, ..entry() }], ..hits() };
    check(
        wire::DomainNews { domain: vec![bare], ..news() },
        "malformed answer: domains.domain: domain[0].entry[0].tier: is missing; wanted a number",
    );
}

// === what survives ===

fn domain_name() -> impl Strategy<Value = Arc<str>> {
    prop_oneof![name().prop_map(Arc::from), Just(Arc::from("")), Just(Arc::from("x".repeat(LONGEST_DOMAIN)))]
}

fn any_entry() -> impl Strategy<Value = DomainEntry> {
    (any::<u32>(), any::<u32>(), any::<u64>(), any::<u32>(), any::<bool>()).prop_map(
        |(policy, tier, at, hits, is_entered)| DomainEntry {
            policy,
            tier,
            at: Time::from_nanos(at),
            hits,
            is_entered,
        },
    )
}

fn any_hits() -> impl Strategy<Value = Vec<DomainHits>> {
    let hits = (domain_name(), any::<bool>(), any::<u32>(), vec(any_entry(), 0..5))
        .prop_map(|(domain, all, others, entries)| DomainHits { domain, all, others, entries });
    vec(hits, 0..4)
}

pub(super) fn any_report() -> impl Strategy<Value = Up> {
    let census = any::<Option<(u32, u32)>>();
    (name(), any::<u32>(), any::<u64>(), any::<bool>(), census, any_hits()).prop_map(
        |(resource, version, id, ask, census, domains)| {
            let below = census.map(|(clients, nodes)| Census { clients, nodes });
            let resource = ResourceId::new(resource.as_str(), 256).unwrap();
            Up::Domains(Box::new(DomainReport { resource, version, id, ask, below, domains }))
        },
    )
}

pub(super) fn any_news() -> impl Strategy<Value = Down> {
    let heard = (any::<u64>(), any::<u64>(), any::<u64>());
    let names = || vec(domain_name(), 0..4);
    (name(), any::<u32>(), heard, any::<(u32, u32)>(), any::<bool>(), names(), names(), any_hits()).prop_map(
        |(resource, version, (now, heard, heard_at), (members, nodes), begins, hot, calm, domains)| {
            let (now, heard_at) = (Time::from_nanos(now), Time::from_nanos(heard_at));
            let resource = ResourceId::new(resource.as_str(), 256).unwrap();
            Down::Domains(Box::new(DomainNews {
                resource,
                version,
                now,
                heard,
                heard_at,
                members,
                nodes,
                begins,
                hot,
                calm,
                domains,
            }))
        },
    )
}
