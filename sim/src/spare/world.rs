//! The servers, the clients and the network between them.

use std::time::Duration;

use lessor_client::limiter::{Allowance, Limiter};
use lessor_proto::message::{Down, Up};
use lessor_proto::{Amount, Time};

use super::client::SpareClient;
use super::node::{Holder, SpareMessage, SpareNode, upwards};
use super::traffic::TrafficStretch;
use super::{SAID_AGAIN, SpareReport, SpareRun};
use crate::event_queue::EventQueue;
use crate::rng::Rng;

/// Something that happens.
#[derive(Debug)]
enum SpareEvent {
    Request(usize),
    /// Something is due at a client.
    Client(usize),
    /// Something is due at a server.
    Node(usize),
    /// Something comes from a holder to the server above it.
    Up {
        holder: Holder,
        stream: u64,
        up: Box<Up>,
    },
    /// And the other way round.
    Down {
        holder: Holder,
        stream: u64,
        down: Option<Box<Down>>,
    },
}

/// The site of the root among the servers.
const ROOT: usize = 0;

pub(super) struct SpareWorld {
    run: SpareRun,
    now: Time,
    end: Time,
    queue: EventQueue<SpareEvent>,
    rng: Rng,
    /// Those of the traffic, so that it is the same whatever the network does.
    traffic_rng: Rng,
    /// The root, and the leaves.
    nodes: Vec<SpareNode>,
    clients: Vec<SpareClient>,
    stretches: Vec<TrafficStretch>,
    /// Nothing overtakes what was sent before it, up and down, of each holder.
    clear: Vec<[Time; 2]>,
    /// One limiter of all of it.
    one: Limiter,
    /// The sum of what all clients believe they may use, in millionths.
    believed: u128,
    report: SpareReport,
}

// === impl SpareWorld ===

impl SpareWorld {
    pub(super) fn new(run: SpareRun, seed: u64) -> SpareWorld {
        let mut rng = Rng::new(seed);
        let traffic_rng = Rng::new(rng.number());
        let clients: Vec<SpareClient> =
            (0..run.clients).map(|number| SpareClient::new(&run, number, &mut rng)).collect();
        let one = Limiter::new(run.burst);
        one.allow(Time::ZERO, Allowance::forever(Amount::from_units(run.capacity)));
        let end = run.traffic.counts_from() + Duration::from_secs(run.seconds);
        let leaves = (0..run.leaves).map(|number| SpareNode::leaf(&run, number));
        let mut world = SpareWorld {
            now: Time::ZERO,
            end,
            queue: EventQueue::small(),
            nodes: std::iter::once(SpareNode::root(&run)).chain(leaves).collect(),
            stretches: vec![run.traffic.begin(); run.clients],
            clear: vec![[Time::ZERO; 2]; run.clients + run.leaves],
            run,
            rng,
            traffic_rng,
            clients,
            one,
            believed: 0,
            report: SpareReport::default(),
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
        self.report
    }

    fn happen(&mut self, event: SpareEvent) {
        match event {
            SpareEvent::Request(client) => self.request(client),
            SpareEvent::Client(client) => {
                self.clients[client].due = None;
                self.attend(client);
            }
            SpareEvent::Node(node) => {
                self.nodes[node].due = None;
                self.serve(node);
            }
            SpareEvent::Up { holder, stream, up } => {
                let node = self.above(holder);
                if !self.nodes[node].take_up(self.now, holder, stream, *up) {
                    self.deliver(holder, stream, None);
                }
                self.serve(node);
            }
            SpareEvent::Down { holder, stream, down } => {
                self.take_down(holder, stream, down.map(|down| *down));
            }
        }
    }

    /// The server that a holder reports to.
    fn above(&self, holder: Holder) -> usize {
        match self.run.leaves {
            leaves if leaves > 0 && holder < self.run.clients => 1 + holder % leaves,
            _ => ROOT,
        }
    }

    fn take_down(&mut self, holder: Holder, stream: u64, down: Option<Down>) {
        let node = self.above(holder);
        self.nodes[node].ready(self.now, holder, stream);
        if let Some(Down::Grants(grants)) = &down {
            self.report.grants += grants.len() as u64 * u64::from(self.counts());
        }
        match holder.checked_sub(self.run.clients) {
            None => {
                self.clients[holder].take(self.now, stream, down);
                self.attend(holder);
            }
            Some(leaf) => {
                self.nodes[leaf + 1].take_down(self.now, stream, down);
                self.serve(leaf + 1);
            }
        }
        self.serve(node);
    }

    fn counts(&self) -> bool {
        self.now >= self.run.traffic.counts_from()
    }

    fn request(&mut self, client: usize) {
        let (is_granted, has_knocked) = self.clients[client].request(self.now);
        let is_granted_by_one = self.one.try_acquire(1, || self.now).is_ok();
        if self.counts() {
            self.report.asked += 1;
            self.report.refused += u64::from(!is_granted);
            self.report.refused_by_one += u64::from(!is_granted_by_one);
        }
        if has_knocked {
            self.attend(client);
        }
        self.expect_request(client);
    }

    fn expect_request(&mut self, client: usize) {
        let (run, rng) = (self.run, &mut self.traffic_rng);
        let stretch = &mut self.stretches[client];
        if let Some(at) = run.traffic.request(&run, client, stretch, (self.now, self.end), rng) {
            self.queue.put(at, SpareEvent::Request(client));
        }
    }

    /// A client does what is due, and says what it has to say.
    fn attend(&mut self, client: usize) {
        let before = self.clients[client].capacity;
        while let Some(action) = self.clients[client].poll(self.now) {
            if let Some(SpareMessage::Up(stream, up)) = upwards(action) {
                self.send(client, stream, up);
            }
        }
        let after = self.clients[client].capacity;
        self.believed += u128::from(after.as_micros());
        self.believed -= u128::from(before.as_micros());
        let capacity = u128::from(Amount::from_units(self.run.capacity).as_micros());
        self.report.over += u64::from(self.believed > capacity);
        let at = self.clients[client].deadline().max(self.now);
        if self.clients[client].due.is_none_or(|due| at < due) && at < Time::MAX {
            self.clients[client].due = Some(at);
            self.queue.put(at, SpareEvent::Client(client));
        }
    }

    fn send(&mut self, holder: Holder, stream: u64, up: Up) {
        let is_report = matches!(up, Up::Report(_)) && self.counts();
        self.report.reports += u64::from(is_report);
        let at = self.arrival(holder, 0);
        self.queue.put(at, SpareEvent::Up { holder, stream, up: Box::new(up) });
    }

    fn deliver(&mut self, holder: Holder, stream: u64, down: Option<Down>) {
        let at = self.arrival(holder, 1);
        self.queue.put(at, SpareEvent::Down { holder, stream, down: down.map(Box::new) });
    }

    fn arrival(&mut self, holder: Holder, way: usize) -> Time {
        let SpareRun { clients, delay, delay_above, lost_in, .. } = self.run;
        let delay = if holder < clients { delay } else { delay_above };
        let is_lost = lost_in > 0 && self.rng.below(lost_in) == 0;
        let again = if is_lost { SAID_AGAIN } else { Duration::ZERO };
        let jitter = if lost_in > 0 { delay / 2 } else { Duration::ZERO };
        let at = self.now + delay + self.rng.time(Duration::ZERO, jitter) + again;
        let clear = &mut self.clear[holder][way];
        *clear = at.max(*clear + Duration::from_nanos(1));
        *clear
    }

    /// A server does what is due.
    fn serve(&mut self, node: usize) {
        for sent in self.nodes[node].serve(self.now) {
            match sent {
                SpareMessage::Down(holder, stream, down) => self.deliver(holder, stream, down),
                // Only leaves have somebody above them.
                SpareMessage::Up(stream, up) => self.send(self.run.clients + node - 1, stream, up),
            }
        }
        let due = self.nodes[node].due;
        if let Some(at) = self.nodes[node].deadline().map(|at| at.max(self.now))
            && due.is_none_or(|due| at < due)
        {
            self.nodes[node].due = Some(at);
            self.queue.put(at, SpareEvent::Node(node));
        }
    }
}
