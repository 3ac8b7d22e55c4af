//! A leaf whose template goes away while the node above goes on granting.

use std::time::Duration;

use lessor_client::Transport;
use lessor_client::internals::session::{Action, Event};
use lessor_proto::message::{Answer, Grant, HolderKind, Order};
use lessor_proto::{Amount, Epoch, Time};
use lessor_server::node::{Node, NodeConfig, Output, ParentConfig};
use lessor_server::repository::Repository;
use lessor_sim::mutation::Mutation;

use super::hall::{self, LEASE, Report, units};

/// The node above grants a leaf 8 for a client of it that wants as much, and grants it again when no template covers that at the
/// leaf any more: how much may be out there then?
pub(crate) fn a_leaf_that_has_no_template(without: Option<Mutation>) -> Option<String> {
    let rules = without.map(Mutation::node).unwrap_or_default();
    let parent = ParentConfig { servers: vec!["above:1".into()], transport: Transport::Poll, eager: true };
    let config = NodeConfig { rules, parent: Some(parent), ..NodeConfig::new("leaf", Epoch(1)) };
    let mut leaf = Node::new(Time::ZERO, config, hall::repository(10));
    let wish = Report { wants: 8.0, ..Report::default() };
    hall::ask(&mut leaf, Time::ZERO, (HolderKind::Client, "web", 1), &wish);
    hear_above(&mut leaf, Time::ZERO, 1);
    assert_eq!(limit(&leaf, Time::ZERO), Some(units(8)), "it has a lease");
    leaf.reload(Time::ZERO, Repository::default());
    let later = Time::ZERO + Duration::from_secs(10);
    hear_above(&mut leaf, later, 2);
    let limit = limit(&leaf, later).unwrap_or(Amount::MAX);
    (limit > Amount::ZERO).then(|| format!("{limit} may be out of what no template covers"))
}

fn limit(node: &Node, now: Time) -> Option<Amount> {
    node.books(now, &hall::resource()).expect("it was asked for").limit
}

/// Lets it ask the node above, which grants 8 whatever it says.
fn hear_above(node: &mut Node, now: Time, seq: u64) {
    for _ in 0..100 {
        let Some(output) = node.poll(now) else { return };
        let Output::Parent(Action::Ask { id, ask, .. }) = output else { continue };
        let grant = Grant {
            resource: hall::resource(),
            capacity: units(8),
            length: LEASE,
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
            before: None,
            earlier: None,
            bound_by: None,
            unenforced: false,
            beside: false,
            burst: None,
            learning: false,
            learning_left: None,
        };
        let answer = Answer { grants: vec![grant], epoch: Some(Epoch(1)), ..Answer::default() };
        node.on_parent(now, Event::Answered { id, answer });
    }
}
