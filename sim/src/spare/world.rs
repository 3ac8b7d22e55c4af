//! The server, the clients and the network between them.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_client::limiter::{Allowance, Limiter};
use lessor_client::session::Action;
use lessor_proto::message::{Down, Up};
use lessor_proto::{Amount, Time};
use lessor_server::node::{Node, NodeConfig, Output, Peer};

use super::client::Client;
use super::traffic::Stretch;
use super::{Report, Run, SAID_AGAIN};
use crate::agenda::Agenda;
use crate::dice::Dice;

/// What happens.
#[derive(Debug)]
enum Event {
    Request(usize),
    /// Something is due at a client.
    Client(usize),
    /// Something is due at the server.
    Server,
    Up {
        client: usize,
        stream: u64,
        up: Box<Up>,
    },
    Down {
        client: usize,
        stream: u64,
        down: Option<Box<Down>>,
    },
}

pub(super) struct World {
    run: Run,
    now: Time,
    end: Time,
    agenda: Agenda<Event>,
    dice: Dice,
    /// Those of the traffic, so that it is the same whatever the network does.
    traffic_dice: Dice,
    node: Node,
    clients: Vec<Client>,
    stretches: Vec<Stretch>,
    peers: BTreeMap<Peer, (usize, u64)>,
    streams: BTreeMap<(usize, u64), Peer>,
    /// Nothing overtakes what was sent before it, up and down.
    clear: Vec<[Time; 2]>,
    server_due: Option<Time>,
    /// One limiter of all of it.
    one: Limiter,
    /// What all clients believe they may use, in millionths.
    believed: u128,
    report: Report,
}

// === impl World ===

impl World {
    pub(super) fn new(run: Run, seed: u64) -> World {
        let mut dice = Dice::new(seed);
        let traffic_dice = Dice::new(dice.number());
        let clients: Vec<Client> =
            (0..run.clients).map(|number| Client::new(&run, number, &mut dice)).collect();
        let one = Limiter::new(run.burst);
        one.allow(Time::ZERO, Allowance::forever(Amount::from_units(run.capacity)));
        let end = run.traffic.counts_from() + Duration::from_secs(run.seconds);
        let mut world = World {
            now: Time::ZERO,
            end,
            agenda: Agenda::small(),
            node: Node::new(Time::ZERO, NodeConfig::new("root", 1), run.repository()),
            stretches: vec![run.traffic.begin(); run.clients],
            clear: vec![[Time::ZERO; 2]; run.clients],
            run,
            dice,
            traffic_dice,
            clients,
            peers: BTreeMap::new(),
            streams: BTreeMap::new(),
            server_due: None,
            one,
            believed: 0,
            report: Report::default(),
        };
        for client in 0..run.clients {
            // They do not all begin at one moment.
            let at = Time::ZERO + world.dice.time(Duration::ZERO, Duration::from_secs(1));
            world.agenda.put(at, Event::Client(client));
            world.expect_request(client);
        }
        world
    }

    pub(super) fn play(mut self) -> Report {
        while let Some((at, event)) = self.agenda.pop(self.end) {
            self.now = at;
            self.happen(event);
        }
        self.report
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Request(client) => self.request(client),
            Event::Client(client) => {
                self.clients[client].due = None;
                self.attend(client);
            }
            Event::Server => {
                self.server_due = None;
                self.serve();
            }
            Event::Up { client, stream, up } => {
                self.take_up(client, stream, *up);
                self.serve();
            }
            Event::Down { client, stream, down } => {
                if let Some(&peer) = self.streams.get(&(client, stream)) {
                    self.node.ready(self.now, peer);
                }
                if let Some(Down::Grants(grants)) = down.as_deref() {
                    self.report.grants += grants.len() as u64 * u64::from(self.counts());
                }
                self.clients[client].take(self.now, stream, down.map(|down| *down));
                self.attend(client);
                self.serve();
            }
        }
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
        let (run, dice) = (self.run, &mut self.traffic_dice);
        let stretch = &mut self.stretches[client];
        if let Some(at) = run.traffic.request(&run, client, stretch, (self.now, self.end), dice) {
            self.agenda.put(at, Event::Request(client));
        }
    }

    /// A client does what is due, and says what it has to say.
    fn attend(&mut self, client: usize) {
        let before = self.clients[client].capacity;
        while let Some(action) = self.clients[client].poll(self.now) {
            match action {
                Action::Connect { id, hello, .. } => self.send(client, id, Up::Hello(hello)),
                Action::Send { id, up } => {
                    let is_report = matches!(up, Up::Report(_)) && self.counts();
                    self.report.reports += u64::from(is_report);
                    self.send(client, id, up);
                }
                Action::Disconnect { .. } | Action::News(_) => {}
                action => unreachable!("{action:?} on a stream that never ends"),
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
            self.agenda.put(at, Event::Client(client));
        }
    }

    fn send(&mut self, client: usize, stream: u64, up: Up) {
        let at = self.arrival(client, 0);
        self.agenda.put(at, Event::Up { client, stream, up: Box::new(up) });
    }

    fn deliver(&mut self, client: usize, stream: u64, down: Option<Down>) {
        let at = self.arrival(client, 1);
        self.agenda.put(at, Event::Down { client, stream, down: down.map(Box::new) });
    }

    fn arrival(&mut self, client: usize, way: usize) -> Time {
        let Run { delay, jitter, lost_in, .. } = self.run;
        let is_lost = lost_in > 0 && self.dice.below(lost_in) == 0;
        let again = if is_lost { SAID_AGAIN } else { Duration::ZERO };
        let at = self.now + delay + self.dice.time(Duration::ZERO, jitter) + again;
        let clear = &mut self.clear[client][way];
        *clear = at.max(*clear + Duration::from_nanos(1));
        *clear
    }

    fn take_up(&mut self, client: usize, stream: u64, up: Up) {
        match (up, self.streams.get(&(client, stream))) {
            (Up::Hello(hello), _) => {
                let peer = self.node.connect(self.now, hello);
                self.peers.insert(peer, (client, stream));
                self.streams.insert((client, stream), peer);
            }
            (up, Some(&peer)) => self.node.receive(self.now, peer, up),
            (_, None) => self.deliver(client, stream, None),
        }
    }

    /// The server does what is due.
    fn serve(&mut self) {
        self.node.advance(self.now);
        while let Some(output) = self.node.poll(self.now) {
            let (peer, down) = match output {
                Output::Send { peer, down } => (peer, Some(down)),
                Output::Close { peer } => (peer, None),
                Output::Parent(_) => unreachable!("it is a root"),
            };
            if let Some(&(client, stream)) = self.peers.get(&peer) {
                self.deliver(client, stream, down);
            }
        }
        if let Some(at) = self.node.deadline().map(|at| at.max(self.now))
            && self.server_due.is_none_or(|due| at < due)
        {
            self.server_due = Some(at);
            self.agenda.put(at, Event::Server);
        }
    }
}
