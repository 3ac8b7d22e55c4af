//! The servers, the holders and the network between them.

use std::time::Duration;

use lessor_client::Transport;
use lessor_client::internals::session::{Action, Event};
use lessor_proto::message::{Down, Up};
use lessor_proto::{Epoch, Time};
use lessor_server::config::ParentConfig;
use lessor_server::node::NodeConfig;

use super::holder::SimulatedHolder;
use super::judge::WindowJudge;
use super::{WindowsReport, WindowsRun};
use crate::event_queue::EventQueue;
use crate::net::{Endpoint, Net, NetMessage};
use crate::rng::Rng;

/// Something that happens.
#[derive(Debug)]
enum WindowsEvent {
    /// So many requests at a holder.
    Requests(usize, u32),
    /// Something is due at a holder.
    Holder(usize),
    /// Those who came to a holder a while ago wait no longer.
    GivesUp(usize),
    /// Something is due at a server.
    Node(usize),
    /// Something arrives.
    Message(Box<NetMessage>),
    /// Some holders die, and others are cut off.
    Misfortune,
}

/// The site of the root among the servers.
const ROOT: usize = 0;
/// The windows in which everything begins.
const BEGINNING: u32 = 2;

pub(super) struct WindowsWorld {
    run: WindowsRun,
    now: Time,
    /// When requests come, when they are counted, and when they end.
    begin: Time,
    counts_from: Time,
    end: Time,
    queue: EventQueue<WindowsEvent>,
    rng: Rng,
    net: Net,
    /// When each server is looked at next.
    due: Vec<Option<Time>>,
    /// Those that live.
    holders: Vec<Option<SimulatedHolder>>,
    cut: Vec<bool>,
    /// Nothing overtakes what was sent before it, up and down, of each holder.
    clear: Vec<[Time; 2]>,
    judge: WindowJudge,
    /// The uses in each window one behind the other.
    full: Vec<u64>,
    report: WindowsReport,
}

// === impl WindowsWorld ===

impl WindowsWorld {
    pub(super) fn new(run: WindowsRun, seed: u64) -> WindowsWorld {
        let mut rng = Rng::new(seed);
        // A server without a record learns for a lease.
        let begin = Time::ZERO + run.lease() * 2;
        let counts_from = begin + run.window * BEGINNING;
        let windows = u32::try_from(run.windows).unwrap_or(u32::MAX);
        let end = counts_from + run.window * windows;
        let holders =
            (0..run.holders).map(|number| Some(SimulatedHolder::new(&run, number, Time::ZERO, &mut rng)));
        let mut world = WindowsWorld {
            now: Time::ZERO,
            begin,
            counts_from,
            end,
            queue: EventQueue::small(),
            holders: holders.collect(),
            net: network(&run),
            due: vec![None; 1 + run.leaves],
            cut: vec![false; run.holders],
            clear: vec![[Time::ZERO; 2]; run.holders + run.leaves],
            judge: WindowJudge::new(run.window),
            full: vec![0; usize::try_from(run.windows).unwrap_or_default()],
            run,
            rng,
            report: WindowsReport::default(),
        };
        for holder in 0..run.holders {
            world.attend(holder);
            world.expect_requests(holder, begin);
        }
        (0..=run.leaves).for_each(|node| world.serve(node));
        if run.dying + run.cut + run.leaving > 0 {
            let middle = counts_from + run.window * (windows / 2);
            world.queue.put(middle, WindowsEvent::Misfortune);
        }
        world
    }

    pub(super) fn play(mut self) -> WindowsReport {
        while let Some((at, event)) = self.queue.pop(self.end) {
            self.now = at;
            self.happen(event);
        }
        let uses: u64 = self.full.iter().sum();
        let share = uses as f64 / (f64::from(self.run.limit) * self.full.len().max(1) as f64);
        let least = self.full.iter().copied().min().unwrap_or_default();
        WindowsReport { most: self.judge.most(), share, least, ..self.report }
    }

    fn happen(&mut self, event: WindowsEvent) {
        match event {
            WindowsEvent::Requests(holder, number) => self.requests(holder, number),
            WindowsEvent::Holder(holder) => {
                // Another look came in between where it is for later.
                if let Some(found) = &mut self.holders[holder]
                    && found.due.take_if(|due| *due <= self.now).is_some()
                {
                    self.attend(holder);
                }
            }
            WindowsEvent::GivesUp(holder) => self.attend(holder),
            WindowsEvent::Node(node) => {
                if self.due[node].take_if(|due| *due <= self.now).is_some() {
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
                self.holders.iter_mut().take(dying).for_each(|holder| *holder = None);
                self.cut.iter_mut().take(dying + cut).for_each(|is_cut| *is_cut = true);
                for holder in dying + cut..dying + cut + leaving {
                    if let Some(found) = &mut self.holders[holder] {
                        found.leave(self.now);
                    }
                    self.attend(holder);
                }
            }
        }
    }

    fn is_cut(&self, endpoint: Endpoint) -> bool {
        matches!(endpoint, Endpoint::Holder(holder) if self.cut[holder])
    }

    fn counts(&self) -> bool {
        self.now >= self.counts_from
    }

    fn take_down(&mut self, to: Endpoint, event: Event) {
        let is_grant = matches!(&event, Event::Down { down: Down::Grants(_), .. });
        self.report.messages += u64::from(is_grant && self.counts());
        let event = self.net.take_down(self.now, to, event);
        match (to, event) {
            (Endpoint::Holder(holder), Some(event)) => {
                if let Some(found) = &mut self.holders[holder] {
                    found.take(self.now, event);
                }
                self.attend(holder);
            }
            (Endpoint::Node(leaf), _) => self.serve(leaf),
            (Endpoint::Holder(_), None) => {}
        }
        self.serve(self.net.home(to));
    }

    fn requests(&mut self, holder: usize, number: u32) {
        self.expect_requests(holder, self.now);
        for _ in 0..number {
            let Some(found) = &mut self.holders[holder] else { return };
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

    /// So many requests were granted, and so many refused.
    fn note(&mut self, [granted, refused]: [u64; 2]) {
        let limit = u64::from(self.run.limit);
        if granted > 0 {
            let uses = self.judge.hear(self.now, granted);
            self.report.over += uses.saturating_sub(limit).min(granted);
        }
        if !self.counts() {
            return;
        }
        self.report.granted += granted;
        let place = self.now.since(self.counts_from).as_nanos() / self.run.window.as_nanos();
        if let Some(full) = usize::try_from(place).ok().and_then(|place| self.full.get_mut(place)) {
            *full += granted;
        }
        if refused > 0 {
            let spent: u64 = self.holders.iter().flatten().map(|holder| holder.in_use(self.now)).sum();
            self.report.wrongly_refused += if spent < limit { refused } else { 0 };
        }
    }

    fn expect_requests(&mut self, holder: usize, from: Time) {
        let run = self.run;
        let next = run.traffic.next(&run, holder, (self.begin, from), &mut self.rng);
        if let Some((at, number)) = next.filter(|&(at, _)| at < self.end) {
            self.queue.put(at, WindowsEvent::Requests(holder, number));
        }
    }

    /// A holder does what is due, and says what it has to say.
    fn attend(&mut self, holder: usize) {
        for _ in 0..1_000 {
            let Some(found) = &mut self.holders[holder] else { return };
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
        let Some(found) = &mut self.holders[holder] else { return };
        let free_at = found.free_at(self.now).unwrap_or(Time::MAX);
        let at = found.next_deadline().min(free_at).max(self.now + Duration::from_nanos(1));
        if found.due.is_none_or(|due| at < due) && at < Time::MAX {
            found.due = Some(at);
            self.queue.put(at, WindowsEvent::Holder(holder));
        }
    }

    fn send(&mut self, from: Endpoint, action: Action) {
        if let Action::Send { up: Up::Report(report), .. } = &action {
            let is_news = !report.renew_all || !report.reports.is_empty();
            self.report.messages += u64::from(is_news && self.counts());
        }
        let at = self.arrival(from, 0);
        self.queue.put(at, WindowsEvent::Message(Box::new(NetMessage::Up(from, action))));
    }

    fn deliver(&mut self, to: Endpoint, event: Event) {
        let at = self.arrival(to, 1);
        self.queue.put(at, WindowsEvent::Message(Box::new(NetMessage::Down(to, event))));
    }

    fn arrival(&mut self, endpoint: Endpoint, way: usize) -> Time {
        let number = match endpoint {
            Endpoint::Holder(holder) => holder,
            Endpoint::Node(node) => self.run.holders + node - 1,
        };
        let at = self.now + self.rng.time(self.run.way / 20, self.run.way);
        let clear = &mut self.clear[number][way];
        *clear = at.max(*clear + Duration::from_nanos(1));
        *clear
    }

    /// A server does what is due.
    fn serve(&mut self, node: usize) {
        for message in self.net.serve(self.now, node) {
            match message {
                NetMessage::Down(to, event) => self.deliver(to, event),
                NetMessage::Up(from, action) => self.send(from, action),
            }
        }
        if let Some(at) = self.net.next_deadline(node).map(|at| at.max(self.now + Duration::from_nanos(1)))
            && self.due[node].is_none_or(|due| at < due)
        {
            self.due[node] = Some(at);
            self.queue.put(at, WindowsEvent::Node(node));
        }
    }
}

/// The root, and the leaves below it, to which holders go in turn.
fn network(run: &WindowsRun) -> Net {
    let parents: Vec<Option<usize>> = std::iter::once(None).chain(vec![Some(ROOT); run.leaves]).collect();
    let mut net = Net::new(&parents);
    let root = NodeConfig { rules: run.grantors, ..NodeConfig::new("root", Epoch(1)) };
    net.begin(Time::ZERO, ROOT, root, run.repository());
    for leaf in 1..=run.leaves {
        let servers = vec!["root:1".into()];
        let parent = ParentConfig { servers, transport: Transport::Stream, eager: false };
        let config = NodeConfig::new(format!("leaf-{}", leaf - 1), Epoch(1));
        net.begin(
            Time::ZERO,
            leaf,
            NodeConfig { parent: Some(parent), rules: run.grantors, ..config },
            run.repository(),
        );
    }
    for holder in 0..run.holders {
        net.add_holder(if run.leaves > 0 { 1 + holder % run.leaves } else { ROOT });
    }
    net
}
