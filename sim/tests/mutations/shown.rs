//! Holders that poll and show a lease for which nobody vouches.
//!
//! Capacity is 100, and leases last 60 s. Clocks are perfect.

use std::time::Duration;

use lessor_client::Transport;
use lessor_proto::{Drift, Epoch};
use lessor_server::node::{Node, NodeConfig, ParentConfig};
use lessor_server::record::{Record, Unknown};
use lessor_server::repository::{Repository, Template};
use lessor_server::token::{Key, TokenKeys};
use lessor_sim::mutation::Mutation;

use super::hall::{LEASE, repository, resource, units};
use super::pollers::{CAPACITY, Poller, exceeded, second};

/// A server of that epoch below another one, which does not answer, and without memory.
fn leaf(without: Option<Mutation>, epoch: u64, since: u64) -> Node {
    let servers = vec!["above:1".into()];
    let config = NodeConfig {
        parent: Some(ParentConfig { servers, transport: Transport::Poll, eager: true }),
        rules: without.map(Mutation::node).unwrap_or_default(),
        drift: Drift::NONE,
        ..NodeConfig::new("leaf", Epoch(epoch))
    };
    Node::new(second(since), config, repository(CAPACITY))
}

/// One that was granted everything by a server of which nobody knows anything.
fn holder() -> Poller {
    let config = NodeConfig { drift: Drift::NONE, ..NodeConfig::new("leaf", Epoch(1)) };
    let mut poller = Poller::new("a");
    poller.poll(&mut Node::new(second(0), config, repository(CAPACITY)), 0, CAPACITY);
    poller
}

/// Its server is lost, and the next one has nothing to grant. A client that goes by its answers alone has its lease until that
/// ends, and no longer: by then it is somebody else's.
pub(crate) fn below_a_node_that_has_nothing(without: Option<Mutation>) -> Option<String> {
    let (mut poller, mut leaf) = (holder(), leaf(without, 2, 10));
    for now in [11, 30, 59] {
        poller.poll(&mut leaf, now, CAPACITY);
        if poller.believes(now) != units(CAPACITY) {
            return Some(format!("{} is left at {now} s", poller.believes(now)));
        }
    }
    poller.poll(&mut leaf, 60, CAPACITY);
    (poller.told() > units(0)).then(|| format!("{} of a lease that is over", poller.told()))
}

/// A server that has nothing to grant is asked again and again by one that has just begun. That is one life of it.
pub(crate) fn asked_again_and_again(without: Option<Mutation>) -> Option<String> {
    let (poller, mut leaf) = (Poller::new("a"), leaf(without, 1, 0));
    for now in 0..20 {
        if let Err(refusal) = leaf.ask(second(now), &poller.letter(CAPACITY).0) {
            return Some(refusal.to_string());
        }
    }
    None
}

/// The first leader that finds nothing in its record and has a key of its own is asked before claims are open, and after that.
pub(crate) fn of_another_key(without: Option<Mutation>) -> Option<String> {
    let config = NodeConfig {
        record: Some(Record {
            unknown: Unknown::All,
            authority: Duration::from_secs(4),
            ..Record::default()
        }),
        keys: Some(TokenKeys::new(Key::new([5; 32]))),
        rules: without.map(Mutation::node).unwrap_or_default(),
        drift: Drift::NONE,
        ..NodeConfig::new("leaf", Epoch(2))
    };
    let template = Template { learning: LEASE, ..Template::clone(&repository(CAPACITY).templates()[0]) };
    let repository = Repository::new(vec![template]).expect("it holds together");
    let (mut poller, mut node) = (holder(), Node::new(second(10), config, repository));
    for now in 11..60 {
        poller.poll(&mut node, now, CAPACITY);
        if poller.believes(now) != units(CAPACITY) {
            return Some(format!("{} is left at {now} s", poller.believes(now)));
        }
    }
    None
}

/// The record says that 20 were out under epoch 3; then somebody led who wrote elsewhere, and left 60 to one that polls and shows
/// them, and 40 to one that is not heard of.
pub(crate) fn to_an_old_record(without: Option<Mutation>) -> Option<String> {
    let config = |epoch, record| NodeConfig {
        record: Some(record),
        keys: Some(TokenKeys::new(Key::new([5; 32]))),
        rules: without.map(Mutation::node).unwrap_or_default(),
        drift: Drift::NONE,
        ..NodeConfig::new("root", Epoch(epoch))
    };
    let template = Template { learning: LEASE, ..Template::clone(&repository(CAPACITY).templates()[0]) };
    let repository = || Repository::new(vec![template.clone()]).expect("it holds together");
    let mut between = Node::new(second(0), config(5, Record::default()), repository());
    let [mut shows, mut silent, mut newcomer] = ["shows", "silent", "new"].map(Poller::new);
    shows.poll(&mut between, 0, 60);
    silent.poll(&mut between, 0, 40);
    let marks = [(resource(), units(20))].into();
    let record = Record { epoch: Epoch(3), marks, longest_lease: LEASE, ..Record::default() };
    let mut next = Node::new(second(10), config(7, record), repository());
    for now in [11, 12, 13] {
        shows.poll(&mut next, now, 60);
        if shows.believes(now) != units(60) {
            return Some(format!("{} is left of 60 at {now} s", shows.believes(now)));
        }
        newcomer.poll(&mut next, now, CAPACITY);
    }
    exceeded(13, &[&shows, &silent, &newcomer])
}
