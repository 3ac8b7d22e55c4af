//! Gauges whose units do not suffice: stories in text, and laws under holders that obey at once.
//!
//! Besides the directives of all stories there is `terms [rotate=fair] [quantum=5] [legacy=expire] [hold=3600]
//! [fraction=1]`: the template changes.

use std::collections::BTreeMap;
use std::time::Duration;

use datadriven::{TestCase, walk};
use lessor_proto::message::{Ask, Band, Bands, Grant, Has, HolderKind, Report};
use lessor_proto::{Amount, Epoch, Incarnation, ReportId, Time};
use lessor_server::node::NodeConfig;
use lessor_server::repository::{Field, Fraction, Kind, Legacy, Rotate, Template};
use proptest::prelude::*;

use super::holders::{Town, client, repository, resource, template};
use super::listeners::Hall;
use super::stories;

#[test]
fn gauge_stories() {
    walk("tests/node/gauges", |file| {
        let mut town = Town::new(template(0.0), 1);
        file.run(|case| run(&mut town, case));
    });
}

/// A story of ours, or one of everybody's.
pub(super) fn run(town: &mut Town, case: &TestCase) -> String {
    if case.directive != "terms" {
        return stories::run(town, case);
    }
    let mut terms = Template::clone(&town.node.repository().templates()[0]);
    let word = |key: &str| case.args.get(key).map(|values| values.join(""));
    let number = |key: &str| word(key).map(|word| word.parse::<f64>().expect("a number"));
    terms.rotate = word("rotate").map(|word| match word.as_str() {
        "fair" => Rotate::Fair,
        "sticky" => Rotate::Sticky,
        _ => Rotate::None,
    });
    terms.quantum = number("quantum").map(Duration::from_secs_f64);
    let hold = Duration::from_secs_f64(number("hold").unwrap_or(3_600.0));
    terms.legacy = match word("legacy").as_deref() {
        Some("deny") => Legacy::Deny,
        Some("sticky") => Legacy::Sticky { hold },
        _ => Legacy::Expire,
    };
    terms.legacy_max_fraction =
        Fraction::check(Field::LegacyMaxFraction, number("fraction").unwrap_or(1.0)).expect("a fraction");
    town.node.reload(town.now, repository(terms));
    String::new()
}

/// Somebody who wants units.
#[derive(Clone, Debug)]
struct Wanter {
    bands: Vec<Band>,
    /// Polls rather than listens.
    polls: bool,
    /// When it comes.
    comes: Duration,
}

/// One that polls.
#[derive(Clone, Default, Debug)]
struct Poller {
    lease: Option<(Grant, Time)>,
    reports: u64,
    due: Time,
}

/// A gauge with everybody who wants some of it.
struct Pool {
    hall: Hall,
    wanters: BTreeMap<String, Wanter>,
    pollers: BTreeMap<String, Poller>,
    beats: BTreeMap<String, Time>,
    capacity: u64,
}

// === impl Pool ===

impl Pool {
    fn new(terms: Template, wanters: Vec<Wanter>) -> Pool {
        let capacity = terms.capacity.floor_units();
        let named = wanters.into_iter().enumerate().map(|(index, wanter)| (format!("w{index:02}"), wanter));
        Pool {
            hall: Hall::new(terms, NodeConfig::new("root", Epoch(1))),
            wanters: named.collect(),
            pollers: BTreeMap::new(),
            beats: BTreeMap::new(),
            capacity,
        }
    }

    /// The next thing happens, not after `end`.
    fn step(&mut self, end: Time) {
        let comes =
            self.wanters.iter().filter(|(name, _)| !self.is_here(name)).map(|(_, w)| Time::ZERO + w.comes);
        let polls = self.pollers.values().map(|poller| poller.due);
        let next =
            comes.chain(polls).chain(self.beats.values().copied()).chain(self.hall.node.next_deadline());
        let next = next.min().unwrap_or(end).clamp(self.hall.now, end);
        self.hall.until(next);
        let now = self.hall.now;
        for name in self.wanters.keys().cloned().collect::<Vec<_>>() {
            let is_due = match (self.pollers.get(&name), self.beats.get(&name)) {
                (Some(poller), _) => poller.due <= now,
                (_, Some(&beat)) => beat <= now,
                (None, None) => Time::ZERO + self.wanters[&name].comes <= now,
            };
            if is_due {
                self.speak(&name);
                self.hall.hear();
                self.check();
            }
        }
        self.check();
    }

    fn is_here(&self, name: &str) -> bool {
        self.pollers.contains_key(name) || self.beats.contains_key(name)
    }

    fn speak(&mut self, name: &str) {
        let wanter = self.wanters[name].clone();
        if wanter.polls {
            return self.poll(name, &wanter);
        }
        let bands = Bands::from_vec(wanter.bands.clone());
        match self.beats.contains_key(name) {
            true => self.hall.report(name, None, None, true),
            false => {
                self.hall.hello(name, kind(&wanter), None);
                self.hall.listeners.get_mut(name).expect("it said hello").prompt = true;
                self.hall.report(name, Some(bands), None, false);
            }
        }
        self.beats.insert(name.to_owned(), self.hall.now + Duration::from_secs(5));
    }

    /// Asks, and again at once if the answer takes something away.
    fn poll(&mut self, name: &str, wanter: &Wanter) {
        let now = self.hall.now;
        for _ in 0..2 {
            let poller = self.pollers.entry(name.to_owned()).or_default();
            poller.reports += 1;
            let has = poller.lease.as_ref().map(|(grant, _)| Has {
                capacity: grant.capacity,
                order: grant.order,
                token: Vec::new(),
                lasts: None,
                expiry: 0,
            });
            let bands = Bands::from_vec(wanter.bands.clone());
            let ask = Ask {
                kind: kind(wanter),
                holder: client(name),
                incarnation: Some(Incarnation(1)),
                report_id: Some(ReportId(poller.reports)),
                target_epoch: None,
                reports: vec![Report {
                    resource: resource(),
                    bands,
                    has,
                    held: None,
                    domains: None,
                    integer: None,
                    peak: None,
                    unenforced: None,
                }],
                line: None,
            };
            let answer = self.hall.node.ask(now, &ask).expect("a template covers it");
            let poller = self.pollers.get_mut(name).expect("it was put there");
            let grant = answer.grants.into_iter().next().expect("one grant");
            let wait = answer.retry.unwrap_or(grant.refresh_interval).min(grant.refresh_interval);
            poller.due = now + wait;
            let again = grant.ack_wanted;
            poller.lease = Some((grant.clone(), now + grant.length));
            if !again {
                break;
            }
        }
    }

    /// The amount that somebody believes to have.
    fn has(&self, name: &str) -> Amount {
        let lease = match self.pollers.get(name) {
            Some(poller) => poller.lease.as_ref(),
            None => self.hall.listeners.get(name).and_then(|listener| listener.lease.as_ref()),
        };
        lease.filter(|(_, end)| *end > self.hall.now).map_or(Amount::ZERO, |(grant, _)| grant.capacity)
    }

    /// Whole units, and no more of them than there are; in what is believed and in what is due.
    fn check(&self) {
        let units: Vec<Amount> = self.wanters.keys().map(|name| self.has(name)).collect();
        assert!(units.iter().all(|&amount| amount == Amount::from_units(amount.floor_units())), "{units:?}");
        let sum: u64 = units.iter().map(|amount| amount.floor_units()).sum();
        assert!(sum <= self.capacity, "{sum} units of {} at {:?}", self.capacity, self.hall.now);
        if let Some(books) = self.hall.node.books(self.hall.now, &resource()) {
            let due: u64 =
                books.children.iter().map(|child| child.share.map_or(0, Amount::floor_units)).sum();
            assert!(due <= self.capacity, "{due} units of {} are due at {:?}", self.capacity, self.hall.now);
        }
    }

    /// The amounts due to everybody on average: the water level, found by halving.
    fn shares(&self) -> BTreeMap<String, f64> {
        let demand =
            |w: &Wanter| w.bands.iter().map(|band| (f64::from(band.subclients), band.wants)).collect();
        let demands: BTreeMap<&String, Vec<(f64, f64)>> =
            self.wanters.iter().map(|(name, wanter)| (name, demand(wanter))).collect();
        let (mut low, mut high) = (0.0, 1e3);
        let share = |level: f64, demand: &[(f64, f64)]| -> f64 {
            demand.iter().map(|&(weight, wants)| wants.min(level * weight)).sum()
        };
        for _ in 0..200 {
            let level = (low + high) / 2.0;
            let sum: f64 = demands.values().map(|demand| share(level, demand)).sum();
            if sum > self.capacity as f64 { high = level } else { low = level }
        }
        demands.into_iter().map(|(name, demand)| (name.clone(), share(low, &demand))).collect()
    }
}

fn kind(wanter: &Wanter) -> HolderKind {
    match wanter.bands.iter().any(|band| band.subclients > 1) {
        true => HolderKind::Node,
        false => HolderKind::Client,
    }
}

fn gauge(capacity: u64, rotate: Rotate, quantum: Duration) -> Template {
    Template {
        kind: Kind::Gauge,
        rotate: Some(rotate),
        quantum: (rotate != Rotate::None).then_some(quantum),
        ..template(capacity as f64)
    }
}

/// A client, or a node of up to four; of one priority.
fn wanter(polls: impl Strategy<Value = bool>) -> impl Strategy<Value = Wanter> {
    let band = (1u32..5, 1u32..5).prop_map(|(subclients, wants)| Band {
        priority: 0,
        subclients,
        wants: f64::from(wants * subclients),
    });
    let single = (1u32..5).prop_map(|wants| Band { priority: 0, subclients: 1, wants: f64::from(wants) });
    let bands = prop_oneof![
        3 => single.prop_map(|band| vec![band]),
        1 => prop::collection::vec(band, 1..3),
    ];
    (bands, polls, 0u64..20_000).prop_map(|(bands, polls, comes)| Wanter {
        bands,
        polls,
        comes: Duration::from_millis(comes),
    })
}

/// The longest that anybody who has a fraction was without its unit, against what is allowed.
fn worst_wait(pool: &mut Pool, quantum: Duration, hand_over: Duration) -> f64 {
    let settled = Time::ZERO + Duration::from_secs(25);
    while pool.hall.now < settled {
        pool.step(settled);
    }
    let shares = pool.shares();
    let fractions: Vec<(String, u64, f64)> = shares
        .into_iter()
        .map(|(name, share)| (name, (share + 1e-6) as u64, share - (share + 1e-6).floor()))
        .filter(|&(_, _, fraction)| fraction > 1e-3)
        .collect();
    let slowest = fractions.iter().map(|&(_, _, fraction)| fraction).fold(1.0, f64::min);
    let end = settled + quantum.mul_f64((4.0 / slowest).ceil() + 20.0);
    let mut had: BTreeMap<&str, Time> = fractions.iter().map(|(name, ..)| (name.as_str(), settled)).collect();
    let mut worst: f64 = 0.0;
    while pool.hall.now < end {
        pool.step(end);
        for (name, whole, fraction) in &fractions {
            let wait = pool.hall.now.since(had[name.as_str()]);
            let allowed = quantum.mul_f64((2.0 / fraction).ceil() + 1.0) + hand_over;
            worst = worst.max(wait.as_secs_f64() / allowed.as_secs_f64());
            if pool.has(name) > Amount::from_units(*whole) {
                had.insert(name, pool.hall.now);
            }
        }
    }
    worst
}

/// Two who listen share a unit, and the stream of the one that waits breaks: it is known for as long as its lease would last, and
/// would have a turn each time as none of them was one.
#[test]
fn whose_stream_broke_and_who_never_polled_is_waited_for_at_no_turn() {
    let quantum = Duration::from_secs(10);
    let one = Band { priority: 0, subclients: 1, wants: 1.0 };
    let wanter = Wanter { bands: vec![one], polls: false, comes: Duration::ZERO };
    let mut pool = Pool::new(gauge(1, Rotate::Fair, quantum), vec![wanter; 2]);
    let (one, other) = ("w00", "w01");
    let settled = Time::ZERO + Duration::from_secs(45);
    while pool.hall.now < settled || pool.has(one) == Amount::ZERO {
        pool.step(pool.hall.now + Duration::from_secs(1));
        assert!(pool.hall.now < settled + 3 * quantum, "it has a turn");
    }
    pool.hall.break_off(other);
    pool.beats.insert(other.to_owned(), Time::MAX);
    let (end, mut had, mut longest) = (pool.hall.now + 12 * quantum, pool.hall.now, Duration::ZERO);
    while pool.hall.now < end {
        pool.step(end);
        longest = longest.max(pool.hall.now.since(had));
        if pool.has(one) > Amount::ZERO {
            had = pool.hall.now;
        }
    }
    assert!(longest < 3 * quantum, "no unit for {longest:?}");
}

fn rotates() -> impl Strategy<Value = Rotate> {
    prop_oneof![Just(Rotate::Fair), Just(Rotate::Sticky)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn nobody_who_listens_waits_for_long(
        wanters in prop::collection::vec(wanter(Just(false)), 2..12),
        capacity in 1u64..12,
        rotate in rotates(),
        millis in prop_oneof![Just(200u64), Just(1_000), Just(5_000)],
    ) {
        let quantum = Duration::from_millis(millis);
        let mut pool = Pool::new(gauge(capacity, rotate, quantum), wanters);
        let worst = worst_wait(&mut pool, quantum, Duration::from_millis(20));
        prop_assert!(worst <= 1.0, "waited {worst} times what is allowed");
    }

    #[test]
    fn nobody_who_polls_waits_for_long(
        wanters in prop::collection::vec(wanter(any::<bool>()), 2..12),
        capacity in 1u64..12,
        rotate in rotates(),
        millis in prop_oneof![Just(2_000u64), Just(3_300), Just(5_000)],
    ) {
        let quantum = Duration::from_millis(millis);
        let mut pool = Pool::new(gauge(capacity, rotate, quantum), wanters);
        let worst = worst_wait(&mut pool, quantum, Duration::from_millis(1_100));
        prop_assert!(worst <= 1.0, "waited {worst} times what is allowed");
    }

    // A turn is shorter than the time between two polls, so it lasts for as long as it takes to take a unit by a poll, and to
    // give it back by another.
    #[test]
    fn nobody_who_polls_waits_for_turns_that_its_polls_do_not_meet(
        wanters in prop::collection::vec(wanter(any::<bool>()), 2..12),
        capacity in 1u64..12,
        rotate in rotates(),
        millis in prop_oneof![Just(100u64), Just(125), Just(333), Just(500), Just(1_000)],
    ) {
        let quantum = Duration::from_millis(millis);
        let mut pool = Pool::new(gauge(capacity, rotate, quantum), wanters);
        let worst = worst_wait(&mut pool, quantum + Duration::from_secs(2), Duration::from_millis(1_100));
        prop_assert!(worst <= 1.0, "waited {worst} times what is allowed");
    }

    // Whoever comes, goes or changes its mind between turns.
    #[test]
    fn no_unit_is_held_twice_or_in_parts(
        wanters in prop::collection::vec(wanter(any::<bool>()), 2..10),
        capacity in 1u64..8,
        rotate in prop_oneof![rotates(), Just(Rotate::None)],
        changes in prop::collection::vec((0usize..10, 0u32..5, 1u64..3_000), 1..40),
    ) {
        let mut pool = Pool::new(gauge(capacity, rotate, Duration::from_secs(1)), wanters);
        for (who, wants, pause) in changes {
            let end = pool.hall.now + Duration::from_millis(pause);
            while pool.hall.now < end {
                pool.step(end);
            }
            let name = format!("w{:02}", who % pool.wanters.len());
            let wanter = pool.wanters.get_mut(&name).expect("one of them");
            wanter.bands = vec![Band { priority: 0, subclients: 1, wants: f64::from(wants) }];
            if pool.beats.contains_key(&name) {
                let bands = Bands::from_vec(pool.wanters[&name].bands.clone());
                pool.hall.report(&name, Some(bands), None, false);
                pool.hall.hear();
            }
            pool.check();
        }
    }
}
