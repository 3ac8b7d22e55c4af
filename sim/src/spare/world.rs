//! The servers, the clients and the network between them.

use std::time::Duration;

use lessor_client::Transport;
use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::limiter::Limiter;
use lessor_client::internals::session::{Action, Event};
use lessor_proto::message::{BoundBy, Down, Grant, Up};
use lessor_proto::{Amount, Epoch, Time};
use lessor_server::config::ParentConfig;
use lessor_server::node::NodeConfig;

use super::client::SpareClient;
use super::traffic::TrafficStretch;
use super::{SAID_AGAIN, SpareReport, SpareRun};
use crate::event_queue::EventQueue;
use crate::net::{Endpoint, Net, NetMessage};
use crate::rng::Rng;

/// Something that happens.
#[derive(Debug)]
enum SpareEvent {
    Request(usize),
    /// Something is due at a client.
    Client(usize),
    /// Something is due at a server.
    Node(usize),
    /// Something arrives.
    Message(Box<NetMessage>),
}

/// The site of the root among the servers.
const ROOT: usize = 0;

pub(super) struct SpareWorld {
    run: SpareRun,
    now: Time,
    end: Time,
    queue: EventQueue<SpareEvent>,
    rng: Rng,
    traffic: TrafficDraw,
    /// The root, and the leaves.
    net: Net,
    /// When each server is looked at next.
    due: Vec<Option<Time>>,
    clients: Vec<SpareClient>,
    /// The clients and then the leaves, as their servers see them.
    holders: Vec<ServedHolder>,
    /// One limiter of all of it.
    one: Limiter,
    tally: SpareTally,
}

/// The figures so far.
#[derive(Default)]
struct SpareTally {
    /// The sum of what all clients believe they may use, in millionths.
    believed: u128,
    report: SpareReport,
}

// === impl SpareTally ===

impl SpareTally {
    /// A client that believed `before` believes `after`, where there is `capacity` for all.
    fn believe(&mut self, before: Amount, after: Amount, capacity: Amount) {
        self.believed += u128::from(after.as_micros());
        self.believed -= u128::from(before.as_micros());
        self.report.over += u64::from(self.believed > u128::from(capacity.as_micros()));
    }
}

/// The chance of the traffic, which is the same whatever the network does.
struct TrafficDraw {
    rng: Rng,
    stretches: Vec<TrafficStretch>,
}

/// One that a server serves.
#[derive(Clone, Default)]
struct ServedHolder {
    /// Nothing overtakes what was sent before it, up and down.
    clear: [Time; 2],
    /// The amount that it was granted last, and what bound it.
    told: (Amount, Option<BoundBy>),
}

// === impl SpareWorld ===

impl SpareWorld {
    pub(super) fn new(run: SpareRun, seed: u64) -> SpareWorld {
        let mut rng = Rng::new(seed);
        let traffic =
            TrafficDraw { rng: Rng::new(rng.number()), stretches: vec![run.traffic.begin(); run.clients] };
        let clients: Vec<SpareClient> =
            (0..run.clients).map(|number| SpareClient::new(&run, number, &mut rng)).collect();
        let one = Limiter::new(run.burst);
        one.allow(Time::ZERO, Allowance::forever(Amount::from_units(run.capacity)));
        let end = run.traffic.counts_from() + Duration::from_secs(run.seconds);
        let mut world = SpareWorld {
            now: Time::ZERO,
            end,
            queue: EventQueue::small(),
            net: network(&run),
            due: vec![None; 1 + run.leaves],
            holders: vec![ServedHolder::default(); run.clients + run.leaves],
            run,
            rng,
            traffic,
            clients,
            one,
            tally: SpareTally::default(),
        };
        for client in 0..run.clients {
            // They do not all begin at one moment.
            let at = Time::ZERO + world.rng.time(Duration::ZERO, Duration::from_secs(1));
            world.queue.put(at, SpareEvent::Client(client));
            world.expect_request(client);
        }
        world
    }

    pub(super) fn play(mut self) -> SpareReport {
        while let Some((at, event)) = self.queue.pop(self.end) {
            self.now = at;
            self.happen(event);
        }
        self.tally.report
    }

    fn happen(&mut self, event: SpareEvent) {
        match event {
            SpareEvent::Request(client) => self.request(client),
            SpareEvent::Client(client) => {
                self.clients[client].due = None;
                self.attend(client);
            }
            SpareEvent::Node(node) => {
                self.due[node] = None;
                self.serve(node);
            }
            SpareEvent::Message(message) => match *message {
                NetMessage::Up(from, action) => {
                    if let Some(event) = self.net.take_up(self.now, from, action) {
                        self.deliver(from, event);
                    }
                    self.serve(self.net.home(from));
                }
                NetMessage::Down(to, event) => self.take_down(to, event),
            },
        }
    }

    fn take_down(&mut self, to: Endpoint, event: Event) {
        if let Event::Down { down: Down::Grants(grants), .. } = &event {
            grants.iter().for_each(|grant| self.count_grant(to, grant));
        }
        let event = self.net.take_down(self.now, to, event);
        match (to, event) {
            (Endpoint::Holder(client), Some(event)) => {
                self.clients[client].take(self.now, event);
                self.attend(client);
            }
            (Endpoint::Node(leaf), _) => self.serve(leaf),
            (Endpoint::Holder(_), None) => {}
        }
        self.serve(self.net.home(to));
    }

    fn count_grant(&mut self, to: Endpoint, grant: &Grant) {
        let place = match to {
            Endpoint::Holder(client) => client,
            Endpoint::Node(leaf) => self.run.clients + leaf - 1,
        };
        let said = (grant.capacity, grant.bound_by);
        let before = std::mem::replace(&mut self.holders[place].told, said);
        if self.counts() {
            self.tally.report.grants += 1;
            self.tally.report.repeated += u64::from(before == said);
        }
    }

    fn counts(&self) -> bool {
        self.now >= self.run.traffic.counts_from()
    }

    fn request(&mut self, client: usize) {
        let (is_granted, has_knocked) = self.clients[client].request(self.now);
        let is_granted_by_one = self.one.try_acquire(1, || self.now).is_ok();
        if self.counts() {
            self.tally.report.asked += 1;
            self.tally.report.refused += u64::from(!is_granted);
            self.tally.report.refused_by_one += u64::from(!is_granted_by_one);
        }
        if has_knocked {
            self.attend(client);
        }
        self.expect_request(client);
    }

    fn expect_request(&mut self, client: usize) {
        let (run, TrafficDraw { rng, stretches }) = (self.run, &mut self.traffic);
        let stretch = &mut stretches[client];
        if let Some(at) = run.traffic.request(&run, client, stretch, (self.now, self.end), rng) {
            self.queue.put(at, SpareEvent::Request(client));
        }
    }

    /// A client does what is due, and says what it has to say.
    fn attend(&mut self, client: usize) {
        let before = self.clients[client].capacity;
        while let Some(action) = self.clients[client].poll(self.now) {
            self.send(Endpoint::Holder(client), action);
        }
        let after = self.clients[client].capacity;
        self.tally.believe(before, after, Amount::from_units(self.run.capacity));
        let at = self.clients[client].next_deadline().max(self.now);
        if self.clients[client].due.is_none_or(|due| at < due) && at < Time::MAX {
            self.clients[client].due = Some(at);
            self.queue.put(at, SpareEvent::Client(client));
        }
    }

    fn send(&mut self, from: Endpoint, action: Action) {
        if matches!(action, Action::Disconnect { .. } | Action::News(_)) {
            // Streams never end here.
            return;
        }
        let is_report = matches!(action, Action::Send { up: Up::Report(_), .. }) && self.counts();
        self.tally.report.reports += u64::from(is_report);
        let at = self.arrival(from, 0);
        self.queue.put(at, SpareEvent::Message(Box::new(NetMessage::Up(from, action))));
    }

    fn deliver(&mut self, to: Endpoint, event: Event) {
        let at = self.arrival(to, 1);
        self.queue.put(at, SpareEvent::Message(Box::new(NetMessage::Down(to, event))));
    }

    fn arrival(&mut self, endpoint: Endpoint, way: usize) -> Time {
        let SpareRun { clients, delay, delay_above, lost_in, .. } = self.run;
        let (holder, delay) = match endpoint {
            Endpoint::Holder(client) => (client, delay),
            Endpoint::Node(node) => (clients + node - 1, delay_above),
        };
        let is_lost = lost_in > 0 && self.rng.below(lost_in) == 0;
        let again = if is_lost { SAID_AGAIN } else { Duration::ZERO };
        let jitter = if lost_in > 0 { delay / 2 } else { Duration::ZERO };
        let at = self.now + delay + self.rng.time(Duration::ZERO, jitter) + again;
        let clear = &mut self.holders[holder].clear[way];
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
        if let Some(at) = self.net.next_deadline(node).map(|at| at.max(self.now))
            && self.due[node].is_none_or(|due| at < due)
        {
            self.due[node] = Some(at);
            self.queue.put(at, SpareEvent::Node(node));
        }
    }
}

/// The root, and the leaves below it, to which clients go in turn.
fn network(run: &SpareRun) -> Net {
    let parents: Vec<Option<usize>> = std::iter::once(None).chain(vec![Some(ROOT); run.leaves]).collect();
    let mut net = Net::new(&parents);
    net.begin(Time::ZERO, ROOT, NodeConfig::new("root", Epoch(1)), run.repository());
    for leaf in 1..=run.leaves {
        let servers = vec!["root:1".into()];
        let parent = ParentConfig { servers, transport: Transport::Stream, eager: false };
        let config = NodeConfig::new(format!("leaf-{}", leaf - 1), Epoch(1));
        net.begin(Time::ZERO, leaf, NodeConfig { parent: Some(parent), ..config }, run.repository());
    }
    for client in 0..run.clients {
        net.add_holder(if run.leaves > 0 { 1 + client % run.leaves } else { ROOT });
    }
    net
}
