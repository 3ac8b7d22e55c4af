//! Looks through nodes: down their streams and up again, while leases go on as if nobody looked.

use std::time::Duration;

use lessor_proto::message::LookKind;
use lessor_server::look::tree::{NodeBranch, NodeSeen, TreeQuery};
use lessor_server::look::{self, LookQuestion, ViewTree};
use lessor_sim::net::Endpoint;

use super::holders::{resource, template};
use super::village::Village;

const SECOND: Duration = Duration::from_secs(1);

/// A root of 100 units, and three leaves of which each has a client that wants 50.
fn village() -> Village {
    let mut village = Village::new(template(100.0), 3);
    (0..3).for_each(|_| {
        village.come(50.0);
    });
    village.pass(100 * SECOND);
    village
}

fn ask(village: &mut Village) {
    let body = TreeQuery { resources: 5, matching: None }.to_bytes();
    let question = LookQuestion { kind: LookKind::Tree, body };
    let now = village.now;
    let root = village.net.net.node_mut(0).expect("the root leads");
    root.look(now, question, look::PATIENCE).expect("nobody else looks");
}

fn shown(village: &mut Village) -> Option<NodeBranch> {
    let root = village.net.net.node_mut(0).expect("the root leads");
    let (_, bytes) = root.next_view()?;
    let view = ViewTree::read(&bytes, look::BOUNDS.levels).expect("a view");
    Some(NodeBranch::of("place-0".to_owned(), view))
}

/// Has all said that was asked, before the clock has moved.
fn settle(village: &mut Village) {
    village.pass(Duration::from_nanos(1));
}

#[test]
fn the_root_shows_what_each_leaf_has() {
    let mut village = village();
    let grants = village.grants;
    ask(&mut village);
    settle(&mut village);
    let tree = shown(&mut village).expect("all have answered at once");
    assert_eq!(tree.seen_nodes().shown, 4, "{tree:#?}");
    let figures = tree.figures.as_ref().expect("it knows itself");
    let of_root = &figures.resources[0];
    assert_eq!(
        (of_root.resource.as_str(), of_root.capacity, of_root.wants),
        (resource().as_str(), 100.0, 150.0)
    );
    assert_eq!(of_root.lease_ends_in_seconds, None);
    let leaves: Vec<f64> = tree
        .below
        .iter()
        .map(|leaf| {
            let row = &leaf.figures.as_ref().expect("it has answered").resources[0];
            assert!(row.lease_ends_in_seconds.is_some_and(|seconds| seconds > 0.0), "{leaf:#?}");
            assert_eq!((row.wants, row.clients), (50.0, 1));
            row.capacity
        })
        .collect();
    assert!(leaves.iter().all(|capacity| (capacity - 100.0 / 3.0).abs() < 1e-3), "{leaves:?}");
    assert_eq!(village.grants, grants, "nobody was granted anything by that");
}

#[test]
fn a_leaf_that_is_cut_off_is_silent_and_the_rest_is_shown_after_two_seconds() {
    let mut village = village();
    village.cut_off(Endpoint::Node(2), true);
    ask(&mut village);
    village.pass(SECOND);
    assert!(shown(&mut village).is_none(), "it may answer yet");
    village.pass(SECOND);
    let tree = shown(&mut village).expect("it is not waited for");
    let seen: Vec<NodeSeen> = tree.below.iter().map(|leaf| leaf.seen).collect();
    assert_eq!(seen, [NodeSeen::Shown, NodeSeen::Silent, NodeSeen::Shown]);
    assert_eq!(tree.seen_nodes().silent, ["place-0 > place-2"]);
}
