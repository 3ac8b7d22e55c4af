//! The task behind a client: session x clock x link.
//!
//! It waits for whichever comes first of the session's deadline, something heard from a server and a command, reads the clock once, and hands
//! the session what happened. So a lease ends in time while a request hangs. No lock is held while it waits.

mod companions;
mod jobs;
mod knocks;
mod subleases;
mod units;
mod windows;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use lessor_proto::message::Unenforced;
use lessor_proto::{Amount, ResourceId, Time};
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, info, warn};

use self::windows::DrivenWindows;
use super::clock;
use super::command::{Command, OpenResource};
use super::lease_state::LeaseState;
use super::line::ParentLine;
use super::metrics::LastFault;
use super::registry::Registry;
use crate::allowance::Allowance;
use crate::companions::{AccompaniedUse, Companions};
use crate::domain::Scope;
use crate::holding::{Kind, Rung};
use crate::session::{self, Action, Change, Session, Transport};
use crate::sublessee::Sublessee;

/// The interval at which the use of a rate is looked at.
const RATE_TICK: Duration = Duration::from_millis(250);
/// The interval at which the use of a gauge is looked at: somebody may wait for what comes back.
const GAUGE_TICK: Duration = Duration::from_millis(200);
/// The time for which a client that stops tries to release its leases.
const GRACE: Duration = Duration::from_secs(2);

/// The state of the task.
pub(super) struct Driver {
    session: Session,
    line: ParentLine,
    registry: Arc<Registry>,
    commands: mpsc::UnboundedReceiver<Command>,
    open: BTreeMap<ResourceId, DrivenResource>,
    derived: DerivedLeases,
    windows: DrivenWindows,
    way: LoggedWay,
    clocks: clock::ClockWatch,
    looks: NextLooks,
    stopping: Option<Stopping>,
    /// Every handle is gone, and there will be no more commands.
    alone: bool,
}

/// The times at which the driver looks at what it drives, if nothing calls it before.
struct NextLooks {
    /// At the use of resources.
    tick: Time,
    /// When there is something to tell of domains.
    tell: Time,
}

/// The way to the server, as it was last looked at and told in the log.
struct LoggedWay {
    transport: Transport,
    /// It has been said that a server has no streams.
    has_polled: bool,
}

/// The leases of which the program does not hear.
#[derive(Default)]
struct DerivedLeases {
    /// Those of domains.
    subleases: Sublessee,
    /// Those of second limits.
    companions: Companions,
}

struct DrivenResource {
    opening: OpenResource,
    /// No handle is left, or the client is closing: nothing is allowed, and it is released when nothing is in use.
    leaving: bool,
}

struct Stopping {
    until: Time,
    done: Vec<oneshot::Sender<()>>,
}

enum DriverEvent {
    Deadline,
    Command(Command),
    Alone,
    Heard(session::Event),
}

// === impl NextLooks ===

impl NextLooks {
    fn next_deadline(&self) -> Time {
        self.tick.min(self.tell)
    }

    /// The use of resources is looked at by then.
    fn tick_by(&mut self, at: Time) {
        self.tick = self.tick.min(at);
    }
}

// === impl LoggedWay ===

impl LoggedWay {
    fn look_at(&mut self, transport: Transport, server: &str) {
        if std::mem::replace(&mut self.transport, transport) == transport || transport == Transport::Stream {
            return;
        }
        match std::mem::replace(&mut self.has_polled, true) {
            false => info!(%server, "the server has no streams: polling"),
            true => debug!(%server, "the server still has no streams"),
        }
    }
}

// === impl DerivedLeases ===

impl DerivedLeases {
    /// Gives back all that belongs to `resource`, of whose companion so many units were counted.
    fn leave(&mut self, now: Time, resource: &ResourceId, beside: Unenforced, session: &mut Session) {
        self.subleases.leave(now, resource, session);
        self.companions.give_back(now, (resource, beside), session);
    }
}

// === impl Driver ===

impl Driver {
    pub(super) fn new(
        session: Session,
        line: ParentLine,
        registry: Arc<Registry>,
        commands: mpsc::UnboundedReceiver<Command>,
    ) -> Driver {
        Driver {
            way: LoggedWay { transport: session.transport(), has_polled: false },
            session,
            line,
            registry,
            commands,
            open: BTreeMap::new(),
            derived: DerivedLeases::default(),
            windows: DrivenWindows::new(),
            clocks: clock::ClockWatch::start(),
            looks: NextLooks { tick: Time::MAX, tell: Time::MAX },
            stopping: None,
            alone: false,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            let now = clock::now();
            self.look_at_clocks(now);
            self.observe(now);
            self.look_at_windows(now);
            self.act(now);
            self.tell(now);
            if self.has_stopped(now) {
                break;
            }
            let event = self.next_event().await;
            self.handle(clock::now(), event);
        }
        for done in self.stopping.into_iter().flat_map(|stopping| stopping.done) {
            // Whoever closed the client may have lost interest.
            let _ = done.send(());
        }
    }

    async fn next_event(&mut self) -> DriverEvent {
        let deadline = self.next_deadline();
        tokio::select! {
            () = clock::sleep_until(deadline) => DriverEvent::Deadline,
            heard = self.line.hear() => DriverEvent::Heard(heard),
            command = self.commands.recv(), if !self.alone => command.map_or(DriverEvent::Alone, DriverEvent::Command),
        }
    }

    fn next_deadline(&self) -> Time {
        let end = self.stopping.as_ref().map_or(Time::MAX, |stopping| stopping.until);
        let work = self.session.next_deadline().min(self.windows.holder.next_deadline());
        work.min(self.looks.next_deadline()).min(end)
    }

    fn handle(&mut self, now: Time, event: DriverEvent) {
        match event {
            DriverEvent::Deadline => {}
            DriverEvent::Alone => {
                self.alone = true;
                self.stop(now, None);
            }
            DriverEvent::Heard(heard) => self.take(now, heard),
            DriverEvent::Command(command) => {
                self.obey(now, command);
                // What was said in one breath is asked for in one request.
                while let Ok(command) = self.commands.try_recv() {
                    self.obey(now, command);
                }
            }
        }
    }

    fn obey(&mut self, now: Time, command: Command) {
        match command {
            Command::Open(opening) => self.open(now, *opening),
            Command::Close { resource, generation } => {
                let until = self.session.allowance(now, &resource).until;
                if let Some(held) = self.held(&resource, generation) {
                    held.leave(now, until);
                    let beside = held.opening.enforcer.counted_beside();
                    self.derived.leave(now, &resource, beside, &mut self.session);
                    self.looks.tick = now;
                }
            }
            Command::Subleases { resource, generation } => {
                if self.held(&resource, generation).is_some() {
                    self.hear_of_domains(now, &resource);
                }
            }
            Command::Want { resource, generation, wants } => {
                if let Some(held) = self.held(&resource, generation) {
                    held.opening.demand.set(wants);
                    self.looks.tick = now;
                }
            }
            Command::Units { resource, generation } => {
                if self.held(&resource, generation).is_some() {
                    self.ask_for_units(now, &resource);
                }
            }
            Command::JobDone { resource, generation } => self.job_done(&resource, generation),
            Command::AwaitJob { resource, generation, since } => {
                self.await_job(&resource, generation, since);
            }
            Command::Knock { resource, generation } => self.knock(now, &resource, generation),
            // What there is to tell is looked at after each event.
            Command::Tell => {}
            Command::OpenWindows(keys) => self.windows.keys.push(keys),
            Command::Windows => self.windows.are_called = true,
            Command::Shutdown { done } => self.stop(now, Some(done)),
        }
    }

    /// An opening that follows another of the same name takes over its lease.
    fn open(&mut self, now: Time, opening: OpenResource) {
        if self.stopping.is_some() {
            return;
        }
        debug!(resource = %opening.resource, wants = opening.demand.wants().as_f64(), "opened");
        if let Some(held) = self.open.get(&opening.resource) {
            let before = &held.opening.enforcer;
            self.session.set_unenforced(&opening.resource, before.unenforced());
            self.derived.leave(now, &opening.resource, before.counted_beside(), &mut self.session);
        }
        self.derived.subleases.yield_to_program(now, &opening.resource);
        self.yield_companion(now, &opening.resource);
        self.windows.holder.yield_to_program(now, &opening.resource);
        self.session.add(now, opening.resource.clone(), opening.config.clone());
        self.session.set_peak(now, &opening.resource, opening.demand.peak().map(Amount::as_f64));
        let policies = self.session.policies(&opening.resource);
        let allowance = self.session.allowance(now, &opening.resource);
        opening.allow(now, policies, allowance);
        self.session.set_in_use(now, &opening.resource, opening.enforcer.in_use());
        self.looks.tick_by(now);
        let resource = opening.resource.clone();
        self.open.insert(resource.clone(), DrivenResource { opening, leaving: false });
        self.hear_of_second(now, &resource, allowance.beside);
    }

    fn take(&mut self, now: Time, event: session::Event) {
        self.session.handle(now, event);
        self.bring_units(now);
        self.take_up_jobs();
        self.look_at_transport();
    }

    fn look_at_transport(&mut self) {
        let transport = self.session.transport();
        self.way.look_at(transport, self.session.server());
    }

    fn look_at_clocks(&mut self, now: Time) {
        let lost = self.clocks.lost();
        if !lost.is_zero() {
            warn!(lost_ms = lost.as_millis(), "the wall clock ran ahead; leases end that much earlier");
            self.session.lose_time(now, lost);
            // What is known of the clock at the other end is wrong by so much.
            self.open.values().for_each(|held| held.opening.domains.attend(None));
        }
    }

    /// Looks at what is used, and lets go of what is not used any more.
    fn observe(&mut self, now: Time) {
        if now < self.looks.tick {
            return;
        }
        let mut tick = RATE_TICK;
        let mut gone = Vec::new();
        for (resource, held) in &mut self.open {
            let in_use = held.opening.enforcer.in_use();
            self.session.set_unenforced(resource, held.opening.enforcer.unenforced());
            if held.leaving && in_use == Amount::ZERO {
                gone.push(resource.clone());
                continue;
            }
            let wants = held.wants(now);
            held.opening.domains.sweep(now);
            held.opening.domains.subleases().retire(now);
            self.session.set_in_use(now, resource, in_use);
            let peak = held.opening.demand.peak().filter(|_| !held.leaving);
            self.session.set_peak(now, resource, peak.map(Amount::as_f64));
            self.session.set_wants(now, resource, wants);
            let usage = AccompaniedUse {
                wants,
                peak: peak.map(Amount::as_f64),
                in_use: held.opening.enforcer.in_use_beside(),
                counted: held.opening.enforcer.counted_beside(),
            };
            self.derived.companions.want(now, resource, usage, &mut self.session);
            held.opening.view.send_if_modified(|view| {
                view.wants = wants;
                false
            });
            held.note_shortness(now);
            if held.opening.config.kind == Kind::Gauge {
                tick = tick.min(GAUGE_TICK);
            }
            tick = held.opening.demand.look_again(now).map_or(tick, |soon| tick.min(soon));
        }
        for resource in gone {
            self.session.remove(now, &resource);
            self.open.remove(&resource);
            self.registry.forget(&resource);
        }
        for resource in self.open.keys().cloned().collect::<Vec<_>>() {
            self.hear_of_domains(now, &resource);
        }
        self.derived.subleases.observe(now, &mut self.session);
        self.looks.tick = if self.open.is_empty() { Time::MAX } else { now + tick };
    }

    /// Does what the session says.
    fn act(&mut self, now: Time) {
        while let Some(action) = self.session.poll(now) {
            if let Action::Change(Change { resource, fault: Some(fault), .. }) = &action {
                let (resource, fault) = (resource.clone(), fault.clone());
                self.registry.note_fault(LastFault { at: now, resource, fault });
            }
            match action {
                Action::Change(change) if self.windows.holder.apply(now, &change, &mut self.session) => {}
                Action::Change(change) if self.try_second(now, &change) => {}
                Action::Change(change) => {
                    let (resource, is_tried) = (change.resource.clone(), change.allowance.beside);
                    self.tell_domain(now, &change);
                    if let Some(held) = self.open.get_mut(&resource) {
                        held.apply(now, change);
                        // The limit is lowered, and the next report is not built: what is in use now is what it may say.
                        self.session.set_in_use(now, &resource, held.opening.enforcer.in_use());
                        self.hear_of_domains(now, &resource);
                        self.hear_of_second(now, &resource, is_tried);
                        self.ask_for_units(now, &resource);
                    }
                }
                Action::News(news) => {
                    if let Some(held) = self.open.get(&news.resource) {
                        held.opening.domains.on_update(now, &news);
                    }
                }
                action => self.line.perform(action),
            }
        }
        self.registry.count(self.session.counts(), self.way.transport);
    }

    /// Tells the server what domains did, if it is time for that.
    fn tell(&mut self, now: Time) {
        let mut next = Time::MAX;
        let mut has_told = false;
        for (resource, held) in &self.open {
            let domains = &held.opening.domains;
            if domains.scope() != Scope::Shared {
                continue;
            }
            domains.attend(self.session.stream_of(resource));
            if domains.next_deadline().is_some_and(|at| at <= now)
                && let Some(report) = domains.next_message(now, resource)
            {
                self.session.tell(report);
                has_told = true;
            }
            next = next.min(domains.next_deadline().unwrap_or(Time::MAX));
        }
        self.looks.tell = next;
        if has_told {
            self.act(now);
        }
    }

    fn stop(&mut self, now: Time, done: Option<oneshot::Sender<()>>) {
        for (resource, held) in &mut self.open {
            held.leave(now, self.session.allowance(now, resource).until);
            let beside = held.opening.enforcer.counted_beside();
            self.derived.leave(now, resource, beside, &mut self.session);
        }
        self.windows.holder.leave(now, &mut self.session);
        self.looks.tick = now;
        let stopping = self.stopping.get_or_insert(Stopping { until: now + GRACE, done: Vec::new() });
        stopping.done.extend(done);
    }

    fn has_stopped(&self, now: Time) -> bool {
        self.stopping.as_ref().is_some_and(|stopping| {
            now >= stopping.until
                || (self.open.is_empty() && self.windows.holder.is_empty() && self.session.is_empty())
        })
    }

    /// The resource that is open under `resource`, if it is still that opening.
    fn held(&mut self, resource: &ResourceId, generation: u64) -> Option<&mut DrivenResource> {
        self.open.get_mut(resource).filter(|held| held.opening.generation == generation)
    }
}

// === impl DrivenResource ===

impl DrivenResource {
    /// Nothing more is given out. Permits that are out last as long as the lease, until then and on from there.
    fn leave(&mut self, now: Time, until: Time) {
        self.leaving = true;
        self.opening.enforcer.allow(now, Allowance { until, ..Allowance::NOTHING });
        self.opening.enforcer.try_beside(now, None);
        self.opening.view.send_modify(|view| *view = LeaseState::closed());
        self.note_shortness(now);
    }

    /// Counts from here on for what it is short by.
    fn note_shortness(&self, now: Time) {
        let by = self.opening.view.borrow().short_by();
        self.opening.shortness.lock().unwrap_or_else(PoisonError::into_inner).note(now, by);
    }

    fn wants(&mut self, now: Time) -> f64 {
        let OpenResource { enforcer, demand, .. } = &mut self.opening;
        let wants = enforcer.observe(now, demand);
        enforcer.set_gate(demand.gate(now));
        if self.leaving { 0.0 } else { wants.as_f64() }
    }

    fn apply(&mut self, now: Time, change: Change) {
        if self.leaving {
            self.opening.enforcer.allow(
                now,
                Allowance { capacity: Some(Amount::ZERO), unenforced: false, ..change.allowance },
            );
            return;
        }
        let allowance = change.allowance;
        self.opening.allow(now, change.domains.clone(), allowance);
        let OpenResource { enforcer, view, demand, .. } = &mut self.opening;
        let (before, held) = (view.borrow().rung, view.borrow().capacity);
        demand.follow_burst(allowance.burst);
        if allowance.capacity > held {
            demand.open_gate();
            enforcer.set_gate(demand.gate(now));
        }
        log(now, before, &change);
        view.send_if_modified(|view| view.apply(change));
        self.note_shortness(now);
    }
}

fn log(now: Time, before: Rung, change: &Change) {
    let Change { resource, allowance, rung, fault, .. } = change;
    let (capacity, rung) = (allowance.capacity.map(Amount::as_f64), rung.name());
    let lasts_ms = u64::try_from(allowance.until.since(now).as_millis()).unwrap_or(u64::MAX);
    match (before == change.rung, change.rung, fault) {
        (true, _, None) => debug!(%resource, capacity, rung, lasts_ms, "allowance changed"),
        (true, _, Some(fault)) => warn!(%resource, capacity, rung, lasts_ms, %fault, "not renewed"),
        (false, Rung::Leased | Rung::Waiting, _) => {
            info!(%resource, capacity, rung, lasts_ms, "allowance changed");
        }
        (false, _, _) => warn!(%resource, capacity, rung, lasts_ms, "the lease has ended"),
    }
}
