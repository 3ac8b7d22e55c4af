//! Scope `shared`: what clients say of their domains, and what the others are told of it.

use lessor_proto::ReportId;
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::message::{DomainNews, Up};
use lessor_server::resource::{DomainStatus, DomainTierStatus};

use super::holders::resource;
use super::square::{PACE, Square, of_tiers, policies};

fn row(all: bool, others: u32, hits: u32) -> (String, bool, u32, u32) {
    ("tenant".to_owned(), all, others, hits)
}

#[test]
fn a_first_report_is_answered_with_its_number_and_how_many_there_are() {
    let mut square = Square::of(10, &[]);
    square.later(Duration::from_secs(3));
    square.join("a");
    let first = DomainNews {
        resource: resource(),
        version: square.version,
        now: square.now,
        heard: 1,
        heard_at: square.now,
        members: 1,
        nodes: 0,
        begins: true,
        hot: Vec::new(),
        calm: Vec::new(),
        domains: Vec::new(),
    };
    assert_eq!(square.told("a"), std::slice::from_ref(&first));
    square.join("b");
    assert_eq!(square.told("b"), [DomainNews { members: 2, ..first.clone() }]);
    let heard_at = square.now;
    square.report_domains("a", false, Vec::new());
    square.later(Duration::from_secs(1));
    assert_eq!(square.told("a"), [], "it did not ask");
    square.report_domains("a", true, Vec::new());
    let third =
        DomainNews { heard: 3, members: 2, begins: false, now: square.now, heard_at: square.now, ..first };
    assert!(third.heard_at > heard_at);
    assert_eq!(square.told("a"), [third]);
}

#[test]
fn a_domain_at_half_of_its_limit_becomes_hot_for_all() {
    let mut square = Square::of(10, &["a", "b", "c"]);
    square.forget_what_was_told();
    square.hit_in_all("a", "tenant", 2);
    square.hit_in_all("b", "tenant", 2);
    square.later(Duration::from_secs(1));
    assert_eq!((square.told.len(), square.status(10).hot), (0, 0), "four of ten");
    square.hit("b", "tenant", 1);
    let hot: Vec<_> = square.told.iter().map(|(name, news)| (*name, news.hot.len())).collect();
    assert_eq!(hot, [("a", 1), ("b", 1)], "who serves it is told at once");
    assert_eq!((square.told_of("a"), square.told_of("b")), (vec![row(true, 1, 3)], vec![row(true, 1, 2)]));
    square.later(PACE);
    let [news] = &square.told("c")[..] else { panic!("one message") };
    assert_eq!((&news.hot[..], &news.domains[..]), (&[Arc::from("tenant")][..], &[][..]));
}

#[test]
fn what_one_did_is_told_to_those_who_serve_it_and_to_nobody_else() {
    let mut square = Square::heated();
    square.hit("a", "tenant", 1);
    square.later(Duration::from_millis(20));
    square.hit("a", "tenant", 1);
    square.later(Duration::from_secs(1));
    assert_eq!(square.told_of("b"), [row(false, 1, 2)]);
    assert_eq!((square.told_of("a"), square.told_of("c")), (vec![], vec![]));
    assert_eq!(square.counted(), 9);
}

#[test]
fn who_serves_a_hot_domain_hears_something_all_the_time() {
    let mut square = Square::heated();
    let mut last = square.now;
    square.later(Duration::from_secs(3));
    let told = square.told("a");
    for news in &told {
        assert!(news.now <= last + Duration::from_millis(300), "{} after {last}", news.now);
        last = news.now;
    }
    assert!(told.len() >= 10, "{told:?}");
    assert_eq!(square.told("c"), []);
}

#[test]
fn what_is_all_takes_the_place_of_what_was_told_before() {
    let mut square = Square::heated();
    assert_eq!(square.counted(), 7);
    square.hit_in_all("a", "tenant", 4);
    assert_eq!(square.counted(), 7, "nothing counts twice");
    square.hit_in_all("a", "tenant", 2);
    assert_eq!(square.counted(), 5);
    assert_eq!(square.told_of("b"), [row(true, 1, 4), row(true, 1, 2)], "at once: tiers were entered");
    assert_eq!(square.told_of("a").last(), Some(&row(true, 1, 3)));
}

#[test]
fn who_begins_again_on_the_same_stream_is_heard_by_the_new_numbers() {
    let mut square = Square::heated();
    for _ in 0..5 {
        square.report_domains("a", true, Vec::new());
    }
    square.forget_what_was_told();
    square.begin_again("a");
    let [news] = &square.told("a")[..] else { panic!("one message") };
    assert_eq!((news.heard, news.heard_at, news.begins, news.hot.len()), (1, square.now, true, 1));
    square.hit_in_all("a", "tenant", 4);
    assert_eq!((square.counted(), square.told_of("a")), (7, vec![row(true, 1, 3)]));
    assert_eq!(square.status(1).clients, 3);
}

/// Clients come and go while a domain stays hot: who has gone is forgotten with its hits.
#[test]
fn who_has_gone_and_used_a_hot_domain_is_forgotten_while_it_stays_hot() {
    let mut square = Square::heated();
    assert_eq!(square.status(1).busiest[0].clients, 2);
    square.leave("a");
    for _ in 0..80 {
        square.hit_in_all("b", "tenant", 9);
        square.later(Duration::from_secs(1));
    }
    let status = square.status(1);
    assert_eq!((status.hot, status.busiest[0].clients), (1, 1));
}

#[test]
fn a_client_that_comes_back_is_not_counted_twice_and_told_everything() {
    let mut square = Square::heated();
    square.join("a");
    let [news] = &square.told("a")[..] else { panic!("one message") };
    assert!(news.begins && news.members == 4 && news.hot.len() == 1, "{news:?}");
    square.hit_in_all("a", "tenant", 5);
    assert_eq!((square.counted(), square.told_of("a")), (8, vec![row(true, 1, 3)]));
}

#[test]
fn who_joins_a_hot_domain_is_told_everything_at_once() {
    let mut square = Square::heated();
    square.hit_in_all("c", "tenant", 1);
    assert_eq!(square.told_of("c"), [row(true, 2, 7)]);
    square.later(PACE);
    assert_eq!((square.told_of("a"), square.told_of("b")), (vec![row(false, 2, 1)], vec![row(false, 2, 1)]));
}

#[test]
fn after_a_while_of_silence_a_domain_is_calm_and_then_forgotten() {
    let mut square = Square::heated();
    square.later(Duration::from_secs(9));
    assert_eq!((square.status(0).told, square.status(0).hot), (1, 1), "the hits count for ten seconds");
    square.forget_what_was_told();
    square.later(Duration::from_secs(3));
    assert_eq!((square.status(0).told, square.status(0).hot), (1, 0));
    for name in ["a", "b", "c"] {
        let calm: Vec<_> = square.told(name).into_iter().flat_map(|news| news.calm).collect();
        assert_eq!(calm, [Arc::from("tenant")], "{name}");
    }
    square.later(Duration::from_secs(60));
    assert_eq!((square.status(0).told, square.status(0).clients), (0, 3));
    square.forget_what_was_told();
    square.later(Duration::from_secs(3));
    assert_eq!(square.told, [], "there is nothing to be told");
}

#[test]
fn other_policies_keep_hits_and_reports_by_those_before_are_passed_over() {
    let mut square = Square::heated();
    let others = policies(20);
    square.configure(&others);
    assert_eq!((square.counted(), square.status(1).busiest[0].tier_limit), (7, 20));
    square.hit("a", "tenant", 2);
    assert_eq!(square.counted(), 7, "it counted by those before");
    square.later(PACE);
    assert_eq!(square.told_of("b"), []);
    square.version = others.version();
    square.hit("a", "tenant", 2);
    assert_eq!(square.counted(), 9);
}

#[test]
fn what_was_counted_by_policies_before_is_not_told_by_others() {
    let mut square = Square::heated();
    square.stuck.insert("b");
    square.later(Duration::from_secs(1));
    square.hit("a", "tenant", 1);
    square.forget_what_was_told();
    square.configure(&of_tiers(&[5, 40]));
    square.unstick("b");
    let told = square.told_of("b");
    assert!(!told.is_empty() && told.iter().all(|(_, all, ..)| *all), "all that counts by these: {told:?}");
}

#[test]
fn a_stream_that_takes_nothing_gets_one_message_when_it_does() {
    let mut square = Square::heated();
    square.stuck.insert("b");
    square.later(Duration::from_secs(1));
    square.forget_what_was_told();
    for _ in 0..3 {
        square.hit("a", "tenant", 1);
        square.later(Duration::from_secs(1));
    }
    assert_eq!(square.told("b"), []);
    square.unstick("b");
    let told = square.told("b");
    assert_eq!((told.len(), told[0].now, told[0].domains[0].entries.len()), (1, square.now, 3));
    square.hit("a", "tenant", 1);
    square.later(PACE);
    assert_eq!(square.told_of("b"), [row(false, 1, 1)]);
}

#[test]
fn who_releases_or_is_gone_is_told_nothing_and_what_it_did_counts() {
    let mut square = Square::heated();
    let c = square.leave("c");
    square.node.receive(square.now, c, Up::Release { id: ReportId(9), resources: vec![resource()] });
    assert_eq!(square.status(0).clients, 2);
    let b = square.leave("b");
    square.node.disconnect(square.now, b);
    square.drain();
    assert_eq!((square.status(0).clients, square.counted()), (1, 7));
    square.forget_what_was_told();
    square.hit("a", "tenant", 1);
    square.later(Duration::from_secs(1));
    assert_eq!((square.told("b"), square.told("c")), (vec![], vec![]));
    let told = square.told("a");
    assert!(!told.is_empty() && told.iter().all(|news| news.members == 1), "{told:?}");
}

#[test]
fn the_status_shows_those_with_the_least_left() {
    let mut square = Square::heated();
    square.hit_in_all("c", "busy", 9);
    square.hit_in_all("a", "cold", 1);
    let status = square.status(1);
    assert_eq!((status.clients, status.told, status.hot, status.passed_over), (3, 3, 2, 0));
    let busy = DomainStatus {
        domain: "busy".to_owned(),
        clients: 1,
        hits_in_second: 9,
        tier: 1,
        hits_in_tier: 9,
        tier_limit: 10,
        cooling_seconds: None,
        refused_by: None,
        refused_seconds: None,
        tiers: vec![DomainTierStatus {
            policy: 1,
            tier: 1,
            limit: 10,
            hits: 9,
            window_seconds: 10.0,
            active_seconds: 60.0,
            cooldown_seconds: 0.0,
            state: "current",
            ends_in_seconds: Some(60.0),
        }],
    };
    assert_eq!(status.busiest, [busy]);
    let all: Vec<_> = square.status(10).busiest.into_iter().map(|row| (row.domain, row.clients)).collect();
    assert_eq!(all, [("busy".to_owned(), 1), ("tenant".to_owned(), 2)]);
}
