//! Laws of a session that no sequence of answers, failures and wishes may break, against a grantor that only counts.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "laws/grantor.rs"]
mod grantor;
#[path = "laws/stream.rs"]
mod stream;
#[path = "laws/town.rs"]
mod town;

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{self, Action, Session, SessionConfig};
use lessor_client::{Failure, Fallback, Kind, Rung, Transport};
use lessor_proto::message::{Answer, Ask, Grant, Leader, Order};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, ResourceId, Time};
use proptest::prelude::*;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// An event in the session; numbers choose among what is there.
#[derive(Clone, Debug)]
enum Event {
    Pass(u64),
    Want(usize, u16),
    Use(usize, u16),
    Remove(usize),
    Add(usize),
    /// The request in flight is answered with so much for so many milliseconds, except for the resource of that number.
    Grant {
        amount: u16,
        length: u64,
        missing: usize,
        ack: bool,
        basis: Option<u64>,
        repeat: bool,
    },
    /// The grantor decides, and the answer is lost.
    Lose {
        amount: u16,
        length: u64,
    },
    Redirect(u8),
    Refuse,
    Fail,
}

/// Counts as a grantor does: everything it ever sent, capped by what reports promise, until it ends.
#[derive(Default)]
struct Counter {
    seq: u64,
    charges: BTreeMap<ResourceId, Vec<Charge>>,
    sent: BTreeMap<ReportId, Time>,
}

struct Charge {
    seq: u64,
    amount: Amount,
    end: Time,
}

struct Town {
    now: Time,
    session: Session,
    counter: Counter,
    asked: Option<Ask>,
    released: Option<(u64, Vec<ResourceId>)>,
    /// The allowances that the program was told.
    allowed: BTreeMap<ResourceId, lessor_client::internals::allowance::Allowance>,
}

// === impl Counter ===

impl Counter {
    fn hear(&mut self, now: Time, ask: &Ask) {
        self.sent.insert(ask.report_id.unwrap(), now);
        for report in &ask.reports {
            let Some(order) = report.has.as_ref().and_then(|has| has.order) else { continue };
            let held = report.held.expect("a report of a lease promises");
            let charges = self.charges.entry(report.resource.clone()).or_default();
            for charge in charges.iter_mut().filter(|charge| charge.seq <= order.seq) {
                charge.amount = charge.amount.min(held);
            }
        }
    }

    fn grant(&mut self, resource: &ResourceId, amount: u16, length: Duration, basis: ReportId) -> Grant {
        self.seq += 1;
        let amount = Amount::from_units(amount.into());
        let end = self.sent[&basis] + length;
        self.charges.entry(resource.clone()).or_default().push(Charge { seq: self.seq, amount, end });
        Grant {
            resource: resource.clone(),
            capacity: amount,
            length,
            refresh_interval: Duration::from_secs(2),
            order: Some(Order { epoch: Epoch(1), seq: self.seq }),
            basis: Some(basis),
            token: Vec::new(),
            ack_wanted: false,
            safe_leased: false,
            learning: false,
            learning_left: None,
            safe_capacity: None,
            burst: None,
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
        }
    }

    fn counted(&self, now: Time, resource: &ResourceId) -> Amount {
        let charges = self.charges.get(resource).into_iter().flatten();
        charges.filter(|charge| now < charge.end).map(|charge| charge.amount).max().unwrap_or_default()
    }
}

// === impl Town ===

impl Town {
    fn new() -> Town {
        let holder = ClientId::new("c", 256).unwrap();
        let servers = vec!["a".into(), "b".into()];
        let transport = Transport::Poll;
        let session =
            Session::new(SessionConfig { transport, ..SessionConfig::new(holder, Incarnation(1), servers) });
        let mut town = Town {
            now: Time::ZERO,
            session,
            counter: Counter::default(),
            asked: None,
            released: None,
            allowed: BTreeMap::new(),
        };
        (0..NAMES.len()).for_each(|index| town.happen(&Event::Add(index)));
        town
    }

    fn act(&mut self) {
        while let Some(action) = self.session.poll(self.now) {
            match action {
                Action::Change(change) => {
                    self.allowed.insert(change.resource, change.allowance);
                }
                Action::Ask { ask, .. } => {
                    self.counter.hear(self.now, &ask);
                    self.asked = Some(ask);
                }
                Action::Connect { .. } | Action::Send { .. } | Action::Disconnect { .. } => {
                    panic!("it polls")
                }
                Action::News(_) => panic!("nobody tells of domains"),
                Action::Release { id, release, .. } => {
                    // The grantor hears at once, and stops counting.
                    release.resources.iter().for_each(|resource| drop(self.counter.charges.remove(resource)));
                    self.released = Some((id.0, release.resources));
                }
            }
            self.check();
        }
        assert!(self.session.next_deadline() > self.now, "nothing is left to do");
    }

    /// The law: what the program may use is never more than the grantor counts.
    fn check(&self) {
        for (resource, allowance) in &self.allowed {
            let usable = if self.now < allowance.until {
                allowance.capacity.unwrap_or(Amount::MAX)
            } else {
                Amount::ZERO
            };
            let counted = self.counter.counted(self.now, resource);
            assert!(usable <= counted, "{resource}: {usable} is usable, {counted} counted at {}", self.now);
        }
    }

    fn pass(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        while self.session.next_deadline() <= end {
            self.now = self.now.max(self.session.next_deadline());
            self.act();
        }
        self.now = end;
        self.check();
    }

    fn happen(&mut self, event: &Event) {
        let (now, config) = (self.now, || HoldingConfig {
            fallback: Fallback::Pessimistic,
            ..HoldingConfig::new(Kind::Rate, 50.0, 0)
        });
        match *event {
            Event::Pass(millis) => self.pass(millis),
            Event::Want(index, wants) => self.session.set_wants(now, &name(index), wants.into()),
            Event::Use(index, units) => {
                self.session.set_in_use(now, &name(index), Amount::from_units(units.into()));
            }
            Event::Remove(index) => self.session.remove(now, &name(index)),
            Event::Add(index) => self.session.add(now, name(index), config()),
            Event::Redirect(port) => {
                let leader = Leader { address: (port > 0).then(|| format!("x:{port}")) };
                self.answer(Answer::redirect(leader));
            }
            Event::Refuse => self.fail(&Failure::Refused("no".into())),
            Event::Fail => self.fail(&Failure::Unreachable("no".into())),
            Event::Lose { amount, length } => {
                if let Some(ask) = self.asked.clone() {
                    for report in &ask.reports {
                        let length = Duration::from_millis(length);
                        let _ = self.counter.grant(&report.resource, amount, length, ask.report_id.unwrap());
                    }
                }
            }
            Event::Grant { .. } => self.grant(event),
        }
        self.act();
    }

    fn grant(&mut self, event: &Event) {
        let Event::Grant { amount, length, missing, ack, basis, repeat } = *event else { unreachable!() };
        let Some(ask) = self.asked.clone() else { return };
        let id = ask.report_id.unwrap();
        let basis = basis.map_or(id, |basis| ReportId(1 + basis % id.0));
        let basis = if self.counter.sent.contains_key(&basis) { basis } else { id };
        let mut answer = Answer::default();
        for (_, report) in ask.reports.iter().enumerate().filter(|&(index, _)| index != missing) {
            let length = Duration::from_millis(length);
            let grant = self.counter.grant(&report.resource, amount, length, basis);
            answer.grants.push(Grant { ack_wanted: ack, ..grant });
        }
        if repeat {
            answer.grants.extend(answer.grants.clone());
        }
        self.answer(answer.clone());
        // Heard twice, and by then late.
        self.session.handle(self.now, session::Event::Answered { id, answer });
    }

    fn answer(&mut self, answer: Answer) {
        if let Some(ask) = self.asked.take() {
            self.session.handle(self.now, session::Event::Answered { id: ask.report_id.unwrap(), answer });
        } else if let Some((id, _)) = self.released.take() {
            self.session.handle(
                self.now,
                session::Event::Released { id: ReportId(id), redirect: answer.redirect.clone() },
            );
        }
    }

    fn fail(&mut self, failure: &Failure) {
        let asked = self.asked.take().and_then(|ask| ask.report_id);
        let id = asked.or_else(|| self.released.take().map(|(id, _)| id).map(ReportId));
        if let Some(id) = id {
            self.session.handle(self.now, session::Event::Failed { id, failure: failure.clone() });
        }
    }
}

fn name(index: usize) -> ResourceId {
    ResourceId::new(NAMES[index % NAMES.len()], 256).unwrap()
}

fn event() -> impl Strategy<Value = Event> {
    let index = 0..NAMES.len();
    prop_oneof![
        4 => (0u64..4_000).prop_map(Event::Pass),
        2 => (index.clone(), 0u16..200).prop_map(|(index, wants)| Event::Want(index, wants)),
        1 => (index.clone(), 0u16..100).prop_map(|(index, units)| Event::Use(index, units)),
        1 => index.clone().prop_map(Event::Remove),
        1 => index.prop_map(Event::Add),
        6 => (0u16..150, 0u64..8_000, 0usize..8, any::<bool>(), prop::option::of(0u64..50), any::<bool>()).prop_map(
            |(amount, length, missing, ack, basis, repeat)| Event::Grant {
                amount, length, missing, ack, basis, repeat
            }
        ),
        1 => (0u16..150, 0u64..8_000).prop_map(|(amount, length)| Event::Lose { amount, length }),
        1 => (0u8..4).prop_map(Event::Redirect),
        1 => Just(Event::Refuse),
        1 => Just(Event::Fail),
    ]
}

proptest! {
    #[test]
    fn what_is_usable_is_never_more_than_a_grantor_counts(events in prop::collection::vec(event(), 1..60)) {
        let mut town = Town::new();
        for event in &events {
            town.happen(event);
        }
        // Nobody answers any more: whatever was granted ends, and a pessimist uses nothing.
        town.pass(60_000);
        for index in 0..NAMES.len() {
            let rung = town.session.rung(town.now, &name(index));
            prop_assert!(matches!(rung, Rung::Waiting | Rung::Pessimistic), "{rung:?}");
            prop_assert_eq!(town.session.allowance(town.now, &name(index)).capacity, Some(Amount::ZERO));
        }
        // Everybody answers again: all is leased within a back-off and the timeout of what was in flight.
        (0..NAMES.len()).for_each(|index| town.happen(&Event::Add(index)));
        for _ in 0..200 {
            town.happen(&Event::Pass(200));
            let grant = Event::Grant { amount: 9, length: 60_000, missing: 99, ack: false, basis: None, repeat: false };
            town.happen(&grant);
            town.answer(Answer::default());
            town.act();
        }
        for index in 0..NAMES.len() {
            prop_assert_eq!(town.session.rung(town.now, &name(index)), Rung::Leased);
        }
    }
}
