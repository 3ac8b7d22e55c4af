//! Holders that poll and echo the whole lease, through the death of a leader: what they have is theirs until its end, and
//! where it is known that it counted when the leader stopped, for good.

use std::time::Duration;

use lessor_proto::message::{Ask, Band, Bands, Grant, Has, HolderKind, Lasts, Report, WallClock};
use lessor_proto::{Amount, Drift, Epoch, Incarnation, Time};
use lessor_server::node::{Node, NodeConfig, ParentConfig};
use lessor_server::record::Record;
use lessor_server::repository::{Legacy, Template};
use lessor_server::token::{Key, TokenKeys};

use super::holders::{client, repository, resource, template};

const CAPACITY: u64 = 300;
pub(super) const LEASE: u64 = 60;
const AUTHORITY: u64 = 4;
/// When the first leader dies, and the second one begins.
const DEATH: u64 = 100;
const SUCCESSION: u64 = 110;
/// Doorman's client asks no sooner than that.
const SOONEST: u64 = 5;

/// A client of Doorman's, in whatever language: it keeps what it does not know.
#[derive(Debug)]
pub(super) struct Poller {
    name: String,
    wants: f64,
    pub(super) lease: Option<Grant>,
    /// When its lease ends, in Unix time.
    pub(super) expiry: u64,
    next: u64,
    reaches: bool,
}

/// Clients, and whoever leads.
struct Street {
    node: Node,
    pollers: Vec<Poller>,
}

pub(super) fn second(second: u64) -> Time {
    Time::ZERO + Duration::from_secs(second)
}

fn config(epoch: u64, record: Record) -> NodeConfig {
    NodeConfig {
        record: Some(record),
        keys: Some(TokenKeys::new(Key::new([9; 32]))),
        drift: Drift::NONE,
        ..NodeConfig::new("root", Epoch(epoch))
    }
}

pub(super) fn terms() -> Template {
    let seconds = Duration::from_secs;
    Template { lease_length: seconds(LEASE), refresh_interval: seconds(16), ..template(CAPACITY as f64) }
}

/// The record that the first leader leaves behind. It stopped at `stop`, if anybody knows.
fn left(stop: Option<u64>) -> Record {
    Record {
        marks: [(resource(), Amount::from_units(CAPACITY))].into(),
        stops: stop.map(|stop| (Epoch(1), second(stop))).into_iter().collect(),
        longest_lease: Duration::from_secs(LEASE),
        authority: Duration::from_secs(AUTHORITY),
        ..Record::default()
    }
}

// === impl Poller ===

impl Poller {
    pub(super) fn new(name: &str, wants: f64, next: u64) -> Poller {
        Poller { name: name.to_owned(), wants, lease: None, expiry: 0, next, reaches: true }
    }

    /// The request that it makes, showing `lease`.
    pub(super) fn ask(&self, lease: Option<&Grant>) -> Ask {
        let has = |grant: &Grant| Has {
            capacity: grant.capacity,
            order: grant.order,
            token: grant.token.clone(),
            // It says nothing else of how long that is.
            lasts: Some(Lasts { length: grant.length, remaining: grant.length, counts: Duration::ZERO }),
            expiry: self.expiry,
        };
        Ask {
            kind: HolderKind::Client,
            holder: client(&self.name),
            incarnation: None,
            report_id: None,
            target_epoch: None,
            line: None,
            reports: vec![Report {
                resource: resource(),
                bands: Bands::from_elem(Band { priority: 0, subclients: 1, wants: self.wants }, 1),
                has: lease.map(has),
                held: None,
                domains: None,
                integer: None,
                peak: None,
                unenforced: None,
            }],
        }
    }

    pub(super) fn poll(&mut self, node: &mut Node, now: u64) {
        let answer = node.ask(second(now), &self.ask(self.lease.as_ref())).expect("a template covers it");
        self.next = now + SOONEST;
        if let Some(grant) = answer.grants.into_iter().next() {
            self.next = now + grant.refresh_interval.as_secs().max(SOONEST);
            self.expiry = (Duration::from_secs(now) + grant.length).as_secs();
            self.lease = Some(grant);
        }
    }

    pub(super) fn believes(&self, now: u64) -> Amount {
        let lease = self.lease.as_ref().filter(|_| now < self.expiry);
        lease.map_or(Amount::ZERO, |lease| lease.capacity)
    }
}

// === impl Street ===

impl Street {
    /// Five clients want `wants` each, and have had their shares for a while when their leader dies.
    fn new(wants: f64) -> Street {
        let node = Node::new(Time::ZERO, config(1, Record::default()), repository(terms()));
        let pollers = (0..5).map(|number| Poller::new(&format!("c{number}"), wants, number * 3)).collect();
        let mut street = Street { node, pollers };
        (0..DEATH).for_each(|now| street.step(now));
        street.pollers.iter_mut().for_each(|poller| poller.next = poller.next.max(SUCCESSION));
        street
    }

    /// Lets every poller that is due ask. Never more is believed than there is.
    fn step(&mut self, now: u64) {
        for poller in self.pollers.iter_mut().filter(|poller| poller.next <= now && poller.reaches) {
            poller.poll(&mut self.node, now);
        }
        let sum = self.believed(now);
        assert!(sum <= Amount::from_units(CAPACITY), "at {now} s {sum} is believed");
    }

    fn succeed(&mut self, record: Record) {
        self.node = Node::new(second(SUCCESSION), config(2, record), repository(terms()));
    }

    fn believed(&self, now: u64) -> Amount {
        self.pollers.iter().map(|poller| poller.believes(now)).fold(Amount::ZERO, Amount::saturating_add)
    }

    /// Seconds until `end` in which each had nothing.
    fn seconds_without(&mut self, end: u64) -> Vec<u64> {
        let mut without = vec![0; self.pollers.len()];
        for now in SUCCESSION..end {
            self.step(now);
            for (without, poller) in without.iter_mut().zip(&self.pollers) {
                *without += u64::from(poller.believes(now) == Amount::ZERO);
            }
        }
        without
    }
}

#[test]
fn a_fail_over_takes_nothing_from_those_who_echo_their_leases() {
    // A leader whose clock is known within a second, and that may have gone on for its authority.
    let mut street = Street::new(80.0);
    let share = Amount::from_units(60);
    assert!(street.pollers.iter().all(|poller| poller.believes(DEATH - 1) == share), "{:?}", street.pollers);
    street.succeed(left(Some(SUCCESSION + 1 + AUTHORITY)));
    assert_eq!(street.seconds_without(SUCCESSION + 300), [0; 5]);
    assert!(street.pollers.iter().all(|poller| poller.believes(SUCCESSION + 299) == share));
    // All of it is charged to them, and nobody else's part was taken for it.
    let books = street.node.books(second(SUCCESSION + 299), &resource()).expect("somebody holds");
    assert_eq!((books.ghost, books.total), (Amount::ZERO, u128::from(CAPACITY) * 1_000_000));
}

#[test]
fn claims_are_freed_at_once() {
    let mut street = Street::new(80.0);
    street.succeed(left(Some(SUCCESSION + 1 + AUTHORITY)));
    street.seconds_without(SUCCESSION + 30);
    // A fifth of what there is goes to somebody new long before the old leases would have ended.
    street.pollers.push(Poller::new("new", 50.0, SUCCESSION + 30));
    for now in SUCCESSION + 30..SUCCESSION + 60 {
        street.step(now);
    }
    assert_eq!(street.pollers[5].believes(SUCCESSION + 59), Amount::from_units(50));
}

#[test]
fn two_processes_of_one_id_are_two_through_a_fail_over() {
    let mut street = Street::new(80.0);
    // They have the same amount, and nothing tells them apart but their tokens.
    street.pollers.iter_mut().for_each(|poller| poller.name = "copied".to_owned());
    street.node = Node::new(Time::ZERO, config(1, Record::default()), repository(terms()));
    street.pollers.iter_mut().for_each(|poller| (poller.lease, poller.next) = (None, 0));
    (0..DEATH).for_each(|now| street.step(now));
    // The first has claimed what it has before the others come.
    street.pollers[0].next = SUCCESSION;
    street.pollers[1..].iter_mut().for_each(|poller| poller.next = SUCCESSION + 12);
    street.succeed(left(Some(SUCCESSION + 1 + AUTHORITY)));
    assert_eq!(street.seconds_without(SUCCESSION + 100), [0; 5]);
    let books = street.node.books(second(SUCCESSION + 99), &resource()).expect("somebody holds");
    let charged: Vec<Amount> = books.children.iter().map(|child| child.charge).collect();
    assert_eq!(charged, [Amount::from_units(60); 5]);
}

#[test]
fn where_nobody_knows_when_the_leader_stopped_a_lease_is_kept_until_its_end() {
    let mut street = Street::new(80.0);
    let ends: Vec<u64> = street.pollers.iter().map(|poller| poller.expiry).collect();
    street.succeed(left(None));
    for now in SUCCESSION..SUCCESSION + 120 {
        street.step(now);
        for (poller, end) in street.pollers.iter().zip(&ends) {
            // It asks once more before the end, when the lease does not last until it asks again.
            let keeps = now + SOONEST < *end;
            assert!(!keeps || poller.believes(now) == Amount::from_units(60), "at {now} s {poller:?}");
        }
    }
    let share = Amount::from_units(60);
    assert!(street.pollers.iter().all(|poller| poller.believes(SUCCESSION + 119) == share));
}

/// Until that is right each lease from before seems to go on, and the first leader may have stopped when nobody knows.
#[test]
fn what_is_left_to_pollers_is_over_before_it_is_lent_to_others_where_the_date_is_behind() {
    for (stop, silent_from) in [None, Some(SUCCESSION + 1 + AUTHORITY)]
        .into_iter()
        .flat_map(|stop| [1, 3, 8, 30, LEASE].map(|seconds| (stop, SUCCESSION + seconds)))
    {
        let mut street = Street::new(80.0);
        street.succeed(left(stop));
        street.node.set_date(second(SUCCESSION), WallClock { since_epoch: Duration::ZERO });
        street.pollers.push(Poller::new("new", 300.0, SUCCESSION));
        for now in SUCCESSION..SUCCESSION + 200 {
            street.pollers[0].reaches = now < silent_from;
            street.step(now);
        }
        let new = street.pollers[5].believes(SUCCESSION + 199);
        assert!(new >= Amount::from_units(60), "{new}");
    }
}

#[test]
fn an_echo_is_the_very_lease_and_nothing_is_kept_of_it() {
    let mut street = Street::new(80.0);
    street.succeed(left(None));
    let shown = street.pollers[0].lease.clone().expect("it has a lease");
    let (lived, expiry) = (Duration::from_millis(1_700), street.pollers[0].expiry);
    let ask = street.pollers[0].ask(Some(&shown));
    let answer = street.node.ask(second(SUCCESSION) + lived, &ask).expect("a template covers it");
    let grant = &answer.grants[0];
    assert_eq!(
        (grant.capacity, grant.order, &grant.token),
        (shown.capacity, shown.order, &shown.token),
        "{grant:?}"
    );
    assert_eq!(Duration::from_secs(SUCCESSION) + lived + grant.length, Duration::from_secs(expiry));
    let books = street.node.books(second(SUCCESSION), &resource()).expect("it was asked for");
    assert_eq!((books.children.len(), books.ghost), (0, Amount::from_units(CAPACITY)));
    // It uses less by now: that is not raised again.
    let less = Grant { capacity: Amount::from_units(7), ..shown };
    let ask = street.pollers[0].ask(Some(&less));
    let answer = street.node.ask(second(SUCCESSION), &ask).expect("a template covers it");
    assert_eq!(answer.grants[0].capacity, Amount::from_units(7));
}

#[test]
fn what_had_ended_when_the_leader_stopped_is_nobodys_claim() {
    let mut street = Street::new(80.0);
    // One was cut off, and its lease ended under the first leader.
    street.pollers[0].reaches = false;
    street.pollers[0].expiry = DEATH;
    // By the clock of the first leader the last leases ended before it stopped.
    street.succeed(left(Some(DEATH + LEASE + 20)));
    street.pollers[0].reaches = true;
    for now in SUCCESSION..SUCCESSION + LEASE + AUTHORITY {
        street.step(now);
        let books = street.node.books(second(now), &resource()).expect("it was asked for");
        assert_eq!(books.ghost, Amount::from_units(CAPACITY), "nothing is claimed of it");
    }
}

#[test]
fn a_token_of_another_form_or_of_another_makes_a_newcomer() {
    let mut street = Street::new(80.0);
    street.succeed(left(Some(SUCCESSION + 1 + AUTHORITY)));
    let shown = street.pollers[0].lease.clone().expect("it has a lease");
    let others = street.pollers[1].lease.clone().expect("it has a lease").token;
    for token in [7_u64.to_le_bytes().to_vec(), others, Vec::new()] {
        let ask = street.pollers[0].ask(Some(&Grant { token, ..shown.clone() }));
        for now in [SUCCESSION, SUCCESSION + 10, SUCCESSION + 11] {
            let answer = street.node.ask(second(now), &ask).expect("a template covers it");
            assert_eq!(answer.grants[0].capacity, Amount::ZERO, "{ask:?}");
        }
    }
    let books = street.node.books(second(SUCCESSION + 11), &resource()).expect("it was asked for");
    assert_eq!(books.ghost, Amount::from_units(CAPACITY));
}

#[test]
fn whoever_gets_more_as_a_newcomer_is_one() {
    // 200 of 300 were out, and nobody knows when the first leader stopped.
    let mut street = Street::new(40.0);
    let record = Record { marks: [(resource(), Amount::from_units(200))].into(), ..left(None) };
    street.succeed(record);
    street.pollers.truncate(2);
    assert_eq!(street.seconds_without(SUCCESSION + 40), [0; 2]);
    let books = street.node.books(second(SUCCESSION + 39), &resource()).expect("it was asked for");
    let charged: Vec<Amount> = books.children.iter().map(|child| child.charge).collect();
    assert_eq!(charged, [Amount::from_units(40); 2], "before the old leases have ended");
}

#[test]
fn a_node_without_a_lease_of_its_own_echoes_too() {
    let mut street = Street::new(80.0);
    let parent = ParentConfig {
        servers: vec!["above:1".into()],
        transport: lessor_client::Transport::Poll,
        eager: false,
    };
    let config = NodeConfig { parent: Some(parent), ..config(2, left(Some(SUCCESSION + 1 + AUTHORITY))) };
    street.node = Node::new(second(SUCCESSION), config, repository(terms()));
    for now in SUCCESSION..SUCCESSION + 30 {
        street.step(now);
        assert_eq!(street.believed(now), Amount::from_units(CAPACITY), "at {now} s");
    }
}

#[test]
fn what_is_sticky_is_claimed_in_two_polls_too() {
    let hold = Duration::from_secs(600);
    let sticky = Template { legacy: Legacy::Sticky { hold }, ..terms() };
    let mut first = Node::new(Time::ZERO, config(1, Record::default()), repository(sticky.clone()));
    let mut poller = Poller::new("doorman", 80.0, 0);
    poller.poll(&mut first, 0);
    let mut node = Node::new(second(SUCCESSION), config(2, left(None)), repository(sticky));
    let books = |node: &Node, now| node.books(second(now), &resource()).expect("it was asked for");
    // Too early; then the lease, which ended by the date, is this leader's; and then it is claimed.
    let ghost = |node: &mut Node, poller: &mut Poller, now| {
        poller.poll(node, now);
        let lease = poller.lease.as_ref().expect("it has one");
        assert_eq!(lease.capacity, Amount::from_units(80), "at {now} s");
        (lease.order.expect("a number").epoch, books(node, now).ghost.floor_units())
    };
    assert_eq!(ghost(&mut node, &mut poller, SUCCESSION + 1), (Epoch(1), 300));
    assert_eq!(ghost(&mut node, &mut poller, SUCCESSION + 6), (Epoch(2), 300));
    assert_eq!(ghost(&mut node, &mut poller, SUCCESSION + 11), (Epoch(2), 220));
    assert_eq!(poller.expiry, SUCCESSION + 11 + LEASE);
}

/// A leaf that dies may have granted to a client that goes on for longer than the leaf's own lease: the node above would
/// grant that again.
#[test]
fn what_is_sticky_is_refused_below_a_node_with_the_reason() {
    let sticky = Template { legacy: Legacy::Sticky { hold: Duration::from_secs(600) }, ..terms() };
    let parent = ParentConfig {
        servers: vec!["above:1".into()],
        transport: lessor_client::Transport::Poll,
        eager: false,
    };
    let config = NodeConfig { parent: Some(parent), ..NodeConfig::new("leaf", Epoch(1)) };
    let mut leaf = Node::new(Time::ZERO, config, repository(sticky.clone()));
    let poller = Poller::new("doorman", 80.0, 0);
    let refusal = leaf.ask(Time::ZERO, &poller.ask(None)).unwrap_err().to_string();
    assert!(refusal.contains("\"*\" is legacy: sticky"), "{refusal}");
    assert!(refusal.contains("node \"leaf\""), "{refusal}");
    // Who draws an incarnation is not meant, and at the root nobody is refused.
    let ours = Ask { incarnation: Some(Incarnation(7)), ..poller.ask(None) };
    assert!(leaf.ask(Time::ZERO, &ours).is_ok());
    let mut root = Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), repository(sticky));
    assert!(root.ask(Time::ZERO, &poller.ask(None)).is_ok());
}
