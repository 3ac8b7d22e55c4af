//! Holders: clients and the upper halves of nodes. What they do, what reaches them, and what clients come to believe.

use lessor_client::internals::holding::{HoldingConfig, Surplus};
use lessor_client::internals::session::{Action, Change, Session, SessionConfig};
use lessor_client::{Failure, Kind as Counting, Rung, Transport};
use lessor_proto::message::{Band, Bands, Report, Up};
use lessor_proto::{Amount, Epoch, Incarnation, ReportId, Time};
use lessor_server::repository::Kind;

use super::{ENDLESS, Event, Simulation, ToHolder, ToNode};
use crate::actor::{Actor, Sender};
use crate::client::Mind;
use crate::holding::{Holding, Stance, StatedDemand};
use crate::legacy::Legacy;
use crate::plan::Way;
use crate::program::measured::Said;
use crate::trace::Happening;

// === clients ===

impl Simulation {
    /// Whether some of Doorman's clients forget the fields that Doorman does not know.
    pub(crate) fn some_forget(&self) -> bool {
        self.rules.forgetful
    }

    /// A client begins to live, or to live again.
    pub(super) fn begin_life(&mut self, client: u32) {
        if self.population.clients[client as usize].lives() {
            return;
        }
        let clock = self.client_clock();
        let incarnation = Incarnation(self.rng.number());
        for hold in self.population.clients[client as usize].holds.clone() {
            let holding = &mut self.population.holdings[hold as usize];
            if holding.demand.is_measured {
                holding.demand.wants = Said::NOTHING.wants;
            }
        }
        let mind = self.new_mind(client, clock.at(self.now), incarnation);
        let found = &mut self.population.clients[client as usize];
        found.process.renew();
        found.process.clock = clock;
        found.mind = mind;
        found.incarnation = incarnation;
        found.fence = Epoch::default();
        let life = found.process.life;
        found.next_look = Time::MAX;
        for hold in found.holds.clone() {
            self.population.holdings[hold as usize].reborn();
            self.begin_program(hold);
        }
        self.begin_domain(client);
        self.note(Actor::Client(client).who(), Happening::Begins, [life.into(), incarnation.0, 0]);
        self.drive_client(client);
    }

    /// The mind of a client whose process begins `now` by its clock.
    fn new_mind(&mut self, client: u32, now: Time, incarnation: Incarnation) -> Mind {
        let found = &self.population.clients[client as usize];
        let is_legacy = found.way == Way::Legacy;
        let forgets = self.some_forget() && is_legacy && self.rng.chance(500);
        let stated =
            self.population.clients[client as usize].holds.clone().filter(|&hold| !self.is_derived(hold));
        let holds: Vec<u32> = stated.collect();
        match is_legacy {
            true => self.new_legacy(client, now, forgets, &holds),
            false => self.new_session(client, now, incarnation, &holds),
        }
    }

    /// One of Doorman's clients, which may forget the fields that Doorman does not know.
    fn new_legacy(&self, client: u32, now: Time, forgets: bool, holds: &[u32]) -> Mind {
        let found = &self.population.clients[client as usize];
        let servers = self.addresses_of(found.site);
        let mut legacy = Legacy::new(now, found.id.clone(), servers, self.rules.settings.timeout);
        if forgets {
            legacy = legacy.forgetful();
        }
        for hold in holds.iter().map(|&hold| &self.population.holdings[hold as usize]) {
            let resource = &self.resources[usize::from(hold.resource)];
            legacy.add(resource.id.clone(), hold.demand.wants, hold.demand.priority, resource.legacy);
        }
        Mind::Legacy(Box::new(legacy))
    }

    fn new_session(&self, client: u32, now: Time, incarnation: Incarnation, holds: &[u32]) -> Mind {
        let (rules, found) = (&self.rules, &self.population.clients[client as usize]);
        let mut config = SessionConfig::new(found.id.clone(), incarnation, self.addresses_of(found.site));
        config.drift = rules.drift;
        config.features = self.features_of(Actor::Client(client), found.process.life + 1);
        config.timeout = rules.settings.timeout;
        config.spacing = rules.settings.spacing;
        config.longest_back_off = rules.settings.longest_back_off;
        config.eager = rules.settings.eager;
        config.transport = match found.way {
            Way::Stream => Transport::Stream,
            Way::Poll | Way::Legacy => Transport::Poll,
        };
        #[cfg(feature = "mutations")]
        {
            config.rules = rules.mutation.map(crate::mutation::Mutation::client).unwrap_or_default();
        }
        let mut session = Session::new(config);
        for hold in holds.iter().map(|&hold| &self.population.holdings[hold as usize]) {
            let resource = &self.resources[usize::from(hold.resource)];
            session.add(now, resource.id.clone(), self.holding_config(hold));
            if hold.demand.is_measured {
                session.set_peak(now, &resource.id, Said::NOTHING.peak);
            }
        }
        Mind::Ours(Box::new(session))
    }

    /// The process of a client is gone; its host says so, or not.
    pub(super) fn end_life(&mut self, client: u32, said: bool) {
        if !self.population.clients[client as usize].lives() {
            return;
        }
        let actor = Actor::Client(client);
        let life = self.process(actor).life;
        self.note(actor.who(), Happening::Ends, [life.into(), said.into(), 0]);
        let found = &mut self.population.clients[client as usize];
        found.mind = Mind::Nobody;
        let frozen = found.process.frozen.take();
        self.restart_clock(actor);
        let found = &mut self.population.clients[client as usize];
        if let Some(stream) = found.process.stream.take() {
            self.abandon(stream, said);
        }
        self.end_domain(client);
        self.population.companions.remove(&client);
        for hold in self.population.clients[client as usize].holds.clone() {
            self.population.holdings[hold as usize].reborn();
            self.population.programs.set(hold, None);
            self.recount(hold);
        }
        // What the next lives do is not of the one that was frozen.
        for event in frozen.into_iter().flat_map(|frozen| frozen.backlog) {
            if matches!(event, Event::Use(_) | Event::Wants(_)) {
                self.queue.put(self.now, event);
            }
        }
    }

    /// Does all that a client wants done.
    pub(super) fn drive_client(&mut self, client: u32) {
        let now = self.local(Actor::Client(client));
        self.look_at_use(client, now);
        self.exchange_units(client, now);
        self.look_at_demands(client, now);
        self.look_at_domains(client, now);
        self.tell_domain(client, now);
        let mut actions = 0;
        while let Some(action) = self.population.clients[client as usize].mind.poll(now) {
            actions += 1;
            assert!(actions < ENDLESS, "client {client} never comes to rest:\n{}", self.trace());
            match action {
                Action::Change(change) if self.try_second(client, &change) => {}
                Action::Change(change) => {
                    self.follow_domain(client, &change);
                    self.believe(client, &change);
                    self.tell_domain(client, now);
                }
                Action::News(news) => self.learn_domain(client, now, &news),
                action => self.act(Actor::Client(client), action),
            }
            self.exchange_units(client, now);
            self.look_at_domains(client, now);
        }
        let domains = self.next_domain(client).min(self.next_tell(client));
        let found = &self.population.clients[client as usize];
        let deadline =
            found.mind.next_deadline().min(found.next_look).min(self.next_demand(client)).min(domains);
        self.wake_at(Actor::Client(client), deadline);
    }

    /// The client wants so much of what it holds there, from when it runs next on.
    pub(super) fn want(&mut self, hold: u32, wants: f64) {
        if self.is_measured_now(hold) || self.is_derived(hold) {
            return;
        }
        let stated = self.population.programs.get_mut(hold).and_then(|program| program.state(wants));
        let holding = &mut self.population.holdings[hold as usize];
        holding.demand.wants = wants;
        let (client, resource) = (holding.client, holding.resource);
        self.note(Actor::Client(client).who(), Happening::Wants, [wants.to_bits(), resource.into(), 0]);
        let now = self.local(Actor::Client(client));
        let bands = bands(&self.population.holdings[hold as usize]);
        let id = &self.resources[usize::from(resource)].id;
        match &mut self.population.clients[client as usize].mind {
            Mind::Nobody => {}
            Mind::Ours(session) => {
                if let Some(said) = stated {
                    session.set_peak(now, id, said.peak);
                }
                session.set_bands(now, id, bands);
            }
            Mind::Legacy(legacy) => legacy.set_wants(id, wants),
        }
        self.want_second(hold);
    }

    /// The client asks again for what it has dropped.
    pub(super) fn take(&mut self, hold: u32, life: u32) {
        let holding = &self.population.holdings[hold as usize];
        if self.process(Actor::Client(holding.client)).life != life {
            return;
        }
        let client = holding.client;
        let resource = &self.resources[usize::from(holding.resource)];
        let (id, config) = (resource.id.clone(), self.holding_config(holding));
        let now = self.local(Actor::Client(client));
        if let Some(session) = self.population.clients[client as usize].mind.session() {
            session.add(now, id, config);
            let allowance = session.allowance(now, &self.resources[usize::from(holding.resource)].id);
            self.population.holdings[hold as usize].stance = Stance::Kept;
            self.allow(hold, now, allowance);
            self.follow_policies(hold);
            self.say_in_use(hold);
            self.hear_of_second(hold, allowance.beside);
            self.drive_client(client);
        }
    }

    fn believe(&mut self, client: u32, change: &Change) {
        let found = &self.population.clients[client as usize];
        let mut holds = found.holds.clone();
        let of = |hold: &u32| {
            let resource = self.population.holdings[*hold as usize].resource;
            self.resources[usize::from(resource)].id == change.resource
        };
        let hold = holds.find(of).expect("a resource that the client asks for");
        if self.is_sublease(hold) {
            return self.believe_of_domain(hold, change);
        }
        let amount = change.allowance.capacity.unwrap_or(Amount::MAX);
        if change.rung == Rung::Waiting {
            self.population.holdings[hold as usize].begin_anew();
        }
        let now = self.local(Actor::Client(client));
        if self.says_before() {
            self.say_in_use(hold);
        }
        self.take_before(hold, now);
        self.put_into_force(hold, now, change.allowance);
        self.follow_policies(hold);
        match change.rung {
            Rung::Safe | Rung::Optimistic => self.fall_back(hold, amount, change.allowance.until),
            Rung::Waiting | Rung::Leased | Rung::Pessimistic => {
                self.adopt(hold, amount, change.allowance.until);
            }
        }
        self.goes_by_lease(hold, change);
        if !self.says_before() {
            self.say_in_use(hold);
        }
        self.hear_of_second(hold, change.allowance.beside);
        self.hear_of_kind(hold, change);
    }

    /// A client that holds a lease of nothing goes by that lease's number: it may have more in use under it.
    pub(super) fn goes_by_lease(&mut self, hold: u32, change: &Change) {
        let Holding { client, .. } = self.population.holdings[hold as usize];
        if change.allowance.capacity == Some(Amount::ZERO)
            && change.rung == Rung::Leased
            && let Some(session) = self.population.clients[client as usize].mind.session()
        {
            let order = session.proof(&change.resource).map(|proof| proof.order);
            self.population.holdings[hold as usize].goes_by(order);
        }
    }
}

impl Simulation {
    /// As a companion of that is taken: the weight of a program is of what it keeps to.
    pub(super) fn companion_config(&self, holding: &Holding) -> HoldingConfig {
        let bands = std::iter::once(Band { subclients: 1, ..bands(holding)[0] }).collect();
        HoldingConfig { bands, ..self.holding_config(holding) }
    }

    fn holding_config(&self, holding: &Holding) -> HoldingConfig {
        HoldingConfig {
            kind: match holding.taken_as.kind {
                Kind::Rate => Counting::Rate,
                Kind::Gauge => Counting::Gauge,
            },
            bands: bands(holding),
            fallback: self.rules.fallback,
            surplus: if holding.taken_as.is_window { Surplus::Yield } else { Surplus::Return },
        }
    }
}

pub(super) fn bands(holding: &Holding) -> Bands {
    let StatedDemand { priority, weight, wants, .. } = holding.demand;
    // Whoever keeps units for a window says so by a band for those at hand.
    let at_hand =
        holding.taken_as.is_window.then_some(Band { priority: Band::RESERVE, subclients: 1, wants: 0.0 });
    std::iter::once(Band { priority, subclients: weight, wants }).chain(at_hand).collect()
}

// === what holders do ===

impl Simulation {
    /// Does something for a holder that concerns the one above.
    pub(super) fn act(&mut self, actor: Actor, action: Action) {
        let from = Sender { actor, life: self.process(actor).life };
        if let Actor::Task(task) = actor {
            self.consult(|oracle, facts| oracle.watch_silence(facts, task));
        }
        match action {
            Action::Change(_) | Action::News(_) => {}
            Action::Ask { id, to, ask } => {
                self.note(actor.who(), Happening::Asks, [id.0, ask.target_epoch.unwrap_or_default().0, 0]);
                match actor {
                    Actor::Client(_) => self.progress.counts.client_asks += 1,
                    Actor::Task(_) => self.progress.counts.node_asks += 1,
                }
                self.watch_reports(actor, ask.target_epoch, &ask.reports);
                if let Some(to) = self.address(&to) {
                    self.post_up(from, to, ToNode::Ask { from, id, ask: Box::new(ask) });
                }
            }
            Action::Release { id, to, release } => {
                self.note(actor.who(), Happening::Releases, [id.0, 0, 0]);
                self.progress.counts.releases += 1;
                if let Some(to) = self.address(&to) {
                    self.post_up(from, to, ToNode::Release { from, id, release: Box::new(release) });
                }
            }
            Action::Connect { id, to, hello } => {
                self.note(actor.who(), Happening::Connects, [id, 0, 0]);
                self.progress.counts.streams += 1;
                if let Some(to) = self.address(&to) {
                    self.connect(from, id, to, hello);
                }
            }
            Action::Send { id, up } => self.send(actor, id, up),
            Action::Disconnect { id } => {
                self.note(actor.who(), Happening::Disconnects, [id, 0, 0]);
                if let Some(stream) = self.process_mut(actor).stream.take() {
                    self.abandon(stream, true);
                }
            }
        }
    }

    fn send(&mut self, actor: Actor, id: u64, up: Up) {
        match &up {
            Up::Report(report) => {
                self.note(actor.who(), Happening::Reports, [id, report.id.0, report.renew_all.into()]);
                self.watch_reports(actor, report.target_epoch, &report.reports);
            }
            _ => self.note(actor.who(), Happening::SendsOther, [id, 0, 0]),
        }
        self.count_up(&up);
        let Some(stream) = self.process(actor).stream else { return };
        let Some(found) = self.streams.get(stream) else { return };
        assert!(found.id == id, "a session has one stream at most");
        let to = found.task;
        self.send_up(stream, to, ToNode::Up { stream, up });
    }

    fn watch_reports(&mut self, actor: Actor, epoch: Option<Epoch>, reports: &[Report]) {
        for report in reports {
            if let Some(has) = &report.has {
                let order = has.order.map_or(0, |order| order.epoch.0 << 32 | order.seq);
                let held = report.held.unwrap_or(has.capacity);
                let numbers = [order, has.capacity.as_micros(), held.as_micros()];
                self.note(actor.who(), Happening::Holds, numbers);
            }
            self.take_promise(actor, epoch, report);
        }
    }
}

// === what reaches holders ===

impl Simulation {
    /// Something arrives at a holder.
    pub(super) fn at_holder(&mut self, holder: Sender, delivery: ToHolder) {
        match delivery {
            ToHolder::Down { stream, .. } if self.is_cut(stream, false) => return,
            ToHolder::Closed { stream, certain: false, .. } if self.is_cut(stream, false) => return,
            _ if !self.lives(holder) => {
                self.progress.tally.cut += 1;
                return;
            }
            _ => {}
        }
        let heard = match &delivery {
            ToHolder::Answered { id, .. } => Some((Happening::HearsAnswer, id.0)),
            ToHolder::Failed { id, .. } => Some((Happening::HearsFailure, id.0)),
            ToHolder::Released { id, .. } => Some((Happening::HearsReleased, id.0)),
            ToHolder::Down { stream, .. } => {
                self.open_for(holder, *stream).map(|id| (Happening::HearsDown, id))
            }
            ToHolder::Closed { stream, .. } => {
                self.open_for(holder, *stream).map(|id| (Happening::HearsClosed, id))
            }
        };
        let Some((what, id)) = heard else { return };
        self.note(holder.actor.who(), what, [id, 0, 0]);
        self.consult(|oracle, facts| oracle.watch_mail(facts, holder.actor, &delivery));
        if let ToHolder::Closed { stream, .. } = &delivery {
            self.process_mut(holder.actor).stream = None;
            self.streams.holder_left(*stream);
        }
        match holder.actor {
            Actor::Client(client) => {
                self.at_client(client, id, delivery);
                self.drive_client(client);
            }
            Actor::Task(task) => {
                self.at_child(task, id, delivery);
                self.drive_leader(task);
            }
        }
        self.oracle.delivery.clear();
    }

    /// The id that the holder has for the stream, if it has not dropped it.
    fn open_for(&self, holder: Sender, stream: crate::stream::StreamRef) -> Option<u64> {
        let found = self.streams.get(stream)?;
        (found.holder == holder && found.holder_open).then_some(found.id)
    }

    fn at_client(&mut self, client: u32, id: u64, delivery: ToHolder) {
        let now = self.local(Actor::Client(client));
        self.population.clients[client as usize].mind.handle(now, delivery.event(id));
    }

    fn at_child(&mut self, task: u32, id: u64, delivery: ToHolder) {
        let now = self.local(Actor::Task(task));
        if let Some(leadership) = &mut self.tree.tasks[task as usize].leadership {
            leadership.node.on_parent(now, delivery.event(id));
        }
    }

    /// A call or a stream that a task cannot serve.
    pub(super) fn fail(&mut self, task: u32, holder: Sender, id: ReportId, why: &str) {
        let failure = Failure::Unreachable(why.to_owned());
        self.post_down(task, holder, ToHolder::Failed { id, failure });
    }
}
