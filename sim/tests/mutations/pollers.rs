//! Holders that poll as Doorman's clients, and what a successor does with the leases that they show.
//!
//! Capacity is 100, leases last 60 s, a leader that is cut off goes on for 4 s, and clocks are perfect.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_proto::message::{Ask, Band, Bands, Grant, Has, HolderKind, Release, Report, WallClock};
use lessor_proto::{Amount, ClientId, Drift, Epoch, Time};
use lessor_server::node::{Node, NodeConfig};
use lessor_server::record::{Record, Unknown};
use lessor_server::repository::{Legacy, Repository, Template};
use lessor_server::token::{Key, TokenKeys};
use lessor_sim::mutation::Mutation;

use super::hall::{LEASE, repository, resource, units};

pub(super) const CAPACITY: u64 = 100;
const AUTHORITY: u64 = 4;

/// A client, and the lease that it adopted last.
#[derive(Default)]
pub(super) struct Poller {
    name: &'static str,
    lease: Option<Grant>,
    expiry: u64,
    /// It shows the fields that Doorman knows, and no other.
    forgets: bool,
}

/// A request under way.
pub(super) struct Letter(pub(super) Ask);

pub(super) fn second(second: u64) -> Time {
    Time::ZERO + Duration::from_secs(second)
}

fn lead(without: Option<Mutation>, epoch: u64, since: u64, record: Record) -> Node {
    let config = NodeConfig {
        record: Some(record),
        keys: Some(TokenKeys::new(Key::new([7; 32]))),
        drift: Drift::NONE,
        rules: without.map(Mutation::node).unwrap_or_default(),
        ..NodeConfig::new("root", Epoch(epoch))
    };
    Node::new(second(since), config, repository(CAPACITY))
}

/// The second leader, which begins at `since`. The first one had stopped at `stop`, if that is known.
fn successor(without: Option<Mutation>, since: u64, stop: Option<u64>) -> Node {
    let record = Record {
        marks: BTreeMap::from([(resource(), units(CAPACITY))]),
        stops: stop.map(|stop| (Epoch(1), second(stop))).into_iter().collect(),
        longest_lease: LEASE,
        authority: Duration::from_secs(AUTHORITY),
        ..Record::default()
    };
    lead(without, 2, since, record)
}

// === impl Poller ===

impl Poller {
    pub(super) fn new(name: &'static str) -> Poller {
        Poller { name, ..Poller::default() }
    }

    pub(super) fn letter(&self, wants: u64) -> Letter {
        let band = Band { priority: 0, subclients: 1, wants: wants as f64 };
        let has = self.lease.as_ref().map(|grant| Has {
            capacity: grant.capacity,
            order: grant.order.filter(|_| !self.forgets),
            token: if self.forgets { Vec::new() } else { grant.token.clone() },
            lasts: None,
            expiry: self.expiry,
        });
        let bands = [band].into_iter().collect::<Bands>();
        let report = Report {
            resource: resource(),
            bands,
            has,
            held: None,
            domains: None,
            integer: None,
            peak: None,
            unenforced: None,
        };
        Letter(Ask {
            kind: HolderKind::Client,
            holder: ClientId::new(self.name, 16).expect("a name"),
            incarnation: None,
            report_id: None,
            target_epoch: None,
            line: None,
            reports: vec![report],
        })
    }

    /// Asks, and adopts the answer.
    pub(super) fn poll(&mut self, node: &mut Node, now: u64, wants: u64) {
        let answer = node.ask(second(now), &self.letter(wants).0).expect("it is asked well");
        if let Some(grant) = answer.grants.into_iter().next() {
            self.expiry = (Duration::from_secs(now) + grant.length).as_secs();
            self.lease = Some(grant);
        }
    }

    /// The last thing that it was told, which one believes for ever that goes by nothing else.
    pub(super) fn told(&self) -> Amount {
        self.lease.as_ref().map_or(Amount::ZERO, |lease| lease.capacity)
    }

    pub(super) fn believes(&self, now: u64) -> Amount {
        self.lease.as_ref().filter(|_| now < self.expiry).map_or(Amount::ZERO, |lease| lease.capacity)
    }
}

pub(super) fn exceeded(now: u64, pollers: &[&Poller]) -> Option<String> {
    let sum = pollers.iter().map(|it| it.believes(now)).fold(Amount::ZERO, Amount::saturating_add);
    (sum > units(CAPACITY)).then(|| format!("{sum} of {CAPACITY} are believed at {now} s"))
}

/// One has everything, and a stranger gives it back in its name; then another one comes.
pub(crate) fn given_back_by_a_stranger(without: Option<Mutation>) -> Option<String> {
    let (mut a, mut b) = (Poller::new("a"), Poller::new("b"));
    let mut node = lead(without, 1, 0, Record::default());
    a.poll(&mut node, 0, CAPACITY);
    let (holder, resources) = (ClientId::new("a", 16).expect("a name"), vec![resource()]);
    node.release(second(1), &Release { holder, incarnation: None, report_id: None, resources });
    b.poll(&mut node, 2, CAPACITY);
    exceeded(2, &[&a, &b])
}

/// The lease of one has ended, and another one has everything. A leader that knows nothing is shown the first before it hears of
/// the second, whole or without what Doorman does not know.
pub(crate) fn shown_when_it_is_over(without: Option<Mutation>) -> Option<String> {
    let forgets = Poller { forgets: true, ..Poller::new("a") };
    [Poller::new("a"), forgets].into_iter().find_map(|a| learnt_when_it_is_over(without, a))
}

fn learnt_when_it_is_over(without: Option<Mutation>, mut a: Poller) -> Option<String> {
    let mut b = Poller::new("b");
    let mut first = lead(without, 1, 0, Record::default());
    a.poll(&mut first, 0, CAPACITY);
    b.poll(&mut first, 70, CAPACITY);
    assert_eq!((a.believes(70), b.believes(70)), (Amount::ZERO, units(CAPACITY)), "it is the other's now");
    let mut next = lead(without, 2, 80, Record { unknown: Unknown::All, ..Record::default() });
    let template = Template { learning: LEASE, ..Template::clone(&repository(CAPACITY).templates()[0]) };
    next.reload(second(80), Repository::new(vec![template]).expect("it holds together"));
    a.poll(&mut next, 81, CAPACITY);
    exceeded(81, &[&a, &b])
}

/// Two share everything, and the first is answered with its lease again and again; the leases of the first leader end, and a
/// newcomer comes. Whoever echoes keeps what it has until its end, and no longer.
pub(crate) fn echoed_again(without: Option<Mutation>) -> Option<String> {
    let (mut a, mut c) = (Poller::new("a"), Poller::new("c"));
    let mut first = lead(without, 1, 0, Record::default());
    a.poll(&mut first, 0, CAPACITY);
    let mut next = successor(without, 10, None);
    for now in [12, 20, 50] {
        a.poll(&mut next, now, CAPACITY);
        if a.believes(now) != units(CAPACITY) {
            return Some(format!("{} is left at {now} s", a.believes(now)));
        }
    }
    c.poll(&mut next, 75, CAPACITY);
    exceeded(75, &[&a, &c])
}

/// Two share everything, which counts for two minutes without a word. The first is answered with its lease when most of that is
/// over, and cut off; the other one is dead. What is left of the dead one's is there for a newcomer in time, and what the first
/// goes on with when that is over too.
pub(crate) fn echoed_and_cut_off(without: Option<Mutation>) -> Option<String> {
    const HOLD: u64 = 120;
    let sticky = || {
        let legacy = Legacy::Sticky { hold: Duration::from_secs(HOLD) };
        let template = Template { legacy, ..Template::clone(&repository(CAPACITY).templates()[0]) };
        Repository::new(vec![template]).expect("it holds together")
    };
    let (mut a, mut b, mut c) = (Poller::new("a"), Poller::new("b"), Poller::new("c"));
    let mut first = lead(without, 1, 0, Record::default());
    first.reload(second(0), sticky());
    a.poll(&mut first, 0, 60);
    b.poll(&mut first, 0, 40);
    let record = Record {
        marks: BTreeMap::from([(resource(), units(CAPACITY))]),
        longest_lease: Duration::from_secs(HOLD),
        authority: Duration::from_secs(AUTHORITY),
        ..Record::default()
    };
    let mut next = lead(without, 2, 10, record);
    next.reload(second(10), sticky());
    a.poll(&mut next, 100, 60);
    let over = 10 + AUTHORITY + HOLD;
    c.poll(&mut next, over + 1, CAPACITY);
    assert!(c.believes(over + 1) >= units(40), "nobody has what the dead one had");
    let sum = c.believes(over + 1).saturating_add(units(60));
    c.poll(&mut next, 100 + HOLD, CAPACITY);
    c.poll(&mut next, 101 + HOLD, CAPACITY);
    assert_eq!(c.believes(101 + HOLD), units(CAPACITY), "nobody has anything else");
    (sum > units(CAPACITY)).then(|| format!("{sum} of {CAPACITY} are used at {} s", over + 1))
}

/// The lease of the first has ended under the first leader, which has granted it again before it stopped. Shown to the
/// second leader, it is nobody's claim.
pub(crate) fn granted_again(without: Option<Mutation>) -> Option<String> {
    // The key of the first leader has gone at 58, and it goes on until 62.
    granted_again_by(without, 61_000, 58 + AUTHORITY)
}

/// The same of a first leader that acts at `last_act` for the last time, in milliseconds, and has stopped by `stop`, as the second
/// one knows.
pub(crate) fn granted_again_by(without: Option<Mutation>, last_act: u64, stop: u64) -> Option<String> {
    shown_later(&mut successor(without, 58, Some(stop)), last_act)
}

/// The same below a leader whose date is two seconds behind: by that the lease had not ended.
pub(crate) fn whose_date_is_late(without: Option<Mutation>) -> Option<String> {
    let mut next = successor(without, 58, Some(58 + AUTHORITY));
    next.set_date(second(58), WallClock { since_epoch: Duration::from_secs(55) });
    shown_later(&mut next, 61_000)
}

fn shown_later(next: &mut Node, last_act: u64) -> Option<String> {
    let (mut a, mut b, mut c) = (Poller::new("a"), Poller::new("b"), Poller::new("c"));
    let mut first = lead(None, 1, 0, Record::default());
    a.poll(&mut first, 0, 60);
    b.poll(&mut first, 1, CAPACITY);
    let answer =
        first.ask(Time::from_nanos(last_act * 1_000_000), &b.letter(CAPACITY).0).expect("it is asked well");
    (b.lease, b.expiry) = (answer.grants.into_iter().next(), last_act / 1_000 + LEASE.as_secs());
    if b.told() != units(CAPACITY) {
        return Some(format!("the other one has {}", b.told()));
    }
    for (now, wants) in [(63, 60), (64, 60), (65, 0), (66, 0)] {
        a.poll(next, now, wants);
    }
    c.poll(next, 67, CAPACITY);
    exceeded(67, &[&a, &b, &c])
}

/// It had less before, and what it said then is read when it has claimed what it has since, and knows of no answer to that: it
/// promised nothing about what it claims.
pub(crate) fn shown_before_it_grew(without: Option<Mutation>) -> Option<String> {
    let (mut a, mut b, mut c) = (Poller::new("a"), Poller::new("b"), Poller::new("c"));
    let mut first = lead(without, 1, 0, Record::default());
    a.poll(&mut first, 0, 20);
    let late = a.letter(20);
    a.poll(&mut first, 1, 60);
    b.poll(&mut first, 1, 40);
    let mut next = successor(without, 10, Some(10 + AUTHORITY));
    for now in [15, 16] {
        b.poll(&mut next, now, 40);
    }
    a.poll(&mut next, 15, 60);
    if (a.believes(16), b.believes(16)) != (units(60), units(40)) {
        return Some(format!("{} is left of 60, and {} of 40", a.believes(16), b.believes(16)));
    }
    for letter in [a.letter(20), late] {
        next.ask(second(16), &letter.0).expect("it is asked well");
    }
    c.poll(&mut next, 17, CAPACITY);
    exceeded(17, &[&a, &b, &c])
}

/// The first is answered by the second leader before the first one has stopped, and goes back to that one; its next request to the
/// second leader is read late. What it gives back to the first leader is given to another there.
pub(crate) fn back_and_forth(without: Option<Mutation>) -> Option<String> {
    let (mut a, mut b, mut c) = (Poller::new("a"), Poller::new("b"), Poller::new("c"));
    let mut first = lead(without, 1, 0, Record::default());
    a.poll(&mut first, 0, 60);
    b.poll(&mut first, 0, CAPACITY);
    let mut next = successor(without, 10, Some(10 + AUTHORITY));
    a.poll(&mut next, 11, 60);
    let late = a.letter(60);
    a.poll(&mut first, 12, 20);
    a.poll(&mut first, 12, 20);
    b.poll(&mut first, 13, CAPACITY);
    if (a.believes(13), b.believes(13)) != (units(20), units(80)) {
        return Some(format!("{} and {} under the first leader", a.believes(13), b.believes(13)));
    }
    // Its answer is not the one to the last request of the poller.
    next.ask(second(15), &late.0).expect("it is asked well");
    for now in 16..20 {
        a.poll(&mut next, now, 20);
    }
    if a.believes(20) != units(20) {
        return Some(format!("{} is left of 20", a.believes(20)));
    }
    c.poll(&mut next, 20, CAPACITY);
    exceeded(20, &[&a, &b, &c])
}

/// A request is read long after it was sent, and shows a lease that was given back since, to be another's. That one keeps it.
pub(crate) fn read_late(without: Option<Mutation>) -> Option<String> {
    let (mut a, mut b) = (Poller::new("a"), Poller::new("b"));
    let mut first = lead(without, 1, 0, Record::default());
    a.poll(&mut first, 0, 60);
    b.poll(&mut first, 0, CAPACITY);
    let late = a.letter(60);
    a.poll(&mut first, 1, 20);
    a.poll(&mut first, 2, 20);
    b.poll(&mut first, 3, CAPACITY);
    let mut next = successor(without, 13, Some(13 + AUTHORITY));
    next.ask(second(18), &late.0).expect("it is asked well");
    for now in 19..22 {
        a.poll(&mut next, now, 20);
        b.poll(&mut next, now, 80);
        let (a, b) = (a.believes(now), b.believes(now));
        if (a, b) != (units(20), units(80)) {
            return Some(format!("{a} is left of 20, and {b} of 80"));
        }
    }
    None
}

/// The same of a token that says what nobody has granted: it is believed by nobody.
pub(crate) fn forged(without: Option<Mutation>) -> Option<String> {
    let (mut a, mut b) = (Poller::new("a"), Poller::new("b"));
    let mut first = lead(without, 1, 0, Record::default());
    a.poll(&mut first, 0, 10);
    b.poll(&mut first, 0, CAPACITY);
    let mut next = successor(without, 10, Some(10 + AUTHORITY));
    if let Some(lease) = &mut a.lease {
        lease.capacity = units(CAPACITY);
    }
    for now in 15..18 {
        a.poll(&mut next, now, CAPACITY);
        if a.believes(now) > units(10) {
            return Some(format!("{} are believed that were 10", a.believes(now)));
        }
    }
    b.poll(&mut next, 18, CAPACITY);
    exceeded(18, &[&a, &b])
}
