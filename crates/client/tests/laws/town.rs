//! A session on streams, two grantors, and the way between them.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{self, Action, Session, SessionConfig};
use lessor_client::{Failure, Fallback, Kind, Transport};
use lessor_proto::message::{Down, HolderKind, Leader, Order, StreamReport, Up, Welcome};
use lessor_proto::{Amount, ClientId, Epoch, Features, Incarnation, ResourceId, Time};

use super::grantor::{Books, Mood, Wire};
use super::stream::Event;
use super::{NAMES, name};

const HEARTBEAT: Duration = Duration::from_millis(500);

/// A session and its grantors. Messages on their way arrive in order, or not at all.
pub(crate) struct Town {
    pub(crate) now: Time,
    /// The time that the holder's clock did not show.
    lost: Duration,
    pub(crate) session: Session,
    epochs: [Books; 2],
    wires: Vec<Wire>,
    mood: Mood,
    pub(crate) distance: (Duration, Duration),
    pub(crate) refuse: bool,
    claims: bool,
    /// The allowances that the program was told.
    allowed: BTreeMap<ResourceId, Allowance>,
    /// The amounts that a node has handed out, and the times until which they are.
    out: BTreeMap<ResourceId, (Amount, Time)>,
    /// The last grant adopted.
    adopted: BTreeMap<ResourceId, Order>,
    /// The promises about grants up to an order.
    promises: BTreeMap<ResourceId, Vec<(Order, Amount)>>,
    pub(crate) sent: u64,
}

// === impl Town ===

impl Town {
    pub(crate) fn new(kind: HolderKind, change: impl FnOnce(&mut SessionConfig)) -> Town {
        let holder = ClientId::new("c", 256).unwrap();
        let servers = vec!["0".into(), "1".into()];
        let mut config = SessionConfig {
            kind,
            transport: Transport::Stream,
            timeout: Duration::from_secs(1),
            ..SessionConfig::new(holder, Incarnation(1), servers)
        };
        change(&mut config);
        let epoch = |epoch| Books { epoch, ..Books::default() };
        let mut town = Town {
            now: Time::ZERO + Duration::from_secs(1_000),
            lost: Duration::ZERO,
            session: Session::new(config),
            epochs: [epoch(1), epoch(2)],
            wires: Vec::new(),
            mood: Mood { amount: 50, millis: 3_000, ack: false, full: false },
            distance: (Duration::from_millis(20), Duration::from_millis(20)),
            refuse: false,
            claims: true,
            allowed: BTreeMap::new(),
            out: BTreeMap::new(),
            adopted: BTreeMap::new(),
            promises: BTreeMap::new(),
            sent: 0,
        };
        (0..NAMES.len()).for_each(|index| town.happen(&Event::Add(index)));
        town
    }

    /// The time at the grantors.
    fn there(&self) -> Time {
        self.now + self.lost
    }

    /// As the program was told.
    fn usable(&self, resource: &ResourceId) -> Amount {
        let allowance = self.allowed.get(resource).copied().unwrap_or(Allowance::NOTHING);
        if self.now < allowance.until { allowance.capacity.unwrap() } else { Amount::ZERO }
    }

    fn act(&mut self) {
        let mut actions = 0;
        while let Some(action) = self.session.poll(self.now) {
            actions += 1;
            assert!(actions < 200, "there is no end of it: {action:?}");
            match action {
                Action::Change(change) => drop(self.allowed.insert(change.resource, change.allowance)),
                Action::Connect { id, to, hello } => {
                    self.wires.push(Wire {
                        id,
                        epoch: to.parse().unwrap(),
                        up: VecDeque::new(),
                        down: VecDeque::new(),
                        last: BTreeMap::new(),
                        grants: 0,
                        pushed: None,
                    });
                    self.send(id, Up::Hello(hello));
                }
                Action::Send { id, up } => self.send(id, up),
                Action::Disconnect { id } => self.wire(id).down.clear(),
                Action::Ask { .. } | Action::Release { .. } => panic!("it has streams"),
                Action::News(_) => panic!("nobody tells of domains"),
            }
        }
        self.check();
        assert!(self.session.next_deadline() > self.now, "nothing is left to do");
    }

    fn send(&mut self, id: u64, up: Up) {
        self.sent += 1;
        // Whatever is promised holds before it leaves.
        self.check();
        match &up {
            Up::Report(report) => {
                for said in &report.reports {
                    let order = said.has.as_ref().and_then(|has| has.order);
                    let fence = report.target_epoch.map(|epoch| Order { epoch, seq: 0 });
                    let held = said.held.unwrap_or_default();
                    let promises = self.promises.entry(said.resource.clone()).or_default();
                    promises.extend(order.max(fence).map(|order| (order, held)));
                }
            }
            Up::Release { resources, .. } => {
                for resource in resources {
                    assert_eq!(self.usable(resource), Amount::ZERO, "{resource} was released");
                    self.out.remove(resource);
                }
            }
            Up::Hello(_) | Up::Domains(_) | Up::Units(_) | Up::View(_) | Up::Jobs(_) | Up::Bye => {}
        }
        let arrival = self.now + self.distance.0;
        let wire = self.wire(id);
        let arrival = wire.up.back().map_or(arrival, |(last, _)| arrival.max(*last));
        wire.up.push_back((arrival, up));
    }

    fn wire(&mut self, id: u64) -> &mut Wire {
        self.wires.iter_mut().find(|wire| wire.id == id).expect("a stream that was opened")
    }

    /// The laws: what is used is counted by whoever granted it, and is not above what was promised of it.
    fn check(&self) {
        for resource in self.allowed.keys() {
            let (usable, out) = (self.usable(resource), self.out.get(resource));
            let used = usable.max(out.map_or(Amount::ZERO, |out| out.0));
            let Some(order) = self.adopted.get(resource) else {
                assert_eq!(used, Amount::ZERO, "{resource} was never granted");
                continue;
            };
            let books = &self.epochs[order.epoch.0 as usize - 1];
            let counted = books.counted(self.there(), resource);
            assert!(used <= counted, "{resource}: {used} is used, {counted} counted at {}", self.now);
            for (about, held) in self.promises.get(resource).into_iter().flatten() {
                assert!(
                    order > about || used <= *held,
                    "{resource}: {used} is used of {order:?}, {held} promised of {about:?} at {}",
                    self.now
                );
            }
        }
    }

    fn pass(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        loop {
            let arrival = self.wires.iter().filter_map(Wire::next).map(|(time, _)| time).min();
            let ends = self.out.values().map(|(_, until)| *until).min();
            let next =
                self.session.next_deadline().min(arrival.unwrap_or(Time::MAX)).min(ends.unwrap_or(Time::MAX));
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            // What was handed out ends before the lease it was handed out of.
            let ended: Vec<_> =
                self.out.iter().filter(|(_, out)| out.1 <= self.now).map(|(r, _)| r.clone()).collect();
            for resource in ended {
                self.out.remove(&resource);
                self.session.set_in_use(self.now, &resource, Amount::ZERO);
            }
            if let Some(place) =
                self.wires.iter().position(|wire| wire.next().is_some_and(|(time, _)| time <= self.now))
            {
                self.arrive(place);
            }
            self.act();
        }
        self.now = end;
        self.check();
    }

    fn arrive(&mut self, place: usize) {
        let wire = &mut self.wires[place];
        let id = wire.id;
        if wire.next().is_some_and(|(_, up)| up) {
            let (_, up) = wire.up.pop_front().unwrap();
            self.hear(place, up);
        } else {
            let (_, down) = wire.down.pop_front().unwrap();
            let orders: Vec<_> = match &down {
                Down::Grants(grants) => {
                    grants.iter().map(|grant| (grant.resource.clone(), grant.order.unwrap())).collect()
                }
                _ => Vec::new(),
            };
            let received = self.session.counts().received;
            self.session.handle(self.now, session::Event::Down { id, down });
            if self.session.counts().received > received {
                orders.into_iter().for_each(|(resource, order)| self.note(resource, order));
            }
        }
    }

    /// A grant was looked at; it was adopted if nothing is wrong with it.
    fn note(&mut self, resource: ResourceId, order: Order) {
        let allowance = self.session.allowance(self.now, &resource);
        if self.session.fault(&resource).is_none() && allowance != Allowance::NOTHING {
            let last = self.adopted.insert(resource, order);
            assert!(last < Some(order), "{order:?} was adopted after {last:?}");
        }
    }

    /// A grantor hears something.
    fn hear(&mut self, place: usize, up: Up) {
        let (now, there, mood) = (self.now, self.there(), self.mood);
        let wire = &mut self.wires[place];
        let books = &mut self.epochs[wire.epoch];
        if wire.id < books.stream {
            return;
        }
        let mut answers = Vec::new();
        match up {
            Up::Hello(_) => {
                books.stream = wire.id;
                let claims_open = self.claims;
                answers.push(Down::Welcome(Welcome {
                    epoch: Epoch(books.epoch),
                    claims_open,
                    claims_open_in: None,
                    heartbeat: HEARTBEAT,
                    features: Features::CURRENT,
                }));
            }
            Up::Report(report) if report.target_epoch.is_some_and(|epoch| epoch != Epoch(books.epoch)) => {
                answers.push(Down::Redirect(Leader::default()));
            }
            Up::Report(report) if std::mem::take(&mut self.refuse) => {
                answers.push(Down::Refused { id: report.id, why: "no".into() });
            }
            Up::Report(report) => {
                answers = answer_report(there, mood, (&mut *books, &mut *wire), &report);
            }
            Up::Release { id, resources } => {
                for resource in &resources {
                    books.charges.remove(resource);
                    books.basis.remove(resource);
                    wire.last.remove(resource);
                }
                // Behind this an old grant would not be known for one.
                wire.pushed = None;
                answers.push(Down::Released { id });
            }
            Up::Domains(_) | Up::Units(_) | Up::View(_) | Up::Jobs(_) => panic!("nobody tells of domains"),
            Up::Bye => {
                books.charges.clear();
                books.basis.clear();
            }
        }
        for answer in answers {
            wire.answer(now + self.distance.1, answer);
        }
    }

    /// The grantor that is heard last grants something by itself.
    fn push(&mut self, index: usize, mood: Mood) {
        let (there, far) = (self.there(), self.now + self.distance.1);
        if let Some(wire) = self.wires.last_mut()
            && wire.last.contains_key(&name(index))
            && let Some(grant) = self.epochs[wire.epoch].grant(there, &name(index), mood)
        {
            let down = wire.grant(vec![grant]);
            wire.answer(far, down);
        }
    }

    pub(crate) fn happen(&mut self, event: &Event) {
        let now = self.now;
        let config =
            HoldingConfig { fallback: Fallback::Pessimistic, ..HoldingConfig::new(Kind::Rate, 50.0, 0) };
        match *event {
            Event::Pass(millis) => self.pass(millis),
            Event::Want(index, wants) => self.session.set_wants(now, &name(index), wants.into()),
            Event::Use(index, hundredths) => self.hand_out(&name(index), hundredths),
            Event::Remove(index) => {
                self.out.remove(&name(index));
                self.session.remove(now, &name(index));
            }
            Event::Add(index) => self.session.add(now, name(index), config),
            Event::Mood(mood) => self.mood = mood,
            Event::Push(index, mood) => self.push(index, mood),
            Event::Repeat => {
                let far = now + self.distance.1;
                if let Some(wire) = self.wires.last_mut()
                    && let Some(down) = wire.pushed.clone()
                {
                    wire.answer(far, down);
                }
            }
            Event::Distance(up, down) => {
                self.distance = (Duration::from_millis(up), Duration::from_millis(down));
            }
            Event::Break(arrives) => {
                if let Some(wire) = self.wires.last_mut() {
                    let id = wire.id;
                    wire.down.clear();
                    if !arrives {
                        wire.up.clear();
                    }
                    self.session.handle(
                        now,
                        session::Event::Closed { id, failure: Failure::Unreachable("reset".into()) },
                    );
                }
            }
            Event::Redirect(to) => {
                let far = now + self.distance.1;
                let leader = Leader { address: (to < 2).then(|| to.to_string()) };
                if let Some(wire) = self.wires.last_mut() {
                    wire.answer(far, Down::Redirect(leader));
                }
            }
            Event::Refuse => self.refuse = true,
            Event::Lose(millis) => self.lose(Duration::from_millis(millis)),
            Event::Claims(open) => self.claims = open,
        }
        self.act();
    }

    /// Hands out a part of the lease, in hundredths, which ends with the lease that it is handed out of.
    fn hand_out(&mut self, resource: &ResourceId, hundredths: u64) {
        let usable = self.usable(resource);
        let amount = Amount::from_micros(usable.as_micros() / 100 * hundredths);
        let before = self.out.get(resource).copied().unwrap_or_default();
        let until = if amount > before.0 { self.allowed[resource].until } else { before.1 };
        self.out.insert(resource.clone(), (amount, until));
        self.session.set_in_use(self.now, resource, amount);
    }

    fn lose(&mut self, lost: Duration) {
        let earlier = |time: &mut Time| {
            *time = Time::from_nanos(time.as_nanos().saturating_sub(lost.as_nanos() as u64));
        };
        self.lost += lost;
        self.session.lose_time(self.now, lost);
        self.out.values_mut().for_each(|out| earlier(&mut out.1));
        for wire in &mut self.wires {
            wire.up.iter_mut().for_each(|message| earlier(&mut message.0));
            wire.down.iter_mut().for_each(|message| earlier(&mut message.0));
        }
        // What has ended meanwhile is over before anything is said.
        self.pass(0);
    }
}

/// The answers of a grantor to a report: a renewal, and a grant of what is astray.
fn answer_report(
    there: Time,
    mood: Mood,
    (books, wire): (&mut Books, &mut Wire),
    report: &StreamReport,
) -> Vec<Down> {
    let mut answers = Vec::new();
    books.hear(there, report);
    // Whoever does not have the last grant of this stream gets another.
    let astray = report.reports.iter().filter(|said| {
        let seq = said.has.as_ref().and_then(|has| has.order).map(|order| order.seq);
        wire.last.get(&said.resource).is_none_or(|(last, _)| seq != Some(*last))
    });
    let mut due: Vec<_> = astray.map(|said| said.resource.clone()).collect();
    if report.renew_all {
        books.renew(there, report.id.0, wire);
        if mood.full {
            due = wire.last.keys().chain(&due).cloned().collect();
            due.sort_unstable();
            due.dedup();
        } else {
            answers.push(Down::Renewed { basis: report.id, grants: wire.grants });
        }
    }
    let grants: Vec<_> = due.iter().filter_map(|resource| books.grant(there, resource, mood)).collect();
    answers.push(wire.grant(grants));
    answers
}
