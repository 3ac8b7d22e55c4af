//! Rates and gauges: who takes one for the other is told, and a kind that is changed begins with nothing out.

use std::time::Duration;

use lessor_client::internals::session::{self, Action};
use lessor_client::{Failure, Transport};
use lessor_proto::message::{
    Answer, Ask, Down, Grant, Has, Hello, HolderKind, Order, Report, StreamReport, Up,
};
use lessor_proto::{Amount, Epoch, Incarnation, ReportId, Time};
use lessor_server::node::{Node, NodeConfig, Output, ParentConfig, Peer};
use lessor_server::repository::{Kind, Template};

use super::holders::{client, repository, resource, template, wants};

struct Holder {
    name: &'static str,
    integer: Option<bool>,
    reports: u64,
    has: Option<Has>,
}

// === impl Holder ===

impl Holder {
    fn new(name: &'static str, integer: Option<bool>) -> Holder {
        Holder { name, integer, reports: 0, has: None }
    }

    fn ask(&mut self, node: &mut Node, seconds: u64, amount: f64) -> Result<Amount, String> {
        let ask = self.said(amount);
        let answer = node.ask(at(seconds), &ask).map_err(|refusal| refusal.to_string())?;
        let Some(Grant { capacity, order, .. }) = answer.grants.into_iter().next() else {
            return Ok(Amount::ZERO);
        };
        self.has = Some(Has { capacity, order, token: Vec::new(), lasts: None, expiry: 0 });
        Ok(capacity)
    }

    fn said(&mut self, amount: f64) -> Ask {
        self.reports += 1;
        Ask {
            kind: HolderKind::Client,
            holder: client(self.name),
            incarnation: Some(Incarnation(1)),
            report_id: Some(ReportId(self.reports)),
            target_epoch: None,
            line: None,
            reports: vec![Report {
                resource: resource(),
                bands: wants(amount).bands,
                has: self.has.clone(),
                held: None,
                domains: None,
                integer: self.integer,
                peak: None,
                unenforced: None,
            }],
        }
    }

    fn order(&self) -> Option<Order> {
        self.has.as_ref().and_then(|has| has.order)
    }
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

fn units(units: u64) -> Result<Amount, String> {
    Ok(Amount::from_units(units))
}

fn node(kind: Kind) -> Node {
    Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), repository(of_kind(kind)))
}

fn of_kind(kind: Kind) -> Template {
    Template { kind, ..template(10.0) }
}

const NO_RATE: &str = "resource[0].integer: opens \"db\" as a rate; wanted a gauge, as template \"*\" says";
const NO_GAUGE: &str = "resource[0].integer: opens \"db\" as a gauge; wanted a rate, as template \"*\" says";

#[test]
fn who_takes_one_kind_for_the_other_is_told_both() {
    for (kind, wrong, said) in [(Kind::Gauge, false, NO_RATE), (Kind::Rate, true, NO_GAUGE)] {
        let mut node = node(kind);
        // The first to ask, and one who comes later.
        for _ in 0..2 {
            assert_eq!(Holder::new("wrong", Some(wrong)).ask(&mut node, 1, 5.0), Err(said.to_owned()));
            assert_eq!(Holder::new("right", Some(!wrong)).ask(&mut node, 1, 3.0), units(3));
        }
        assert_eq!(
            Holder::new("doorman", None).ask(&mut node, 1, 4.0),
            units(4),
            "who does not say is served"
        );
    }
}

#[test]
fn a_kind_that_is_changed_is_granted_when_all_of_the_other_is_given_back() {
    let mut node = node(Kind::Rate);
    let (mut rate, mut gauge) = (Holder::new("rate", Some(false)), Holder::new("gauge", Some(true)));
    assert_eq!(rate.ask(&mut node, 1, 8.0), units(8));
    node.reload(at(2), repository(of_kind(Kind::Gauge)));
    assert_eq!(gauge.ask(&mut node, 3, 5.0), units(0), "8 a second are out");
    assert_eq!(rate.ask(&mut node, 4, 8.0), units(0), "it is heard, or it could not give back");
    assert_eq!(gauge.ask(&mut node, 5, 5.0), units(0), "it has not said yet that it uses nothing");
    assert_eq!(rate.ask(&mut node, 6, 8.0), units(0));
    assert_eq!(gauge.ask(&mut node, 7, 5.0), units(5));
    assert_eq!(rate.ask(&mut node, 8, 8.0), Err(NO_RATE.to_owned()));
    assert!(node.books(at(8), &resource()).unwrap().total == 5_000_000);
}

#[test]
fn what_nobody_gives_back_of_the_other_kind_ends_with_its_lease() {
    let mut node = node(Kind::Gauge);
    let (mut gauge, mut rate) = (Holder::new("gauge", Some(true)), Holder::new("rate", Some(false)));
    assert_eq!(gauge.ask(&mut node, 1, 5.0), units(5));
    node.reload(at(2), repository(of_kind(Kind::Rate)));
    assert_eq!(rate.ask(&mut node, 60, 8.0), units(0));
    assert_eq!(rate.ask(&mut node, 63, 8.0), units(8));
    assert_eq!(gauge.ask(&mut node, 64, 5.0), Err(NO_GAUGE.to_owned()));
}

/// One who listens says what it has, or that all of it is to be renewed; what it is granted then, if anything.
fn say(node: &mut Node, peer: Peer, holder: &mut Holder, now: Time, renew_all: bool) -> Option<Amount> {
    let said = holder.said(0.5);
    let reports = if renew_all { Vec::new() } else { said.reports };
    let report = StreamReport { id: ReportId(holder.reports), target_epoch: None, renew_all, reports };
    node.receive(now, peer, Up::Report(report));
    let mut granted = None;
    while let Some(output) = node.poll(now) {
        let Output::Send { down, .. } = output else { continue };
        node.ready(now, peer);
        for Grant { capacity, order, .. } in grants(down) {
            holder.has = Some(Has { capacity, order, token: Vec::new(), lasts: None, expiry: 0 });
            granted = Some(capacity);
        }
    }
    granted
}

fn grants(down: Down) -> Vec<Grant> {
    if let Down::Grants(grants) = down { grants } else { Vec::new() }
}

#[test]
fn less_than_a_unit_of_a_rate_is_taken_back_for_a_gauge() {
    let (mut node, mut little) = (node(Kind::Rate), Holder::new("little", Some(false)));
    let hello = Hello::new(HolderKind::Client, client("little"), Incarnation(1));
    let peer = node.connect(at(1), hello);
    assert_eq!(say(&mut node, peer, &mut little, at(1), false), Some(Amount::from_f64(0.5)));
    node.reload(at(2), repository(of_kind(Kind::Gauge)));
    assert_eq!(say(&mut node, peer, &mut little, at(3), true), Some(Amount::ZERO), "it is not renewed");
    assert_eq!(say(&mut node, peer, &mut little, at(4), false), None);
    assert_eq!(Holder::new("gauge", Some(true)).ask(&mut node, 5, 3.0), units(3), "all is given back");
}

/// Lets a leaf ask the node above, which grants it 4 as of `kind`, and refuses the other.
fn hear_above(leaf: &mut Node, seconds: u64, kind: Kind) {
    for _ in 0..10 {
        let Some(output) = leaf.poll(at(seconds)) else { return };
        let Output::Parent(Action::Ask { id, ask, .. }) = output else { continue };
        let is_gauge = kind == Kind::Gauge;
        if ask.reports[0].integer != Some(is_gauge) {
            let failure = Failure::Refused("of the other kind".to_owned());
            leaf.on_parent(at(seconds), session::Event::Failed { id, failure });
            continue;
        }
        let grant = Grant {
            capacity: Amount::from_units(4),
            order: Some(Order { epoch: Epoch(1), seq: seconds }),
            basis: ask.report_id,
            generation: Some(if is_gauge { Grant::GAUGE } else { Grant::RATE }),
            ..granted()
        };
        let answer = Answer { grants: vec![grant], epoch: Some(Epoch(1)), ..Answer::default() };
        leaf.on_parent(at(seconds), session::Event::Answered { id, answer });
    }
}

/// The parts that are the same in all grants of the node above.
fn granted() -> Grant {
    let mut above = node(Kind::Rate);
    let ask = Holder::new("leaf", None).said(1.0);
    above.ask(at(0), &ask).expect("it is asked well").grants.remove(0)
}

#[test]
fn a_lease_of_one_kind_is_not_handed_out_as_the_other() {
    for (before, after) in [(Kind::Rate, Kind::Gauge), (Kind::Gauge, Kind::Rate)] {
        let parent =
            ParentConfig { servers: vec!["above:1".into()], transport: Transport::Poll, eager: true };
        let config = NodeConfig { parent: Some(parent), ..NodeConfig::new("leaf", Epoch(7)) };
        let mut leaf = Node::new(at(0), config, repository(of_kind(before)));
        let (mut first, mut second) = (
            Holder::new("first", Some(before == Kind::Gauge)),
            Holder::new("second", Some(after == Kind::Gauge)),
        );
        assert_eq!(first.ask(&mut leaf, 1, 8.0), units(0), "it has nothing yet");
        hear_above(&mut leaf, 1, before);
        assert_eq!(first.ask(&mut leaf, 2, 3.0), units(3));
        assert_eq!(first.ask(&mut leaf, 3, 0.0), units(0));
        assert_eq!(first.ask(&mut leaf, 4, 0.0), units(0), "it uses nothing any more");
        leaf.reload(at(5), repository(of_kind(after)));
        assert_eq!(second.ask(&mut leaf, 5, 3.0), units(0), "its lease is of the other kind");
        // The node above has not heard of the change.
        hear_above(&mut leaf, 6, before);
        assert_eq!(second.ask(&mut leaf, 7, 3.0), units(0));
        hear_above(&mut leaf, 20, after);
        assert_eq!(second.ask(&mut leaf, 21, 3.0), units(3));
    }
}

#[test]
fn numbers_of_grants_go_on_beyond_what_the_books_can_write() {
    let mut node = node(Kind::Rate);
    let mut holder = Holder::new("old", Some(false));
    let last = u64::from(u32::MAX) - 2;
    let order = Some(Order { epoch: Epoch(1), seq: last });
    holder.has = Some(Has { capacity: Amount::ZERO, order, token: Vec::new(), lasts: None, expiry: 0 });
    let mut before = holder.order();
    let mut other = Holder::new("other", None);
    for round in 0..8 {
        let (more, less) = (8 - round % 2, 3 + round % 2);
        for wanted in [more, less] {
            assert_eq!(holder.ask(&mut node, 1 + round, wanted as f64), units(wanted));
            assert!(holder.order() > before, "{before:?} {:?}", holder.order());
            before = holder.order();
        }
        // What it gives back is there for others, also across the end of the numbers.
        assert_eq!(holder.ask(&mut node, 1 + round, less as f64), units(less));
        before = holder.order();
        assert_eq!(other.ask(&mut node, 1 + round, 2.0), units(2));
        let total = node.books(at(1 + round), &resource()).unwrap().total;
        assert_eq!(total, u128::from(less + 2) * 1_000_000);
    }
    assert!(before.unwrap().seq > u64::from(u32::MAX));
}
