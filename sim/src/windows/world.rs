//! The servers, the holders and the network between them.

use std::time::Duration;

use lessor_client::Transport;
use lessor_client::internals::session::{Action, Event};
use lessor_proto::message::{Down, Up};
use lessor_proto::{Epoch, Time};
use lessor_server::config::ParentConfig;
use lessor_server::node::NodeConfig;

use super::faults::Standstill;
use super::holder::SimulatedHolder;
use super::stations::{HolderStation, ServerStation};
use super::uses::UseCounts;
use super::{WindowsReport, WindowsRun};
use crate::event_queue::EventQueue;
use crate::net::{Endpoint, Net, NetMessage};
use crate::rng::Rng;

/// Something that happens.
#[derive(Debug)]
pub(super) enum WindowsEvent {
    /// Requests at a place, and how many.
    Requests(usize, u32),
    /// Something is due at a holder.
    Holder(usize),
    /// Those who came to a holder a while ago wait no longer.
    GivesUp(usize),
    /// Something is due at a server.
    Node(usize),
    /// Something arrives.
    Message(Box<NetMessage>),
    /// Some holders die, others are cut off, and others leave.
    Misfortune,
    /// Something goes wrong.
    Fault,
    /// A holder that stood still goes on.
    GoesOn(usize),
}

/// The site of the root among the servers.
pub(super) const ROOT: usize = 0;
/// The windows in which everything begins.
const BEGINNING: u32 = 2;
/// The last windows, in which nothing goes wrong any more: leases end, servers learn, and in the last three all is as it should be.
const CALM: u32 = 12;
const JUDGED: u32 = 4;
/// In so many windows each unit is used again: it is kept for 1.01 of them, by a clock that may be slow by as much, moves, and waits
/// where it is for the next request.
const WHOLE: f64 = 1.1;

pub(super) struct WindowsWorld {
    pub(super) run: WindowsRun,
    pub(super) now: Time,
    pub(super) phases: RunPhases,
    pub(super) queue: EventQueue<WindowsEvent>,
    pub(super) rng: Rng,
    pub(super) net: Net,
    /// The last epoch that has begun.
    pub(super) epoch: u64,
    /// The root, and the leaves.
    servers: Vec<ServerStation>,
    /// The holder at each place.
    pub(super) slots: Vec<usize>,
    /// All that live or have.
    pub(super) holders: Vec<HolderStation>,
    uses: UseCounts,
    pub(super) report: WindowsReport,
}

/// The times of a run.
#[derive(Clone, Copy)]
pub(super) struct RunPhases {
    /// When requests come, when they are counted, and when they end.
    begin: Time,
    counts_from: Time,
    end: Time,
    /// From then on nothing goes wrong.
    pub(super) calm_from: Time,
}

// === impl RunPhases ===

impl RunPhases {
    fn new(run: &WindowsRun) -> RunPhases {
        // A server without a record learns for a lease.
        let begin = Time::ZERO + run.lease() * 2;
        let counts_from = begin + run.window * BEGINNING;
        let windows = u32::try_from(run.windows).unwrap_or(u32::MAX);
        let end = counts_from + run.window * windows;
        RunPhases {
            begin,
            counts_from,
            end,
            calm_from: counts_from + run.window * windows.saturating_sub(CALM),
        }
    }
}

// === impl WindowsWorld ===

impl WindowsWorld {
    pub(super) fn new(run: WindowsRun, seed: u64) -> WindowsWorld {
        let mut rng = Rng::new(seed);
        let phases = RunPhases::new(&run);
        let RunPhases { begin, counts_from, .. } = phases;
        let windows = u32::try_from(run.windows).unwrap_or(u32::MAX);
        let station = |number| HolderStation::new(SimulatedHolder::new(&run, number, Time::ZERO, &mut rng));
        let mut world = WindowsWorld {
            now: Time::ZERO,
            phases,
            queue: EventQueue::small(),
            epoch: 1,
            slots: (0..run.holders).collect(),
            holders: (0..run.holders).map(station).collect(),
            net: network(&run),
            servers: vec![ServerStation::default(); 1 + run.leaves],
            uses: UseCounts::new(run.window, usize::try_from(run.windows).unwrap_or_default()),
            run,
            rng,
            report: WindowsReport::default(),
        };
        for holder in 0..run.holders {
            world.attend(holder);
            world.expect_requests(holder, begin);
        }
        (0..=run.leaves).for_each(|node| world.serve(node));
        if run.goes_wrong {
            world.queue.put(counts_from, WindowsEvent::Fault);
        }
        if run.dying + run.cut + run.leaving > 0 {
            let middle = counts_from + run.window * (windows / 2);
            world.queue.put(middle, WindowsEvent::Misfortune);
        }
        world
    }

    pub(super) fn play(mut self) -> WindowsReport {
        while let Some((at, event)) = self.queue.pop(self.phases.end) {
            self.now = at;
            self.happen(event);
        }
        let uses = &self.uses;
        let last = uses.least_of_last(self.run.window.mul_f64(WHOLE), self.phases.end);
        let (most, share, least) = (uses.most(), uses.share(self.run.limit), uses.least());
        WindowsReport { most, share, least, last, ..self.report }
    }

    fn happen(&mut self, event: WindowsEvent) {
        if let Some(until) = self.waits_until(&event) {
            return self.queue.put(until, event);
        }
        match event {
            WindowsEvent::Requests(place, number) => self.requests(place, number),
            WindowsEvent::Fault => self.go_wrong(),
            WindowsEvent::GoesOn(holder) => self.go_on(holder),
            WindowsEvent::Holder(holder) => {
                // Another look came in between where it is for later.
                if let Some(found) = &mut self.holders[holder].holder
                    && found.due.take_if(|due| *due <= self.now).is_some()
                {
                    self.attend(holder);
                }
            }
            WindowsEvent::GivesUp(holder) => self.attend(holder),
            WindowsEvent::Node(node) => {
                if self.servers[node].due.take_if(|due| *due <= self.now).is_some() {
                    self.serve(node);
                }
            }
            WindowsEvent::Message(message) => match *message {
                NetMessage::Up(from, _) if self.is_cut(from) => {}
                NetMessage::Down(to, event) if self.is_cut(to) => {
                    // It was written, and lies on the way.
                    if let Event::Down { id, .. } = event {
                        self.net.read(self.now, to, id);
                    }
                }
                NetMessage::Up(from, action) => {
                    if let Some(event) = self.net.take_up(self.now, from, action) {
                        self.deliver(from, event);
                    }
                    self.serve(self.net.home(from));
                }
                NetMessage::Down(to, event) => self.take_down(to, event),
            },
            WindowsEvent::Misfortune => {
                let WindowsRun { dying, cut, leaving, .. } = self.run;
                self.holders.iter_mut().take(dying).for_each(|station| station.holder = None);
                self.holders.iter_mut().take(dying + cut).for_each(|station| station.is_cut = true);
                for holder in dying + cut..dying + cut + leaving {
                    if let Some(found) = &mut self.holders[holder].holder {
                        found.leave(self.now);
                    }
                    self.attend(holder);
                }
            }
        }
    }

    /// Until when an event has to wait, as its holder stands still.
    fn waits_until(&self, event: &WindowsEvent) -> Option<Time> {
        let holder = match event {
            WindowsEvent::Requests(place, _) => self.slots[*place],
            WindowsEvent::Holder(holder) | WindowsEvent::GivesUp(holder) => *holder,
            WindowsEvent::Message(message) => match **message {
                NetMessage::Down(Endpoint::Holder(holder), _) => holder,
                _ => return None,
            },
            _ => return None,
        };
        self.holders[holder].still.map(Standstill::until).filter(|&until| until >= self.now)
    }

    fn is_cut(&self, endpoint: Endpoint) -> bool {
        matches!(endpoint, Endpoint::Holder(holder) if self.holders[holder].is_cut)
    }

    fn counts(&self) -> bool {
        self.now >= self.phases.counts_from
    }

    fn take_down(&mut self, to: Endpoint, event: Event) {
        let is_grant = matches!(&event, Event::Down { down: Down::Grants(_), .. });
        self.report.messages += u64::from(is_grant && self.counts());
        let event = self.net.take_down(self.now, to, event);
        match (to, event) {
            (Endpoint::Holder(holder), Some(event)) => {
                if let Some(found) = &mut self.holders[holder].holder {
                    found.take(self.now, event);
                }
                self.attend(holder);
            }
            (Endpoint::Node(leaf), _) => self.serve(leaf),
            (Endpoint::Holder(_), None) => {}
        }
        self.serve(self.net.home(to));
    }

    fn requests(&mut self, place: usize, number: u32) {
        self.expect_requests(place, self.now);
        let holder = self.slots[place];
        for _ in 0..number {
            let Some(found) = &mut self.holders[holder].holder else { return };
            let answer = found.request(&self.run, self.now);
            if self.counts() {
                self.report.asked += 1;
                self.report.at_once += u64::from(answer == Some(true));
            }
            if let Some(is_granted) = answer {
                self.note([u64::from(is_granted), u64::from(!is_granted)]);
            }
        }
        self.attend(holder);
        // On a slow clock the wait is longer.
        let at = self.now + self.run.waits + self.run.waits / 50;
        self.queue.put(at, WindowsEvent::GivesUp(holder));
    }

    /// Notes how many requests were granted, and how many refused.
    fn note(&mut self, [granted, refused]: [u64; 2]) {
        let limit = u64::from(self.run.limit);
        if granted > 0 {
            let is_last = self.now + self.run.window * JUDGED >= self.phases.end;
            let uses = self.uses.hear(self.now, granted, is_last);
            self.report.over += uses.saturating_sub(limit).min(granted);
        }
        if !self.counts() {
            return;
        }
        self.report.granted += granted;
        let place = self.now.since(self.phases.counts_from).as_nanos() / self.run.window.as_nanos();
        self.uses.count(place, granted);
        if refused > 0 {
            let live = self.holders.iter().filter_map(|station| station.holder.as_ref());
            let spent: u64 = live.map(|holder| holder.in_use(self.now)).sum();
            self.report.wrongly_refused += if spent < limit { refused } else { 0 };
        }
    }

    fn expect_requests(&mut self, holder: usize, from: Time) {
        let run = self.run;
        let next = run.traffic.next(&run, holder, (self.phases.begin, from), &mut self.rng);
        if let Some((at, number)) = next.filter(|&(at, _)| at < self.phases.end) {
            self.queue.put(at, WindowsEvent::Requests(holder, number));
        }
    }

    /// A holder does what is due, and says what it has to say.
    pub(super) fn attend(&mut self, holder: usize) {
        if self.holders[holder].still.is_some() {
            return;
        }
        for _ in 0..1_000 {
            let Some(found) = &mut self.holders[holder].holder else { return };
            let mut actions = Vec::new();
            while let Some(action) = found.poll(self.now) {
                actions.push(action);
            }
            let outcomes = found.settle(self.now);
            let is_done = actions.is_empty() && outcomes == [0, 0];
            self.note(outcomes);
            actions.into_iter().for_each(|action| self.send(Endpoint::Holder(holder), action));
            if is_done {
                break;
            }
        }
        let Some(found) = &mut self.holders[holder].holder else { return };
        let free_at = found.free_at(self.now).unwrap_or(Time::MAX);
        let at = found.next_deadline().min(free_at).max(self.now + Duration::from_nanos(1));
        if found.due.is_none_or(|due| at < due) && at < Time::MAX {
            found.due = Some(at);
            self.queue.put(at, WindowsEvent::Holder(holder));
        }
    }

    pub(super) fn send(&mut self, from: Endpoint, action: Action) {
        if let Action::Send { up: Up::Report(report), .. } = &action {
            let is_news = !report.renew_all || !report.reports.is_empty();
            self.report.messages += u64::from(is_news && self.counts());
        }
        let at = self.arrival(from, 0);
        self.queue.put(at, WindowsEvent::Message(Box::new(NetMessage::Up(from, action))));
    }

    pub(super) fn deliver(&mut self, to: Endpoint, event: Event) {
        let at = self.arrival(to, 1);
        self.queue.put(at, WindowsEvent::Message(Box::new(NetMessage::Down(to, event))));
    }

    fn arrival(&mut self, endpoint: Endpoint, way: usize) -> Time {
        let at = self.now + self.rng.time(self.run.way / 20, self.run.way);
        let (at, clear) = match endpoint {
            Endpoint::Holder(holder) => {
                let station = &mut self.holders[holder];
                (at.max(station.unheard_until), &mut station.clear[way])
            }
            Endpoint::Node(node) => (at, &mut self.servers[node].clear[way]),
        };
        *clear = at.max(*clear + Duration::from_nanos(1));
        *clear
    }

    /// A server does what is due.
    pub(super) fn serve(&mut self, node: usize) {
        for message in self.net.serve(self.now, node) {
            match message {
                NetMessage::Down(to, event) => self.deliver(to, event),
                NetMessage::Up(from, action) => self.send(from, action),
            }
        }
        if let Some(at) = self.net.next_deadline(node).map(|at| at.max(self.now + Duration::from_nanos(1)))
            && self.servers[node].expect(at)
        {
            self.queue.put(at, WindowsEvent::Node(node));
        }
    }
}

/// The root, and the leaves below it, to which holders go in turn.
fn network(run: &WindowsRun) -> Net {
    let parents: Vec<Option<usize>> = std::iter::once(None).chain(vec![Some(ROOT); run.leaves]).collect();
    let mut net = Net::new(&parents);
    for node in 0..=run.leaves {
        net.begin(Time::ZERO, node, node_config(run, node, Epoch(1)), run.repository());
    }
    for holder in 0..run.holders {
        net.add_holder(if run.leaves > 0 { 1 + holder % run.leaves } else { ROOT });
    }
    net
}

/// The configuration of a server that begins `epoch`.
pub(super) fn node_config(run: &WindowsRun, node: usize, epoch: Epoch) -> NodeConfig {
    let name = if node == ROOT { "root".to_owned() } else { format!("leaf-{node}") };
    let parent = ParentConfig { servers: vec!["root:1".into()], transport: Transport::Stream, eager: false };
    NodeConfig {
        parent: (node != ROOT).then_some(parent),
        rules: run.grantors,
        ..NodeConfig::new(name, epoch)
    }
}
