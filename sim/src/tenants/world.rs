//! The server, the clients and the network between them, and what happens there.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_client::session::{Action, Transport};
use lessor_proto::Time;
use lessor_proto::message::{Down, Up};
use lessor_server::node::{Node, NodeConfig, Output, Peer};

use super::client::{Client, Outcome};
use super::truth::Truth;
use super::{Ask, BEGIN, JITTER, Report, Run, Way, traffic};
use crate::agenda::Agenda;
use crate::dice::Dice;

/// What happens.
#[derive(Debug)]
enum Event {
    /// The next request comes.
    Request,
    /// Something is due at a client.
    Client(usize),
    /// Something is due at the server.
    Server,
    /// Something arrives at the server.
    Up { client: usize, stream: u64, up: Sent },
    /// Something arrives at a client.
    Down { client: usize, stream: u64, down: Received },
    /// The server is gone, and the streams with it.
    Loss,
    /// Another server begins.
    Return,
}

/// What goes to the server.
#[derive(Debug)]
enum Sent {
    Stream(Box<Up>),
    Ask(Box<lessor_proto::message::Ask>),
}

/// What comes from it.
#[derive(Debug)]
pub(super) enum Received {
    Stream(Box<Down>),
    Answer(Box<lessor_proto::message::Answer>),
    Lost,
}

/// The server, the clients and the network.
pub(super) struct World<'a> {
    run: &'a Run,
    now: Time,
    agenda: Agenda<Event>,
    dice: Dice,
    /// Those of the traffic, so that it is the same whatever the network does.
    traffic_dice: Dice,
    node: Option<Node>,
    epoch: u64,
    clients: Vec<Client>,
    peers: BTreeMap<Peer, (usize, u64)>,
    streams: BTreeMap<(usize, u64), Peer>,
    /// Nothing overtakes what was sent before it, up and down.
    clear: Vec<[Time; 2]>,
    server_due: Option<Time>,
    truth: Truth,
    arrivals: traffic::Arrivals,
    pub(super) report: Report,
}

// === impl World ===

impl World<'_> {
    pub(super) fn new(run: &Run, seed: u64) -> World<'_> {
        let mut dice = Dice::new(seed);
        let mut traffic_dice = Dice::new(dice.number());
        let transport = if run.way == Way::Polling { Transport::Poll } else { Transport::Stream };
        let clients = (0..run.clients).map(|number| Client::new(number, transport, &mut dice)).collect();
        let end = Time::ZERO + BEGIN + Duration::from_secs(run.seconds);
        let mut world = World {
            run,
            now: Time::ZERO,
            agenda: Agenda::small(),
            node: None,
            epoch: 0,
            clients,
            peers: BTreeMap::new(),
            streams: BTreeMap::new(),
            clear: vec![[Time::ZERO; 2]; run.clients],
            server_due: None,
            truth: Truth::new(run.contract.clone()),
            arrivals: traffic::Arrivals::new(run, Time::ZERO + BEGIN, end, &mut traffic_dice),
            report: Report::default(),
            dice,
            traffic_dice,
        };
        world.begin_server();
        for client in 0..run.clients {
            world.agenda.put(Time::ZERO, Event::Client(client));
        }
        if let Some(at) = run.lost_at {
            world.agenda.put(Time::ZERO + BEGIN + at, Event::Loss);
        }
        world.expect_request();
        world
    }

    pub(super) fn play(&mut self) {
        let end = Time::ZERO + BEGIN + Duration::from_secs(self.run.seconds + 2);
        while let Some((at, event)) = self.agenda.pop(end) {
            self.now = at;
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Request => self.request(),
            Event::Client(client) => {
                self.clients[client].due = None;
                self.attend(client);
            }
            Event::Server => {
                self.server_due = None;
                self.serve();
            }
            Event::Up { client, stream, up } => {
                self.take_up(client, stream, up);
                self.serve();
            }
            Event::Down { client, stream, down } => {
                self.take_down(client, stream, down);
                self.attend(client);
            }
            Event::Loss => self.lose_server(),
            Event::Return => self.begin_server(),
        }
    }

    /// A request comes to a client, and the next one is drawn.
    fn request(&mut self) {
        let client = self.arrivals.client();
        self.report.asked += 1;
        self.report.granted_by_center += u64::from(self.truth.ask_center(self.now));
        let confirms = self.run.way == Way::Shared(Ask::Confirmed);
        let outcome = self.clients[client].request(self.now, confirms);
        self.count(outcome);
        self.attend(client);
        self.expect_request();
    }

    fn expect_request(&mut self) {
        if let Some(at) = self.arrivals.next(&mut self.traffic_dice) {
            self.agenda.put(at, Event::Request);
        }
    }

    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Granted(hit) => {
                self.report.granted += 1;
                self.report.unheard += u64::from(hit.is_unheard);
                self.report.excess += u64::from(!self.truth.make(self.now, hit));
            }
            Outcome::Refused => {
                let is_incorrect = self.truth.would_grant(self.now);
                let young = (self.run.delay + JITTER) * 2 + Duration::from_millis(1);
                let is_excused = !self.truth.would_have_granted(self.now, young);
                self.report.refused += 1;
                self.report.incorrect += u64::from(is_incorrect);
                self.report.unexcused += u64::from(is_incorrect && !is_excused);
            }
            Outcome::Open => self.report.questions += 1,
        }
    }

    /// A client does what is due, and says what it has to say.
    fn attend(&mut self, number: usize) {
        let outcomes = self.clients[number].settle(self.now);
        outcomes.into_iter().for_each(|outcome| self.count(outcome));
        while let Some(action) = self.clients[number].poll(self.now) {
            match action {
                Action::Connect { id, hello, .. } => {
                    self.send(number, id, Sent::Stream(Box::new(Up::Hello(hello))));
                }
                Action::Send { id, up } => {
                    self.report.reports += u64::from(matches!(up, Up::Domains(_)));
                    self.send(number, id, Sent::Stream(Box::new(up)));
                }
                Action::Ask { id, ask, .. } => self.send(number, id, Sent::Ask(Box::new(ask))),
                Action::Disconnect { .. } | Action::Release { .. } => {}
                Action::Change(_) | Action::News(_) => unreachable!("clients take these themselves"),
            }
        }
        let at = self.clients[number].deadline(self.now);
        if self.clients[number].due.is_none_or(|due| at < due) && at < Time::MAX {
            self.clients[number].due = Some(at);
            self.agenda.put(at, Event::Client(number));
        }
    }

    fn send(&mut self, client: usize, stream: u64, up: Sent) {
        self.report.messages += u64::from(self.may_ask());
        let at = self.arrival(client, 0);
        self.agenda.put(at, Event::Up { client, stream, up });
    }

    fn deliver(&mut self, client: usize, stream: u64, down: Received) {
        self.report.messages += u64::from(self.may_ask() && !matches!(down, Received::Lost));
        let at = self.arrival(client, 1);
        self.agenda.put(at, Event::Down { client, stream, down });
    }

    /// Whether requests may come.
    fn may_ask(&self) -> bool {
        let begin = Time::ZERO + BEGIN;
        (begin..begin + Duration::from_secs(self.run.seconds)).contains(&self.now)
    }

    fn arrival(&mut self, client: usize, way: usize) -> Time {
        let at = self.now + self.run.delay + self.dice.time(Duration::ZERO, JITTER);
        let clear = &mut self.clear[client][way];
        *clear = at.max(*clear + Duration::from_nanos(1));
        *clear
    }

    fn take_up(&mut self, client: usize, stream: u64, up: Sent) {
        let Some(node) = &mut self.node else {
            return self.deliver(client, stream, Received::Lost);
        };
        match up {
            Sent::Ask(ask) => {
                let answer = node.ask(self.now, &ask).expect("the request is good");
                self.deliver(client, stream, Received::Answer(Box::new(answer)));
            }
            Sent::Stream(up) => match (*up, self.streams.get(&(client, stream))) {
                (Up::Hello(hello), _) => {
                    let peer = node.connect(self.now, hello);
                    self.peers.insert(peer, (client, stream));
                    self.streams.insert((client, stream), peer);
                }
                (up, Some(&peer)) => node.receive(self.now, peer, up),
                (_, None) => self.deliver(client, stream, Received::Lost),
            },
        }
    }

    fn take_down(&mut self, client: usize, stream: u64, down: Received) {
        if let Received::Stream(down) = &down {
            self.report.news += u64::from(matches!(**down, Down::Domains(_)));
            if let (Some(node), Some(&peer)) = (&mut self.node, self.streams.get(&(client, stream))) {
                node.ready(self.now, peer);
            }
        }
        self.clients[client].take(self.now, stream, down);
        self.serve();
    }

    /// The server does what is due.
    fn serve(&mut self) {
        let Some(node) = &mut self.node else { return };
        node.advance(self.now);
        let mut sent = Vec::new();
        while let Some(output) = node.poll(self.now) {
            match output {
                Output::Send { peer, down } => sent.push((peer, Received::Stream(Box::new(down)))),
                Output::Close { peer } => sent.push((peer, Received::Lost)),
                Output::Parent(_) => unreachable!("it is a root"),
            }
        }
        let deadline = node.deadline();
        for (peer, down) in sent {
            if let Some(&(client, stream)) = self.peers.get(&peer) {
                self.deliver(client, stream, down);
            }
        }
        if let Some(at) = deadline.map(|at| at.max(self.now))
            && self.server_due.is_none_or(|due| at < due)
        {
            self.server_due = Some(at);
            self.agenda.put(at, Event::Server);
        }
    }

    fn lose_server(&mut self) {
        self.node = None;
        self.server_due = None;
        let streams: Vec<(usize, u64)> = std::mem::take(&mut self.streams).into_keys().collect();
        self.peers.clear();
        streams.into_iter().for_each(|(client, stream)| self.deliver(client, stream, Received::Lost));
        self.agenda.put(self.now + Duration::from_secs(1), Event::Return);
    }

    fn begin_server(&mut self) {
        self.epoch += 1;
        self.node = Some(Node::new(self.now, NodeConfig::new("root", self.epoch), self.run.repository()));
        self.serve();
    }
}
