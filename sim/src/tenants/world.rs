//! The servers, the clients and the network between them, and what happens there.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_client::Transport;
use lessor_client::internals::session::{Action, Event};
use lessor_proto::message::{Down, Up};
use lessor_proto::{Epoch, Time};
use lessor_server::node::{NodeConfig, ParentConfig};

use super::client::{HitOutcome, TenantsClient};
use super::truth::Truth;
use super::{Ask, BEGIN, JITTER, TenantsReport, TenantsRun, TenantsWay, traffic};
use crate::event_queue::EventQueue;
use crate::net::{Endpoint, Net, NetMessage};
use crate::rng::Rng;

/// Something that happens.
#[derive(Debug)]
enum TenantsEvent {
    /// The next request comes.
    Request,
    /// Something is due at a client.
    Client(usize),
    /// Something is due at a server.
    Server(usize),
    /// Something arrives.
    Message(Box<NetMessage>),
    /// A server is gone, and the streams with it.
    Loss,
    /// Another one begins in its place.
    Return,
}

/// The servers, the clients and the network.
pub(super) struct TenantsWorld<'a> {
    run: &'a TenantsRun,
    now: Time,
    queue: EventQueue<TenantsEvent>,
    rng: Rng,
    /// Those of the traffic, so that it is the same whatever the network does.
    traffic_rng: Rng,
    /// The servers, the root first, then each level.
    net: Net,
    /// The epoch of each server, and when it is looked at next.
    sites: Vec<(u64, Option<Time>)>,
    clients: Vec<TenantsClient>,
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
        let parents = run.parents();
        let mut net = Net::new(&parents);
        let leaves = run.leaves();
        for client in 0..run.clients {
            net.add_holder(parents.len() - leaves + client % leaves);
        }
        let mut world = TenantsWorld {
            run,
            now: Time::ZERO,
            queue: EventQueue::small(),
            net,
            sites: vec![(0, None); parents.len()],
            clients,
            clear: BTreeMap::new(),
            truth: Truth::new(run.contract.clone()),
            arrivals: traffic::Arrivals::new(run, Time::ZERO + BEGIN, end, &mut traffic_rng),
            report: TenantsReport::default(),
            rng,
            traffic_rng,
        };
        (0..world.sites.len()).for_each(|server| world.begin_server(server));
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
                self.sites[server].1 = None;
                self.serve(server);
            }
            TenantsEvent::Message(message) => match *message {
                NetMessage::Up(from, action) => {
                    if let Some(event) = self.net.take_up(self.now, from, action) {
                        self.deliver(from, event);
                    }
                    self.serve(self.net.home(from));
                }
                NetMessage::Down(to, event) => self.take_down(to, event),
            },
            TenantsEvent::Loss => self.lose_server(),
            TenantsEvent::Return => self.begin_server(self.sites.len() - 1),
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
            self.send(Endpoint::Holder(number), action);
        }
        let at = self.clients[number].next_deadline(self.now);
        if self.clients[number].due.is_none_or(|due| at < due) && at < Time::MAX {
            self.clients[number].due = Some(at);
            self.queue.put(at, TenantsEvent::Client(number));
        }
    }

    fn send(&mut self, from: Endpoint, action: Action) {
        if matches!(action, Action::Disconnect { .. } | Action::Release { .. }) {
            return;
        }
        self.report.messages += u64::from(self.may_ask());
        let at = self.arrival(from, 0);
        self.queue.put(at, TenantsEvent::Message(Box::new(NetMessage::Up(from, action))));
    }

    fn deliver(&mut self, to: Endpoint, event: Event) {
        let is_end = matches!(event, Event::Closed { .. } | Event::Failed { .. });
        self.report.messages += u64::from(self.may_ask() && !is_end);
        let at = self.arrival(to, 1);
        self.queue.put(at, TenantsEvent::Message(Box::new(NetMessage::Down(to, event))));
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

    fn take_down(&mut self, to: Endpoint, event: Event) {
        let is_news = matches!(event, Event::Down { down: Down::Domains(_), .. });
        self.report.news += u64::from(is_news);
        let event = self.net.take_down(self.now, to, event);
        match (to, event) {
            (Endpoint::Holder(client), Some(event)) => {
                self.clients[client].take(self.now, event);
                self.attend(client);
            }
            (Endpoint::Node(server), _) => self.serve(server),
            (Endpoint::Holder(_), None) => {}
        }
        self.serve(self.net.home(to));
    }

    /// A server does what is due.
    fn serve(&mut self, server: usize) {
        let mut said = Vec::new();
        for message in self.net.serve(self.now, server) {
            match message {
                NetMessage::Down(to, event) => self.deliver(to, event),
                NetMessage::Up(from, action) => said.push((from, action)),
            }
        }
        said.into_iter().for_each(|(from, action)| self.send(from, action));
        if let Some(at) = self.net.next_deadline(server).map(|at| at.max(self.now))
            && self.sites[server].1.is_none_or(|due| at < due)
        {
            self.sites[server].1 = Some(at);
            self.queue.put(at, TenantsEvent::Server(server));
        }
    }

    /// The last server is lost: that of the last client, or the only one.
    fn lose_server(&mut self) {
        let last = self.sites.len() - 1;
        self.sites[last].1 = None;
        for message in self.net.lose(last) {
            match message {
                NetMessage::Down(to, event) => self.deliver(to, event),
                NetMessage::Up(from, action) => _ = self.net.take_up(self.now, from, action),
            }
        }
        self.queue.put(self.now + Duration::from_secs(1), TenantsEvent::Return);
    }

    fn begin_server(&mut self, server: usize) {
        let epoch = &mut self.sites[server].0;
        *epoch += 1;
        let mut config = NodeConfig::new(name(server), Epoch(*epoch));
        config.parent = self.net.parent(server).map(|parent| ParentConfig {
            servers: vec![format!("{}:1", name(parent)).into()],
            transport: Transport::Stream,
            eager: true,
        });
        self.net.begin(self.now, server, config, self.run.repository());
        self.serve(server);
    }
}

/// The name of a server.
fn name(server: usize) -> String {
    if server == 0 { "root".to_owned() } else { format!("node-{server}") }
}
