//! A leader of a node that stands below another one, where its record knows nothing of what holders show or the node above counts.

use std::time::Duration;

use lessor_client::Transport;
use lessor_client::internals::session::{self, Action};
use lessor_proto::message::{Answer, Ask, Before, Grant, Has, HolderKind, Lasts, Order, Report};
use lessor_proto::{Amount, Drift, Epoch, Incarnation, ReportId, Time};
use lessor_server::node::{Books, Node, NodeConfig, Output, ParentConfig};
use lessor_server::record::{Record, Unknown};

use super::holders::{client, repository, resource, template, wants};

/// The time for which a client may use what it shows.
const LEFT: Duration = Duration::from_secs(20);

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

/// A leader that begins with a record that its line has written under epoch 5, and writes whatever it wants to.
fn leaf(unknown: Unknown) -> Node {
    successor(Record { unknown, ..Record::default() })
}

fn successor(record: Record) -> Node {
    let servers = vec!["above:1".into()];
    let record = Record { epoch: Epoch(5), longest_lease: Duration::from_secs(60), ..record };
    let config = NodeConfig {
        drift: Drift::NONE,
        marks: true,
        line: Some(1),
        trust_claims: true,
        parent: Some(ParentConfig { servers, transport: Transport::Poll, eager: true }),
        record: Some(record),
        ..NodeConfig::new("leaf", Epoch(7))
    };
    let mut node = Node::new(at(0), config, repository(template(0.0)));
    write(&mut node, at(0));
    node
}

pub(super) fn write(node: &mut Node, now: Time) {
    let later = now + Duration::from_millis(10);
    while let Some(write) = node.next_marks(later) {
        node.on_marks(later, write.ticket, true);
    }
}

/// Lets it ask the node above, which grants 4 and counts so much of a leader before.
pub(super) fn hear_above(node: &mut Node, now: Time, seq: u64, before: Option<u64>) {
    let before = before.map(|units| Before { amount: Amount::from_units(units), remaining: LEFT });
    for _ in 0..100 {
        let Some(output) = node.poll(now) else { break };
        let Output::Parent(Action::Ask { id, ask, .. }) = output else { continue };
        let grant = Grant {
            resource: resource(),
            capacity: Amount::from_units(4),
            length: Duration::from_secs(60),
            refresh_interval: Duration::from_secs(5),
            order: Some(Order { epoch: Epoch(1), seq }),
            basis: ask.report_id,
            token: Vec::new(),
            ack_wanted: false,
            safe_leased: false,
            safe_capacity: None,
            due: None,
            window: None,
            generation: None,
            sharing: None,
            domains: None,
            before,
            earlier: None,
            bound_by: None,
            unenforced: false,
            beside: false,
            burst: None,
            learning: false,
            learning_left: None,
        };
        let answer = Answer { grants: vec![grant], epoch: Some(Epoch(1)), ..Answer::default() };
        node.on_parent(now, session::Event::Answered { id, answer });
    }
    write(node, now);
}

/// The amount told to a client that wants 8 and perhaps shows as many units of the leader of that epoch.
fn ask(node: &mut Node, now: Time, id: u64, shown: Option<(u64, u64)>) -> Option<Amount> {
    ask_as("a", node, now, id, shown)
}

fn ask_as(name: &str, node: &mut Node, now: Time, id: u64, shown: Option<(u64, u64)>) -> Option<Amount> {
    let has = shown.map(|(units, epoch)| Has {
        capacity: Amount::from_units(units),
        order: Some(Order { epoch: Epoch(epoch), seq: 1 }),
        token: Vec::new(),
        lasts: Some(Lasts { length: LEFT, remaining: LEFT, counts: LEFT }),
        expiry: 0,
    });
    let report = Report {
        resource: resource(),
        bands: wants(8.0).bands,
        has,
        held: None,
        domains: None,
        integer: None,
        peak: None,
        unenforced: None,
    };
    let ask = Ask {
        kind: HolderKind::Client,
        holder: client(name),
        incarnation: Some(Incarnation(1)),
        report_id: Some(ReportId(id)),
        target_epoch: None,
        line: None,
        reports: vec![report],
    };
    let answer = node.ask(now, &ask).expect("a template covers it");
    write(node, now);
    answer.grants.first().map(|grant| grant.capacity)
}

fn books(node: &Node, now: Time) -> Books {
    node.books(now, &resource()).expect("it was asked for")
}

#[test]
fn who_shows_what_an_earlier_line_granted_is_left_it_by_a_successor_too() {
    // The first leader of the line knew that it knows nothing; the record of the second says that nothing is out in this line.
    for unknown in [Unknown::All, Unknown::Floors, Unknown::Nothing] {
        let mut node = leaf(unknown);
        assert_eq!(ask(&mut node, at(5), 1, Some((8, 3))), None, "nothing to grant yet");
        hear_above(&mut node, at(5), 1, None);
        let early = ask(&mut node, at(6), 2, Some((8, 3)));
        assert_eq!(early, None, "it may use 8, which the node above charges to another line");
        ask(&mut node, at(30), 3, None);
        let late = ask(&mut node, at(31), 4, None);
        assert_eq!(late, Some(Amount::from_units(4)), "all of that has ended");
    }
}

#[test]
fn a_leader_before_that_wrote_nothing_has_granted_nothing() {
    let mut node = leaf(Unknown::All);
    assert_eq!(ask(&mut node, at(5), 1, None), None, "nothing to grant yet");
    hear_above(&mut node, at(5), 1, Some(45));
    assert_eq!((books(&node, at(5)).ghost, books(&node, at(5)).total), (Amount::ZERO, 0));
    ask(&mut node, at(6), 2, None);
    assert_eq!(ask(&mut node, at(7), 3, None), Some(Amount::from_units(4)), "its mark is written");
}

#[test]
fn what_a_leader_after_the_record_left_is_out_as_the_node_above_counts_it() {
    let mut node = leaf(Unknown::Nothing);
    // Somebody led in epoch 6 of whom the record knows nothing.
    assert_eq!(ask(&mut node, at(5), 1, Some((8, 6))), None, "nothing to grant yet");
    hear_above(&mut node, at(5), 1, Some(45));
    assert_eq!(books(&node, at(5)).ghost, Amount::from_units(45));
}

#[test]
fn who_comes_back_keeps_its_part_where_a_successor_above_leases_no_more_than_that() {
    let marks = [(resource(), Amount::from_units(10))].into();
    let mut node = successor(Record { marks, ..Record::default() });
    ask(&mut node, at(5), 1, Some((4, 5)));
    // It counts by itself the 6 that nobody has shown.
    hear_above(&mut node, at(8), 1, None);
    let (units, total) = (Amount::from_units, u128::from(Amount::from_units(10).as_micros()));
    assert_eq!((books(&node, at(8)).ghost, books(&node, at(8)).total), (units(6), total));
    assert_eq!(ask(&mut node, at(9), 2, None), Some(units(4)), "it shows 4, and 4 are leased");
    assert_eq!(ask(&mut node, at(40), 3, None), Some(units(4)), "and until all of that is over");
    assert_eq!(ask_as("b", &mut node, at(41), 1, None), Some(Amount::ZERO), "nobody grows meanwhile");
    assert_eq!(books(&node, at(41)).total, total);
}
