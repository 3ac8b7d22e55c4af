//! Time that the clock of a node did not show.

use std::time::Duration;

use lessor_client::Transport;
use lessor_client::internals::session::{self, Action};
use lessor_proto::message::{Ask, Down, Grant, HolderKind, Order, Report, Up, Welcome};
use lessor_proto::{Amount, Drift, Epoch, Features, Incarnation, ReportId, Time};
use lessor_server::node::{Node, NodeConfig, Output, ParentConfig};

use super::holders::{client, repository, resource, template, wants};

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(1_000 + seconds)
}

/// A leaf that has a lease of 10 for a minute from the moment of `at(0)` on.
fn leaf() -> Node {
    let mut config = NodeConfig::new("leaf", Epoch(1));
    config.drift = Drift::NONE;
    config.parent =
        Some(ParentConfig { servers: vec!["above:1".into()], transport: Transport::Stream, eager: true });
    let mut node = Node::new(at(0), config, repository(template(0.0)));
    assert_eq!(ask(&mut node, 0), None, "it has nothing to grant");
    let (mut stream, mut report) = (None, None);
    for _ in 0..100 {
        match node.poll(at(0)) {
            Some(Output::Parent(Action::Connect { id, .. })) => {
                stream = Some(id);
                let heartbeat = Duration::from_secs(5);
                let features = Features::CURRENT;
                let welcome =
                    Welcome { epoch: Epoch(1), claims_open: true, claims_open_in: None, heartbeat, features };
                node.on_parent(at(0), session::Event::Down { id, down: Down::Welcome(welcome) });
            }
            Some(Output::Parent(Action::Send { up: Up::Report(said), .. })) => report = Some(said.id),
            Some(_) => {}
            None => break,
        }
    }
    let grant = Grant {
        resource: resource(),
        capacity: Amount::from_units(10),
        length: Duration::from_secs(60),
        refresh_interval: Duration::from_secs(5),
        order: Some(Order { epoch: Epoch(1), seq: 1 }),
        basis: report,
        token: Vec::new(),
        ack_wanted: false,
        safe_leased: false,
        safe_capacity: None,
        due: None,
        window: None,
        generation: None,
        sharing: None,
        domains: None,
        before: None,
        earlier: None,
        bound_by: None,
        unenforced: false,
        beside: false,
        burst: None,
        learning: false,
        learning_left: None,
    };
    let id = stream.expect("it asks above");
    node.on_parent(at(0), session::Event::Down { id, down: Down::Grants(vec![grant]) });
    while node.poll(at(0)).is_some() {}
    node
}

/// The amount that somebody is granted, and the time for which.
fn ask(node: &mut Node, seconds: u64) -> Option<(Amount, Duration)> {
    let report = Report::new(resource(), wants(4.0).bands);
    let ask = Ask {
        kind: HolderKind::Client,
        holder: client("a"),
        incarnation: Some(Incarnation(1)),
        report_id: Some(ReportId(1 + seconds)),
        target_epoch: None,
        line: None,
        reports: vec![report],
    };
    let answer = node.ask(at(seconds), &ask).expect("a template covers it");
    answer.grants.first().map(|grant| (grant.capacity, grant.length))
}

#[test]
fn what_a_node_holds_ends_earlier_and_what_it_has_granted_does_not() {
    let mut node = leaf();
    let (amount, length) = ask(&mut node, 1).expect("it has a lease");
    assert!(amount == Amount::from_units(4) && length > Duration::from_secs(50), "{length:?}");
    let charged = node.books(at(2), &resource()).unwrap().total;

    node.lose_time(at(2), Duration::from_secs(40));
    while node.poll(at(2)).is_some() {}
    let (_, length) = ask(&mut node, 3).expect("17 s of the lease are left");
    assert!(length <= Duration::from_secs(17), "{length:?}");

    node.lose_time(at(4), Duration::from_secs(30));
    while node.poll(at(4)).is_some() {}
    assert_eq!(ask(&mut node, 5), None, "the lease is over");
    assert_eq!(node.books(at(50), &resource()).unwrap().total, charged, "it counts as long as it was to");
}
