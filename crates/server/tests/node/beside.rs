//! Second limits that are tried: what has passed the one in force is asked of the other, nobody is delayed for it, and what it
//! would refuse is counted.

#![expect(clippy::float_cmp, reason = "what is leased comes out of the books, which are exact")]

use std::time::Duration;

use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::companions::{AccompaniedUse, Companions};
use lessor_client::internals::gauge::Semaphore;
use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::limiter::Limiter;
use lessor_client::internals::session::{Action, Session, SessionConfig};
use lessor_client::{Kind, Permit, SecondUsage, Transport};
use lessor_proto::{Amount, Drift, Epoch, Incarnation, ResourceId, Time};
use lessor_server::node::{NodeConfig, ParentConfig, StatusQuery};
use lessor_server::repository::{self, Template};
use lessor_sim::net::{Heard, StillNet};

use super::holders::{client, repository, resource, template};

const CLIENTS: usize = 3;
/// Each uses so much, so that all of them use 450, and wants a little more.
const USES: u32 = 150;
const WANTS: f64 = 160.0;
/// Everybody asks for what has come up since, a hundred times a second.
const STEP: Duration = Duration::from_millis(10);
const SECOND: u32 = 100;

/// A client with a rate and a gauge, of which one is used.
struct Tried {
    companions: Companions,
    rate: Limiter,
    gauge: Semaphore,
    /// The amounts that it was allowed, and the millisecond.
    allowed: Vec<(u64, Option<Amount>)>,
    permits: Vec<Permit>,
}

/// A root and two leaves, of which the clients lease.
struct Trial {
    now: Time,
    net: StillNet,
    clients: Vec<Tried>,
    kind: Kind,
}

fn tried(capacity: f64, beside: Option<f64>, kind: repository::Kind) -> Template {
    Template { kind, beside: beside.map(Amount::from_f64), ..template(capacity) }
}

fn companion() -> ResourceId {
    resource().companion(256).expect("a name")
}

// === impl Trial ===

impl Trial {
    fn new(template: &Template) -> Trial {
        let now = Time::ZERO + Duration::from_secs(1_000);
        let mut net = StillNet::new(&[None, Some(0), Some(0)]);
        for site in 0..3 {
            let config = NodeConfig {
                drift: Drift::NONE,
                line: Some(0),
                parent: (site > 0).then(|| ParentConfig {
                    servers: vec!["root:1".into()],
                    transport: Transport::Stream,
                    eager: true,
                }),
                ..NodeConfig::new(format!("place-{site}"), Epoch(1))
            };
            net.net.begin(now, site, config, repository(template.clone()));
        }
        let kind = match template.kind {
            repository::Kind::Rate => Kind::Rate,
            repository::Kind::Gauge => Kind::Gauge,
        };
        let mut trial = Trial { now, net, clients: Vec::new(), kind };
        (0..CLIENTS).for_each(|index| trial.come(index));
        for _ in 0..SECOND {
            trial.now += STEP;
            trial.settle();
        }
        trial
    }

    fn come(&mut self, index: usize) {
        let mut session = Session::new(SessionConfig {
            transport: Transport::Stream,
            ..SessionConfig::new(client(&format!("c{index}")), Incarnation(1), vec!["leaf:1".into()])
        });
        session.add(self.now, resource(), HoldingConfig::new(self.kind, WANTS, 0));
        self.net.add(1 + index % 2, session);
        self.clients.push(Tried {
            companions: Companions::default(),
            rate: Limiter::default(),
            gauge: Semaphore::default(),
            allowed: Vec::new(),
            permits: Vec::new(),
        });
    }

    /// Everything is said, and programs do as they are told.
    fn settle(&mut self) {
        let (now, kind) = (self.now, self.kind);
        loop {
            let mut changes = Vec::new();
            self.net.settle(now, &mut |index, heard| {
                if let Heard::Action(Action::Change(change)) = heard {
                    changes.push((index, change));
                }
            });
            if changes.is_empty() {
                return;
            }
            for (index, change) in changes {
                let (tried, session) = (&mut self.clients[index], &mut self.net.sessions[index]);
                if let Some((_, allowance)) = tried.companions.changed(&change) {
                    tried.try_beside(now, allowance, kind);
                    session.set_in_use(now, &change.resource, tried.in_use_beside());
                } else if change.resource == resource() {
                    tried.allow(now, change.allowance, kind, session);
                }
            }
        }
    }

    /// Time goes by in which everybody asks for what it wants.
    fn pass(&mut self, steps: u32) {
        for step in 1..=steps {
            self.now += STEP;
            if step % 25 == 0 {
                self.want();
            }
            self.settle();
            let now = self.now;
            if self.kind == Kind::Rate {
                let units = USES * step / SECOND - USES * (step - 1) / SECOND;
                for tried in &self.clients {
                    assert_eq!(tried.rate.try_acquire(units, || now), Ok(()), "nobody is refused");
                }
            }
        }
    }

    fn want(&mut self) {
        for (tried, session) in self.clients.iter_mut().zip(&mut self.net.sessions) {
            let (wants, in_use, counted) = (WANTS, tried.in_use_beside(), tried.rate.usage_beside().counts());
            let usage = AccompaniedUse { wants, peak: None, in_use, counted };
            tried.companions.want(self.now, &resource(), usage, session);
        }
    }

    /// All nodes follow this from here on, the root first.
    fn follow(&mut self, template: &Template) {
        for site in 0..3 {
            let node = self.net.net.node_mut(site).expect("it leads");
            node.reload(self.now, repository(template.clone()));
        }
        self.settle();
    }

    fn usage(&self) -> SecondUsage {
        let mut all = SecondUsage::default();
        for tried in &self.clients {
            let one = match self.kind {
                Kind::Rate => tried.rate.usage_beside(),
                Kind::Gauge => tried.gauge.usage_beside(),
            };
            (all.asked, all.refused) = (all.asked + one.asked, all.refused + one.refused);
            all.is_tried |= one.is_tried;
        }
        all
    }

    /// The amount of the companion that clients hold.
    fn leased_beside(&self) -> f64 {
        let leased = |site| {
            let node = self.net.net.node(site).expect("it leads");
            let rows = node.status(self.now, &StatusQuery::default()).resources;
            let row = rows.into_iter().find(|row| row.resource.resource == companion().as_str());
            row.map_or(0.0, |row| row.resource.leased)
        };
        leased(1) + leased(2)
    }
}

// === impl Tried ===

impl Tried {
    fn allow(&mut self, now: Time, allowance: Allowance, kind: Kind, session: &mut Session) {
        self.allowed.push((now.as_nanos() / 1_000_000, allowance.capacity));
        self.rate.allow(now, allowance);
        self.gauge.allow(now, allowance);
        session.set_in_use(now, &resource(), Amount::from_units(self.gauge.in_use().into()));
        let counted = self.rate.usage_beside().counts();
        if allowance.beside {
            let config = HoldingConfig::new(kind, WANTS, 0);
            self.companions.ask(now, (&resource(), counted), config, |_| false, session);
        } else if self.companions.give_back(now, (&resource(), counted), session) {
            self.try_beside(now, None, kind);
        }
    }

    fn try_beside(&self, now: Time, allowance: Option<Allowance>, kind: Kind) {
        match kind {
            Kind::Rate => self.rate.try_beside(now, allowance),
            Kind::Gauge => self.gauge.try_beside(now, allowance),
        }
    }

    fn in_use_beside(&self) -> Amount {
        Amount::from_units(self.gauge.in_use_beside().into())
    }
}

#[test]
fn a_second_limit_counts_what_it_would_refuse_and_changes_nothing() {
    let rate = repository::Kind::Rate;
    let (mut with, mut without) =
        (Trial::new(&tried(500.0, Some(400.0), rate)), Trial::new(&tried(500.0, None, rate)));
    for trial in [&mut with, &mut without] {
        trial.pass(5 * SECOND);
    }
    let before = with.usage();
    with.pass(20 * SECOND);
    without.pass(20 * SECOND);
    let (asked, refused) = (with.usage().asked - before.asked, with.usage().refused - before.refused);
    assert_eq!(asked, 20 * 450);
    assert!((20 * 49..20 * 51).contains(&refused), "{refused} of {asked}");
    assert_eq!(without.usage(), SecondUsage::default());
    for (with, without) in with.clients.iter().zip(&without.clients) {
        assert_eq!(with.allowed, without.allowed, "the grants are the same");
    }
    assert!((399.9..=400.0).contains(&with.leased_beside()));
    let root = with.net.net.node(0).expect("it leads").unenforced(&companion());
    let of_minutes = 20 * 450 / 3;
    assert!(root.asked > of_minutes && root.asked <= with.usage().asked, "{root:?}");
    assert!(root.passed > of_minutes / 12 && root.passed <= with.usage().refused, "{root:?}");
}

#[test]
fn what_is_tried_no_more_is_given_back_and_what_is_promoted_is_in_force() {
    let rate = repository::Kind::Rate;
    let mut trial = Trial::new(&tried(500.0, None, rate));
    trial.pass(SECOND);
    assert_eq!((trial.usage(), trial.leased_beside()), (SecondUsage::default(), 0.0));
    trial.follow(&tried(500.0, Some(460.0), rate));
    trial.pass(2 * SECOND);
    let usage = trial.usage();
    assert!(usage.is_tried && usage.asked >= 450 && usage.refused < 10, "{usage:?}");
    trial.follow(&tried(460.0, None, rate));
    let usage = trial.usage();
    trial.pass(20 * SECOND);
    assert_eq!(trial.usage(), SecondUsage { is_tried: false, ..usage });
    assert_eq!(trial.leased_beside(), 0.0);
}

#[test]
fn what_is_tried_again_says_nothing_twice() {
    let rate = repository::Kind::Rate;
    let mut trial = Trial::new(&tried(500.0, Some(400.0), rate));
    trial.pass(20 * SECOND);
    trial.follow(&tried(500.0, None, rate));
    trial.pass(20 * SECOND);
    trial.follow(&tried(500.0, Some(400.0), rate));
    let before = trial.usage();
    trial.pass(20 * SECOND);
    let (root, after) = (trial.net.net.node(0).expect("it leads").unenforced(&companion()), trial.usage());
    assert!(after.asked > before.asked + 10 * 450, "{before:?}, {after:?}");
    assert!(root.asked <= after.asked && root.passed <= after.refused, "{root:?}, {after:?}");
}

#[test]
fn of_a_gauge_the_second_limit_has_its_units_for_as_long_as_permits_live() {
    let mut trial = Trial::new(&tried(600.0, Some(300.0), repository::Kind::Gauge));
    trial.pass(2 * SECOND);
    let now = trial.now;
    for tried in &mut trial.clients {
        tried.permits = (0..USES).map(|_| tried.gauge.try_acquire(1, || now).expect("there are")).collect();
    }
    let usage = trial.usage();
    assert_eq!((usage.asked, usage.refused), (450, 150));
    trial.clients[0].permits.clear();
    let again = trial.clients[0].gauge.try_acquire(100, || now).expect("there are");
    assert_eq!(trial.usage().refused, 150, "its units came back");
    drop(again);
    trial.follow(&tried(600.0, None, repository::Kind::Gauge));
    trial.pass(20 * SECOND);
    assert_eq!(trial.leased_beside(), 0.0);
}

#[test]
fn nobody_is_told_of_a_second_limit_that_knows_of_none() {
    use super::holders::{Memory, Town, wants};
    let mut town = Town::new(tried(500.0, Some(400.0), repository::Kind::Rate), 1);
    for (name, memory, is_told) in [("old", Memory::Echoes, false), ("new", Memory::Incarnated, true)] {
        town.holder(name).memory = memory;
        let answer = town.ask(name, &wants(10.0)).expect("it is granted");
        assert_eq!(answer.grants[0].beside, is_told, "{name}");
    }
    let node = super::holders::Words { node: true, ..wants(10.0) };
    assert!(!town.ask("leaf", &node).expect("it is granted").grants[0].beside);
}
