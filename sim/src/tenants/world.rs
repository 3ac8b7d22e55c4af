//! The servers, the clients and the network between them, and what happens there.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_client::session::{self, Action, Transport};
use lessor_proto::message::{Down, Up};
use lessor_proto::{Epoch, ReportId, Time};
use lessor_server::node::{Node, NodeConfig, Output, ParentConfig, Peer};

use super::client::{HitOutcome, TenantsClient};
use super::received::Received;
use super::truth::Truth;
use super::{Ask, BEGIN, JITTER, TenantsReport, TenantsRun, TenantsWay, traffic, unreachable_server};
use crate::event_queue::EventQueue;
use crate::rng::Rng;

/// Somebody who asks a server: a client, or a server below it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Endpoint {
    Client(usize),
    Node(usize),
}

/// Something that happens.
#[derive(Debug)]
enum TenantsEvent {
    /// The next request comes.
    Request,
    /// Something is due at a client.
    Client(usize),
    /// Something is due at a server.
    Server(usize),
    /// Something arrives at the server of an endpoint.
    Up { from: Endpoint, stream: u64, up: TenantsMessage },
    /// Something arrives from there.
    Down { to: Endpoint, stream: u64, down: Received },
    /// A server is gone, and the streams with it.
    Loss,
    /// Another one begins in its place.
    Return,
}

/// A message to a server.
#[derive(Debug)]
enum TenantsMessage {
    Stream(Box<Up>),
    Ask(Box<lessor_proto::message::Ask>),
}

/// A server, or the site of one that is lost.
struct TenantsServer {
    node: Option<Node>,
    epoch: Epoch,
    /// The one above.
    parent: Option<usize>,
    peers: BTreeMap<Peer, (Endpoint, u64)>,
    due: Option<Time>,
}

/// The servers, the clients and the network.
pub(super) struct TenantsWorld<'a> {
    run: &'a TenantsRun,
    now: Time,
    queue: EventQueue<TenantsEvent>,
    rng: Rng,
    /// Those of the traffic, so that it is the same whatever the network does.
    traffic_rng: Rng,
    /// The root first, then each level.
    servers: Vec<TenantsServer>,
    /// The server of each client.
    homes: Vec<usize>,
    clients: Vec<TenantsClient>,
    /// To which server a stream goes, and its number there.
    streams: BTreeMap<(Endpoint, u64), Peer>,
    /// Nothing overtakes what was sent before it, up and down.
    clear: BTreeMap<Endpoint, [Time; 2]>,
    truth: Truth,
    arrivals: traffic::Arrivals,
    pub(super) report: TenantsReport,
}

// === impl TenantsWorld ===

impl TenantsWorld<'_> {
    pub(super) fn new(run: &TenantsRun, seed: u64) -> TenantsWorld<'_> {
        let mut rng = Rng::new(seed);
        let mut traffic_rng = Rng::new(rng.number());
        let transport = if run.way == TenantsWay::Polling { Transport::Poll } else { Transport::Stream };
        let clients =
            (0..run.clients).map(|number| TenantsClient::new(number, transport, &mut rng)).collect();
        let end = Time::ZERO + BEGIN + Duration::from_secs(run.seconds);
        let servers = run.parents().into_iter().map(|parent| TenantsServer {
            node: None,
            epoch: Epoch::default(),
            parent,
            peers: BTreeMap::new(),
            due: None,
        });
        let servers: Vec<TenantsServer> = servers.collect();
        let leaves = run.leaves();
        let home = |client| servers.len() - leaves + client % leaves;
        let mut world = TenantsWorld {
            run,
            now: Time::ZERO,
            queue: EventQueue::small(),
            homes: (0..run.clients).map(home).collect(),
            servers,
            clients,
            streams: BTreeMap::new(),
            clear: BTreeMap::new(),
            truth: Truth::new(run.contract.clone()),
            arrivals: traffic::Arrivals::new(run, Time::ZERO + BEGIN, end, &mut traffic_rng),
            report: TenantsReport::default(),
            rng,
            traffic_rng,
        };
        (0..world.servers.len()).for_each(|server| world.begin_server(server));
        for client in 0..run.clients {
            world.queue.put(Time::ZERO, TenantsEvent::Client(client));
        }
        if let Some(at) = run.lost_at {
            world.queue.put(Time::ZERO + BEGIN + at, TenantsEvent::Loss);
        }
        world.expect_request();
        world
    }

    pub(super) fn play(&mut self) {
        let end = Time::ZERO + BEGIN + Duration::from_secs(self.run.seconds + 2);
        while let Some((at, event)) = self.queue.pop(end) {
            self.now = at;
            self.happen(event);
        }
    }

    fn happen(&mut self, event: TenantsEvent) {
        match event {
            TenantsEvent::Request => self.request(),
            TenantsEvent::Client(client) => {
                self.clients[client].due = None;
                self.attend(client);
            }
            TenantsEvent::Server(server) => {
                self.servers[server].due = None;
                self.serve(server);
            }
            TenantsEvent::Up { from, stream, up } => {
                self.take_up(from, stream, up);
                self.serve(self.home(from));
            }
            TenantsEvent::Down { to, stream, down } => self.take_down(to, stream, down),
            TenantsEvent::Loss => self.lose_server(),
            TenantsEvent::Return => self.begin_server(self.servers.len() - 1),
        }
    }

    /// The server that an endpoint asks.
    fn home(&self, endpoint: Endpoint) -> usize {
        match endpoint {
            Endpoint::Client(client) => self.homes[client],
            Endpoint::Node(node) => self.servers[node].parent.expect("a root asks nobody"),
        }
    }

    /// A request comes to a client, and the next one is drawn.
    fn request(&mut self) {
        let client = self.arrivals.client();
        self.report.asked += 1;
        self.report.granted_by_center += u64::from(self.truth.ask_center(self.now));
        let confirms = self.run.way == TenantsWay::Shared(Ask::Confirmed);
        let outcome = self.clients[client].request(self.now, confirms);
        self.count(outcome);
        self.attend(client);
        self.expect_request();
    }

    fn expect_request(&mut self) {
        if let Some(at) = self.arrivals.next(&mut self.traffic_rng) {
            self.queue.put(at, TenantsEvent::Request);
        }
    }

    fn count(&mut self, outcome: HitOutcome) {
        match outcome {
            HitOutcome::Granted(hit) => {
                self.report.granted += 1;
                self.report.unheard += u64::from(hit.is_unheard);
                self.report.excess += u64::from(!self.truth.make(self.now, hit));
            }
            HitOutcome::Refused => {
                let is_incorrect = self.truth.would_grant(self.now);
                let young = self.run.young();
                let is_excused = !self.truth.would_have_granted(self.now, young);
                self.report.refused += 1;
                self.report.incorrect += u64::from(is_incorrect);
                self.report.unexcused += u64::from(is_incorrect && !is_excused);
            }
            HitOutcome::Open => self.report.questions += 1,
        }
    }

    /// A client does what is due, and says what it has to say.
    fn attend(&mut self, number: usize) {
        let outcomes = self.clients[number].settle(self.now);
        outcomes.into_iter().for_each(|outcome| self.count(outcome));
        while let Some(action) = self.clients[number].poll(self.now) {
            self.report.reports += u64::from(matches!(action, Action::Send { up: Up::Domains(_), .. }));
            self.act(Endpoint::Client(number), action);
        }
        let at = self.clients[number].deadline(self.now);
        if self.clients[number].due.is_none_or(|due| at < due) && at < Time::MAX {
            self.clients[number].due = Some(at);
            self.queue.put(at, TenantsEvent::Client(number));
        }
    }

    /// Carries out what an endpoint has to say to its server.
    fn act(&mut self, from: Endpoint, action: Action) {
        match action {
            Action::Connect { id, hello, .. } => {
                self.send(from, id, TenantsMessage::Stream(Box::new(Up::Hello(hello))));
            }
            Action::Send { id, up } => self.send(from, id, TenantsMessage::Stream(Box::new(up))),
            Action::Ask { id, ask, .. } => self.send(from, id.0, TenantsMessage::Ask(Box::new(ask))),
            Action::Disconnect { .. } | Action::Release { .. } => {}
            Action::Change(_) | Action::News(_) => unreachable!("who asks takes these itself"),
        }
    }

    fn send(&mut self, from: Endpoint, stream: u64, up: TenantsMessage) {
        self.report.messages += u64::from(self.may_ask());
        let at = self.arrival(from, 0);
        self.queue.put(at, TenantsEvent::Up { from, stream, up });
    }

    fn deliver(&mut self, to: Endpoint, stream: u64, down: Received) {
        self.report.messages += u64::from(self.may_ask() && !matches!(down, Received::Lost));
        let at = self.arrival(to, 1);
        self.queue.put(at, TenantsEvent::Down { to, stream, down });
    }

    /// Whether requests may come.
    fn may_ask(&self) -> bool {
        let begin = Time::ZERO + BEGIN;
        (begin..begin + Duration::from_secs(self.run.seconds)).contains(&self.now)
    }

    fn arrival(&mut self, endpoint: Endpoint, way: usize) -> Time {
        let at = self.now + self.run.delay + self.rng.time(Duration::ZERO, JITTER);
        let clear = &mut self.clear.entry(endpoint).or_insert([Time::ZERO; 2])[way];
        *clear = at.max(*clear + Duration::from_nanos(1));
        *clear
    }

    fn take_up(&mut self, from: Endpoint, stream: u64, up: TenantsMessage) {
        let home = self.home(from);
        let Some(node) = &mut self.servers[home].node else {
            return self.deliver(from, stream, Received::Lost);
        };
        match up {
            TenantsMessage::Ask(ask) => {
                let answer = node.ask(self.now, &ask).expect("the request is good");
                self.deliver(from, stream, Received::Answer(Box::new(answer)));
            }
            TenantsMessage::Stream(up) => match (*up, self.streams.get(&(from, stream))) {
                (Up::Hello(hello), _) => {
                    let peer = node.connect(self.now, hello);
                    self.servers[home].peers.insert(peer, (from, stream));
                    self.streams.insert((from, stream), peer);
                }
                (up, Some(&peer)) => node.receive(self.now, peer, up),
                (_, None) => self.deliver(from, stream, Received::Lost),
            },
        }
    }

    fn take_down(&mut self, to: Endpoint, stream: u64, down: Received) {
        let home = self.home(to);
        if let Received::Stream(down) = &down {
            self.report.news += u64::from(matches!(**down, Down::Domains(_)));
            if let (Some(node), Some(&peer)) = (&mut self.servers[home].node, self.streams.get(&(to, stream)))
            {
                node.ready(self.now, peer);
            }
        }
        match to {
            Endpoint::Client(client) => {
                self.clients[client].take(self.now, stream, down);
                self.attend(client);
            }
            Endpoint::Node(server) => {
                self.take_from_above(server, stream, down);
                self.serve(server);
            }
        }
        self.serve(home);
    }

    fn take_from_above(&mut self, server: usize, id: u64, down: Received) {
        let Some(node) = &mut self.servers[server].node else { return };
        let event = match down {
            Received::Stream(down) => session::Event::Down { id, down: *down },
            Received::Answer(answer) => session::Event::Answered { id: ReportId(id), answer: *answer },
            Received::Lost => {
                node.on_parent(self.now, session::Event::Closed { id, failure: unreachable_server() });
                session::Event::Failed { id: ReportId(id), failure: unreachable_server() }
            }
        };
        node.on_parent(self.now, event);
    }

    /// A server does what is due.
    fn serve(&mut self, server: usize) {
        let Some(node) = &mut self.servers[server].node else { return };
        node.advance(self.now);
        let (mut sent, mut said) = (Vec::new(), Vec::new());
        while let Some(output) = node.poll(self.now) {
            match output {
                Output::Send { peer, down } => sent.push((peer, Received::Stream(Box::new(down)))),
                Output::Close { peer } => sent.push((peer, Received::Lost)),
                Output::Parent(action) => said.push(action),
            }
        }
        let deadline = node.deadline();
        for (peer, down) in sent {
            if let Some(&(endpoint, stream)) = self.servers[server].peers.get(&peer) {
                self.deliver(endpoint, stream, down);
            }
        }
        said.into_iter().for_each(|action| self.act(Endpoint::Node(server), action));
        if let Some(at) = deadline.map(|at| at.max(self.now))
            && self.servers[server].due.is_none_or(|due| at < due)
        {
            self.servers[server].due = Some(at);
            self.queue.put(at, TenantsEvent::Server(server));
        }
    }

    /// The last server is lost: that of the last client, or the only one.
    fn lose_server(&mut self) {
        let last = self.servers.len() - 1;
        let lost = &mut self.servers[last];
        (lost.node, lost.due) = (None, None);
        for (endpoint, stream) in std::mem::take(&mut lost.peers).into_values() {
            self.streams.remove(&(endpoint, stream));
            self.deliver(endpoint, stream, Received::Lost);
        }
        // Its own stream has ended as well.
        self.close_above(Endpoint::Node(last));
        self.queue.put(self.now + Duration::from_secs(1), TenantsEvent::Return);
    }

    fn close_above(&mut self, endpoint: Endpoint) {
        let Endpoint::Node(server) = endpoint else { return };
        let Some(parent) = self.servers[server].parent else { return };
        let streams =
            self.streams.range((endpoint, 0)..=(endpoint, u64::MAX)).map(|(&key, &peer)| (key, peer));
        for (key, peer) in streams.collect::<Vec<_>>() {
            self.streams.remove(&key);
            self.servers[parent].peers.remove(&peer);
            if let Some(node) = &mut self.servers[parent].node {
                node.disconnect(self.now, peer);
            }
        }
    }

    fn begin_server(&mut self, server: usize) {
        let site = &mut self.servers[server];
        site.epoch = site.epoch.next();
        let mut config = NodeConfig::new(name(server), site.epoch);
        config.parent = site.parent.map(|parent| ParentConfig {
            servers: vec![format!("{}:1", name(parent)).into()],
            transport: Transport::Stream,
            eager: true,
        });
        site.node = Some(Node::new(self.now, config, self.run.repository()));
        self.serve(server);
    }
}

/// The name of a server.
fn name(server: usize) -> String {
    if server == 0 { "root".to_owned() } else { format!("node-{server}") }
}
