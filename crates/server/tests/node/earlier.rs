//! The end of earlier leaders' leases, as a new leader of a node below is told of it: when all is over that they had.

use std::time::Duration;

use lessor_client::Transport;
use lessor_client::internals::session::{self, Action};
use lessor_proto::message::{Ask, Down, Grant, Hello, HolderKind, Report, StreamReport, Up};
use lessor_proto::{Amount, Epoch, Incarnation, ReportId, Time};
use lessor_server::node::{Node, NodeConfig, Output, ParentConfig};
use lessor_server::record::{Record, Unknown};

use super::holders::{client, repository, resource, template, wants};

const LEASE: Duration = Duration::from_secs(60);
const LEAF: &str = "leaf";

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(1_000 + seconds)
}

/// The leader above, after one under which `out` was out.
fn above(out: u64) -> Node {
    let marks = [(resource(), Amount::from_units(out))].into();
    let record = Record { marks, longest_lease: LEASE, epoch: Epoch(1), ..Record::default() };
    Node::new(
        at(0),
        NodeConfig { record: Some(record), ..NodeConfig::new("root", Epoch(2)) },
        repository(template(100.0)),
    )
}

fn report(amount: f64) -> Report {
    Report::new(resource(), wants(amount).bands)
}

fn ask(node: &mut Node, seconds: u64, who: (HolderKind, &str, u64), amount: f64) -> Grant {
    let ask = Ask {
        kind: who.0,
        holder: client(who.1),
        incarnation: Some(Incarnation(who.2)),
        report_id: Some(ReportId(1 + seconds)),
        target_epoch: None,
        line: (who.0 == HolderKind::Node).then_some(7),
        reports: vec![report(amount)],
    };
    node.ask(at(seconds), &ask).expect("it is asked well").grants.swap_remove(0)
}

fn leader(epoch: u64) -> (HolderKind, &'static str, u64) {
    (HolderKind::Node, LEAF, epoch)
}

/// A charge lasts so much longer than the lease.
fn charged(lease: Duration) -> Duration {
    NodeConfig::new("root", Epoch(1)).drift.stretch(lease)
}

#[test]
fn it_is_told_once_the_leader_above_has_led_since_it_was_heard() {
    let mut above = above(0);
    ask(&mut above, 10, leader(1), 50.0);
    above.confirm(at(30), at(29));
    assert_eq!(ask(&mut above, 30, leader(2), 50.0).earlier, None);
    above.confirm(at(31), at(29));
    assert_eq!(ask(&mut above, 31, leader(2), 50.0).earlier, None, "it may have been deposed before 30");
    above.confirm(at(32), at(30));
    let told = ask(&mut above, 32, leader(2), 50.0).earlier.unwrap();
    assert_eq!(at(32) + told, at(10) + charged(LEASE));
    // What is granted to the new leader is not earlier.
    let told = ask(&mut above, 80, leader(2), 50.0).earlier;
    assert_eq!(told, Some(Duration::ZERO));
    assert_eq!(ask(&mut above, 151, leader(2), 50.0).earlier, None, "it need not know any more");
}

#[test]
fn what_earlier_leaders_above_may_have_granted_counts_as_well() {
    let mut above = above(40);
    above.confirm(at(5), at(5));
    let told = ask(&mut above, 5, leader(1), 50.0).earlier.unwrap();
    assert_eq!(at(5) + told, at(0) + charged(LEASE), "the leaf is heard for the first time");
}

#[test]
fn nothing_is_told_by_one_who_does_not_know_what_was_out() {
    let record = Record { unknown: Unknown::All, ..Record::default() };
    for record in [None, Some(record)] {
        let config = NodeConfig { record, ..NodeConfig::new("root", Epoch(2)) };
        let mut above = Node::new(at(0), config, repository(template(100.0)));
        above.confirm(at(100), at(100));
        assert_eq!(ask(&mut above, 100, leader(1), 50.0).earlier, None);
    }
}

#[test]
fn who_listens_is_told_as_soon_as_it_is_certain() {
    let mut above = above(0);
    ask(&mut above, 10, leader(1), 50.0);
    let hello = Hello { line: Some(7), ..Hello::new(HolderKind::Node, client(LEAF), Incarnation(2)) };
    let peer = above.connect(at(20), hello);
    let report = StreamReport {
        id: ReportId(1),
        target_epoch: Some(Epoch(2)),
        renew_all: false,
        reports: vec![report(50.0)],
    };
    above.receive(at(20), peer, Up::Report(report));
    let told = |above: &mut Node, now: Time| {
        let mut told = Vec::new();
        for step in 0..100 {
            let now = now + Duration::from_millis(step);
            while let Some(output) = above.poll(now) {
                if let Output::Send { peer, down } = output {
                    above.ready(now, peer);
                    let Down::Grants(grants) = down else { continue };
                    told.extend(grants.into_iter().map(|grant| grant.earlier));
                }
            }
        }
        told
    };
    assert_eq!(told(&mut above, at(20)), [None]);
    above.confirm(at(21), at(20));
    let told = told(&mut above, at(21));
    assert!(matches!(told[..], [Some(left)] if left <= charged(LEASE) - Duration::from_secs(11)), "{told:?}");
}

/// The leaf's first leader got its lease long before it died. What its holders had is over with that, and not a lease
/// after the death.
#[test]
fn what_is_left_out_below_ends_with_the_lease_from_above() {
    let mut above = above(0);
    let out = ask(&mut above, 0, leader(1), 100.0).capacity;
    let marks = [(resource(), out)].into();
    let record = Record { marks, longest_lease: LEASE, epoch: Epoch(1), ..Record::default() };
    let parent = ParentConfig { servers: vec!["above:1".into()], transport: Transport::Poll, eager: true };
    let config = NodeConfig {
        record: Some(record),
        parent: Some(parent),
        line: Some(7),
        ..NodeConfig::new(LEAF, Epoch(2))
    };
    let mut leaf = Node::new(at(50), config, repository(template(100.0)));
    let (mut late, mut seconds) = (Amount::ZERO, 50);
    while late == Amount::ZERO {
        let ask_late = Ask {
            kind: HolderKind::Client,
            holder: client("late"),
            incarnation: Some(Incarnation(1)),
            report_id: Some(ReportId(seconds)),
            target_epoch: None,
            line: None,
            reports: vec![report(100.0)],
        };
        let answer = leaf.ask(at(seconds), &ask_late).unwrap();
        late = answer.grants.first().map_or(Amount::ZERO, |grant| grant.capacity);
        leaf.advance(at(seconds));
        while let Some(output) = leaf.poll(at(seconds)) {
            let Output::Parent(Action::Ask { id, ask, .. }) = output else { continue };
            above.confirm(at(seconds), at(seconds));
            let answer = above.ask(at(seconds), &ask).unwrap();
            leaf.on_parent(at(seconds), session::Event::Answered { id, answer });
        }
        seconds += 1;
        assert!(seconds < 200);
    }
    let charge_ends = charged(LEASE).as_secs();
    assert!((charge_ends..charge_ends + 6).contains(&seconds), "{late} granted at {seconds}");
}
