//! Holders that poll and show a lease for which nobody vouches: it is left to them as long as it lasts, and then they are told so.

use std::time::Duration;

use lessor_client::Transport;
use lessor_proto::message::{Ask, Has};
use lessor_proto::{Amount, Drift, Epoch};
use lessor_server::node::{Node, NodeConfig, ParentConfig};
use lessor_server::record::{Record, Unknown};
use lessor_server::repository::Template;
use lessor_server::token::{Key, TokenKeys};

use super::below::{hear_above, write};
use super::holders::{repository, resource};
use super::pollers::{LEASE, Poller, second, terms};

const ALL: u64 = 300;
/// When the second server begins.
const AGAIN: u64 = 20;
const AUTHORITY: u64 = 4;

fn units(units: u64) -> Amount {
    Amount::from_units(units)
}

/// A server of which there is no record.
fn alone(epoch: u64, since: u64, learns: u64) -> Node {
    let template = Template { learning: Duration::from_secs(learns), ..terms() };
    let config = NodeConfig { drift: Drift::NONE, ..NodeConfig::new("leaf", Epoch(epoch)) };
    Node::new(second(since), config, repository(template))
}

/// A server below another one, which perhaps has a record in which nothing stands.
fn below(epoch: u64, since: u64, record: Option<Record>) -> Node {
    let parent = ParentConfig { servers: vec!["above:1".into()], transport: Transport::Poll, eager: true };
    let config = NodeConfig {
        drift: Drift::NONE,
        marks: record.is_some(),
        record,
        parent: Some(parent),
        ..NodeConfig::new("leaf", Epoch(epoch))
    };
    let mut node = Node::new(second(since), config, repository(terms()));
    write(&mut node, second(since));
    node
}

/// The first of all that a root knows which finds nothing where its record should be, and has a key of its own.
fn unknown(since: u64) -> Node {
    let template = Template { learning: Duration::from_secs(LEASE), ..terms() };
    let record =
        Record { unknown: Unknown::All, authority: Duration::from_secs(AUTHORITY), ..Record::default() };
    let config = NodeConfig {
        drift: Drift::NONE,
        marks: true,
        record: Some(record),
        keys: Some(TokenKeys::new(Key::new([7; 32]))),
        ..NodeConfig::new("leaf", Epoch(2))
    };
    let mut node = Node::new(second(since), config, repository(template));
    write(&mut node, second(since));
    node
}

/// The last thing that a poller was told, which one believes for ever that goes by nothing else.
fn told(poller: &Poller) -> Amount {
    poller.lease.as_ref().map_or(Amount::ZERO, |grant| grant.capacity)
}

/// A poller that was granted everything at the beginning.
fn holder() -> Poller {
    let mut poller = Poller::new("old", 300.0, 0);
    poller.poll(&mut alone(1, 0, 0), 0);
    assert_eq!(poller.believes(0), units(ALL));
    poller
}

/// Three fields of its lease, as a client shows it that forgets all others.
fn forgets(ask: Ask) -> Ask {
    let three = |has: Has| Has { order: None, token: Vec::new(), lasts: None, ..has };
    let reports = ask.reports.into_iter();
    let reports = reports.map(|mut report| {
        report.has = report.has.map(three);
        report
    });
    Ask { reports: reports.collect(), ..ask }
}

#[test]
fn below_a_node_a_lease_of_before_is_left_until_its_end_and_then_told_to_be_over() {
    let unknown = || Record { unknown: Unknown::All, ..Record::default() };
    let known = || Record { epoch: Epoch(2), ..Record::default() };
    for record in [None, Some(unknown()), Some(known())] {
        let (mut poller, mut leaf) = (holder(), below(3, AGAIN, record));
        for now in AGAIN..LEASE {
            poller.poll(&mut leaf, now);
            assert_eq!(poller.believes(now), units(ALL), "at {now} s");
            assert_eq!(poller.expiry, LEASE, "it ends when it would have");
        }
        // There is nothing to be granted: the node above has not answered.
        for now in LEASE..LEASE + 20 {
            poller.poll(&mut leaf, now);
            assert_eq!(told(&poller), Amount::ZERO, "at {now} s");
        }
        hear_above(&mut leaf, second(LEASE + 20), 1, None);
        for now in [LEASE + 21, LEASE + 22] {
            poller.poll(&mut leaf, now);
            write(&mut leaf, second(now));
        }
        assert_eq!(poller.believes(LEASE + 22), units(4), "all that there is");
        let books = leaf.books(second(LEASE + 22), &resource()).expect("it was asked for");
        assert_eq!(books.children.len(), 1, "it was one holder all the time");
    }
}

#[test]
fn a_poller_that_is_better_off_as_a_newcomer_is_one() {
    let (mut poller, mut leaf) = (holder(), below(3, AGAIN, None));
    poller.lease.as_mut().expect("it has one").capacity = units(2);
    poller.poll(&mut leaf, AGAIN);
    let mut other = Poller::new("other", 1.0, 0);
    other.poll(&mut leaf, AGAIN);
    hear_above(&mut leaf, second(AGAIN), 1, None);
    poller.poll(&mut leaf, AGAIN + 1);
    assert_eq!(poller.believes(AGAIN + 1), units(3));
}

#[test]
fn a_poller_whose_node_has_lost_its_lease_is_told_when_its_own_is_over() {
    let mut leaf = below(1, 0, None);
    let mut poller = Poller::new("polls", 300.0, 0);
    poller.poll(&mut leaf, 0);
    hear_above(&mut leaf, second(0), 1, None);
    poller.poll(&mut leaf, 1);
    assert_eq!(told(&poller), units(4));
    // Nothing more is heard of the node above.
    for now in 2..LEASE {
        poller.poll(&mut leaf, now);
    }
    poller.poll(&mut leaf, LEASE);
    assert_eq!(told(&poller), Amount::ZERO, "it is somebody else's by now");
}

#[test]
fn a_lease_that_is_over_by_its_date_is_nothing_to_be_learnt() {
    // Dates of two servers may be a second apart.
    let end = second(LEASE - 1);
    for by in [false, true] {
        let (old, mut node) = (holder(), alone(3, LEASE - 1, LEASE));
        let mut ask = old.ask(old.lease.as_ref());
        if by {
            ask = forgets(ask);
        }
        let answer = node.ask(end, &ask).expect("a template covers it");
        assert_eq!(answer.grants[0].capacity, Amount::ZERO, "forgets: {by}");
        // One that lasts for longer is somebody's.
        let mut node = alone(3, LEASE - 2, LEASE);
        let answer = node.ask(second(LEASE - 2), &ask).expect("a template covers it");
        assert_eq!(answer.grants[0].capacity, units(ALL), "forgets: {by}");
    }
}

/// It does not know who led before, and for how long that one goes on.
#[test]
fn before_claims_are_open_a_root_that_will_learn_leaves_everybody_what_is_shown() {
    let (mut poller, mut node) = (holder(), unknown(AGAIN));
    let mut newcomer = Poller::new("new", 300.0, 0);
    for now in AGAIN..AGAIN + LEASE + AUTHORITY {
        let early = now < AGAIN + AUTHORITY;
        let shown = forgets(poller.ask(poller.lease.as_ref()));
        if early {
            let answer = node.ask(second(now), &shown).expect("a template covers it");
            assert_eq!(answer.grants[0].capacity, units(ALL), "at {now} s");
        }
        poller.poll(&mut node, now);
        newcomer.poll(&mut node, now);
        write(&mut node, second(now));
        assert_eq!((poller.believes(now), told(&newcomer)), (units(ALL), Amount::ZERO), "at {now} s");
        let books = node.books(second(now), &resource()).expect("it was asked for");
        assert_eq!(books.total, if early { 0 } else { u128::from(ALL) * 1_000_000 }, "at {now} s");
        assert!(!early || poller.expiry == LEASE, "it ends when it would have");
    }
}

#[test]
fn an_echo_says_how_long_others_may_go_on_as_well() {
    let mut first = alone(1, 0, 0);
    let (mut silent, mut shows) = (Poller::new("silent", 200.0, 0), Poller::new("shows", 100.0, 0));
    shows.poll(&mut first, 0);
    silent.poll(&mut first, AGAIN);
    assert_eq!((silent.believes(AGAIN), shows.believes(AGAIN)), (units(200), units(100)));
    // Leases are shorter from here on.
    let short = Duration::from_secs(10);
    let mut node = unknown(AGAIN);
    let template = Template { lease_length: short, refresh_interval: short / 5, learning: short, ..terms() };
    node.reload(second(AGAIN), repository(template));
    let mut newcomer = Poller::new("new", 300.0, 0);
    for now in AGAIN..AGAIN + LEASE {
        shows.poll(&mut node, now);
        newcomer.poll(&mut node, now);
        write(&mut node, second(now));
        let sum = [&silent, &shows, &newcomer].map(|poller| poller.believes(now).as_micros()).iter().sum();
        assert!(units(ALL) >= Amount::from_micros(sum), "at {now} s {sum} is believed");
    }
}

/// It is heard all the same, so what it gives back is somebody else's.
#[test]
fn a_poller_that_gives_a_part_back_is_answered_with_the_rest_where_nothing_can_be_granted() {
    let leader = |epoch, since, record| {
        let config = NodeConfig {
            drift: Drift::NONE,
            marks: true,
            keys: Some(TokenKeys::new(Key::new([7; 32]))),
            record: Some(record),
            ..NodeConfig::new("root", Epoch(epoch))
        };
        let mut node = Node::new(second(since), config, repository(terms()).at_version(7));
        write(&mut node, second(since));
        node
    };
    let poll = |poller: &mut Poller, node: &mut Node, now| {
        poller.poll(node, now);
        write(node, second(now));
        poller.poll(node, now);
    };
    let mut node = leader(1, 0, Record::default());
    let (mut holder, mut other) = (Poller::new("holds", 300.0, 0), Poller::new("other", 300.0, 0));
    poll(&mut holder, &mut node, 0);
    assert_eq!(holder.believes(0), units(ALL));
    // What is in force is older than what was.
    node.reload(second(1), repository(terms()).at_version(6));
    let mut ask = holder.ask(holder.lease.as_ref());
    ask.reports[0].held = Some(units(100));
    let answer = node.ask(second(2), &ask).expect("a template covers it");
    holder.lease = answer.grants.into_iter().next();
    assert_eq!(holder.believes(2), units(100));
    node.reload(second(3), repository(terms()).at_version(8));
    write(&mut node, second(3));
    poll(&mut other, &mut node, 4);
    assert_eq!((holder.believes(4), other.believes(4)), (units(100), units(150)));

    // Its token says more than it has been answered with since; the next leader believes the less of the two.
    let record = Record {
        epoch: Epoch(1),
        marks: [(resource(), units(ALL))].into(),
        stops: [(Epoch(1), second(AGAIN))].into(),
        longest_lease: Duration::from_secs(LEASE),
        config_version: 7,
        ..Record::default()
    };
    let mut next = leader(2, AGAIN, record);
    for now in [AGAIN + 1, AGAIN + 2, AGAIN + 3] {
        poll(&mut holder, &mut next, now);
        poll(&mut other, &mut next, now);
        let (holds, others) = (holder.believes(now), other.believes(now));
        assert!(holds.saturating_add(others) <= units(ALL), "at {now} s");
        assert!((units(100)..=units(150)).contains(&holds), "at {now} s {holds}");
    }
}
