//! Claims of those who poll: not before they open, and told when that is.

use std::time::Duration;

use lessor_proto::message::{Answer, Ask, Has, HolderKind, Order, Report};
use lessor_proto::{Amount, Drift, Epoch, Incarnation, ReportId, Time};
use lessor_server::node::{Node, NodeConfig};
use lessor_server::record::Record;

use super::holders::{client, repository, resource, template, wants};

/// A leader after one that may go on for four seconds and may have 80 of 100 out.
fn successor() -> Node {
    let mut config = NodeConfig::new("root", Epoch(2));
    config.drift = Drift::NONE;
    config.trust_claims = true;
    config.record = Some(Record {
        marks: [(resource(), Amount::from_units(80))].into(),
        longest_lease: Duration::from_secs(60),
        authority: Duration::from_secs(4),
        ..Record::default()
    });
    Node::new(Time::ZERO, config, repository(template(100.0)))
}

fn ask(node: &mut Node, millis: u64, name: &str, has: Option<(u64, Option<Order>)>) -> Answer {
    let has = has.map(|(units, order)| Has {
        capacity: Amount::from_units(units),
        order,
        token: Vec::new(),
        lasts: None,
        expiry: 0,
    });
    let ask = Ask {
        kind: HolderKind::Client,
        holder: client(name),
        incarnation: Some(Incarnation(1)),
        report_id: Some(ReportId(millis)),
        target_epoch: Some(Epoch(2)),
        reports: vec![Report {
            resource: resource(),
            bands: wants(50.0).bands,
            has,
            held: None,
            domains: None,
            integer: None,
            peak: None,
            unenforced: None,
        }],
        line: None,
    };
    node.ask(Time::ZERO + Duration::from_millis(millis), &ask).expect("a template covers it")
}

const EARLIER: Option<Order> = Some(Order { epoch: Epoch(1), seq: 3 });

fn granted(answer: &Answer) -> u64 {
    answer.grants[0].capacity.floor_units()
}

#[test]
fn who_shows_an_earlier_lease_too_soon_is_told_when_to_come_back() {
    let mut node = successor();
    let answer = ask(&mut node, 1_000, "a", Some((50, EARLIER)));
    assert_eq!((answer.grants.len(), answer.epoch), (0, Some(Epoch(2))));
    assert_eq!(answer.retry, Some(Duration::from_secs(3)));
    // Nothing of it counts: not the demand either.
    assert!(node.books(Time::ZERO, &resource()).is_none());
}

#[test]
fn it_is_believed_when_nobody_else_acts_any_more() {
    let mut node = successor();
    ask(&mut node, 3_999, "a", Some((50, EARLIER)));
    let answer = ask(&mut node, 4_000, "a", Some((50, EARLIER)));
    assert_eq!(granted(&answer), 50);
    let books = node.books(Time::ZERO, &resource()).expect("somebody holds");
    assert_eq!((books.ghost, books.total), (Amount::from_units(30), 80_000_000));
}

#[test]
fn who_has_nothing_need_not_wait() {
    let mut node = successor();
    assert_eq!(granted(&ask(&mut node, 0, "new", None)), 20);
    // Nor who says of its lease that it has ended.
    assert_eq!(granted(&ask(&mut node, 0, "old", Some((0, EARLIER)))), 0);
}

#[test]
fn without_keys_nobody_is_believed_unless_that_is_said() {
    let mut config = NodeConfig::new("root", Epoch(2));
    config.record = Some(Record {
        marks: [(resource(), Amount::from_units(80))].into(),
        longest_lease: Duration::from_secs(60),
        ..Record::default()
    });
    let mut node = Node::new(Time::ZERO, config, repository(template(100.0)));
    assert_eq!(granted(&ask(&mut node, 1, "a", Some((50, EARLIER)))), 20);
    let books = node.books(Time::ZERO, &resource()).expect("somebody holds");
    assert_eq!(books.ghost, Amount::from_units(80));
}

#[test]
fn nothing_is_granted_with_an_earlier_configuration_than_was_in_force() {
    let mut config = NodeConfig::new("root", Epoch(2));
    config.marks = true;
    config.record = Some(Record { config_version: 7, ..Record::default() });
    let mut node = Node::new(Time::ZERO, config, repository(template(100.0)).at_version(6));
    let write = |node: &mut Node, millis| {
        let write = node.next_marks(Time::ZERO + Duration::from_millis(millis)).expect("something is due");
        node.on_marks(Time::ZERO, write.ticket, true);
        write.change.terms.expect("it is another").config_version
    };
    assert_eq!((write(&mut node, 10), node.later_config()), (7, Some(7)));
    let answer = ask(&mut node, 20, "a", None);
    assert_eq!((answer.grants.len(), answer.retry), (0, Some(Duration::from_secs(1))));
    let more = node.next_marks(Time::ZERO + Duration::from_millis(25));
    assert_eq!(more, None, "a mark for what is not granted would be waited for by the next leader");

    // It catches up, and what is in force from then on is written down too.
    node.reload(Time::ZERO + Duration::from_millis(30), repository(template(40.0)).at_version(8));
    assert_eq!((write(&mut node, 40), node.later_config()), (8, None));
    ask(&mut node, 50, "a", None);
    let marks = node.next_marks(Time::ZERO + Duration::from_millis(60)).expect("a mark is due");
    node.on_marks(Time::ZERO, marks.ticket, true);
    assert_eq!(granted(&ask(&mut node, 70, "a", None)), 40);
}

#[test]
fn polls_are_told_to_come_back_when_what_they_wait_for_is_written() {
    let mut config = NodeConfig::new("root", Epoch(2));
    config.marks = true;
    let mut node = Node::new(Time::ZERO, config, repository(template(100.0)));
    let soon = Some(Duration::from_millis(100));
    let at = |millis| Time::ZERO + Duration::from_millis(millis);
    assert_eq!((ask(&mut node, 1, "a", None).grants.len(), ask(&mut node, 2, "a", None).retry), (0, soon));
    let first = node.next_marks(at(3)).expect("the header");
    assert_eq!(first.change.marks.len(), 1, "what is known to be wanted goes along");
    node.on_marks(at(4), first.ticket, true);
    assert_eq!(granted(&ask(&mut node, 100, "a", None)), 50);
    let more = ask(&mut node, 101, "b", None);
    assert_eq!((granted(&more), more.retry), (7, soon));
    let second = node.next_marks(at(103)).expect("a larger mark");
    node.on_marks(at(104), second.ticket, true);
    assert_eq!(granted(&ask(&mut node, 201, "b", None)), 50);
    assert!(node.next_marks(at(300)).is_none());
}
