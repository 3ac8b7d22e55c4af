//! A state of the model, and how messages move through it: the real machines, and a network that may do anything.
//!
//! After each step every machine that had a part in it is polled until it has nothing more to do.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{Action, Change, Session, SessionConfig};
use lessor_client::{Fallback, Kind};
use lessor_proto::message::{Grant, Up};
use lessor_proto::{Amount, ClientId, Drift, Epoch, Incarnation, ResourceId, Time};
use lessor_server::node::{Node, NodeConfig, Output, ParentConfig};
use lessor_server::record::Record;
use lessor_server::repository::{Glob, Repository, SafeCapacity, Template};

use super::bounds::{Bounds, Budget, CAPACITY, Clocks, DRIFT_PPM, LEASE, REFRESH, Rate, Shape};
use super::parts::{Actor, Client, Delivery, Kept, Line, Site, Stream};
use super::rules::Past;

/// The pause, in nanoseconds, after which another look, in the same step of time, settles what the last one
/// left.
const PAUSE: u64 = 2_000_000;

/// A state.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// Real time, in nanoseconds.
    pub(crate) real: u64,
    pub(crate) ticks: u8,
    pub(crate) clients: Vec<Arc<Kept<Client>>>,
    /// The root, and the node below it if there is one.
    pub(crate) sites: Vec<Arc<Kept<Site>>>,
    pub(crate) delivery: Vec<Arc<Kept<Delivery>>>,
    pub(crate) streams: Vec<Arc<Kept<Stream>>>,
    pub(crate) left: Budget,
    pub(crate) slow_reader: bool,
    pub(crate) only_promise: bool,
    pub(crate) prompt_releases: bool,
    pub(crate) past: Past,
    /// Of a client that has died, what it had.
    pub(crate) estate: Amount,
    /// The rule that the last step has broken.
    pub(crate) broken: Option<&'static str>,
    /// Grants that are being handed in. Empty between steps.
    pub(crate) arriving: Vec<Grant>,
    /// The facts that the last step has shown. They are no part of the state.
    pub(crate) facts: u32,
}

impl World {
    /// All that makes two states one.
    fn identity(&self) -> impl PartialEq + Hash {
        let clients: Vec<u64> = self.clients.iter().map(|client| client.print()).collect();
        let sites: Vec<u64> = self.sites.iter().map(|site| site.print()).collect();
        // What is on its way is a set; streams are in the order of their holders and numbers.
        let mut delivery: Vec<u64> = self.delivery.iter().map(|delivery| delivery.print()).collect();
        delivery.sort_unstable();
        let streams: Vec<u64> = self.streams.iter().map(|stream| stream.print()).collect();
        let rest = (self.real, self.ticks, self.estate, self.left, self.past, self.broken);
        (clients, sites, delivery, streams, rest)
    }
}

impl PartialEq for World {
    fn eq(&self, other: &World) -> bool {
        self.identity() == other.identity()
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.identity().hash(hasher);
    }
}

/// A client process that is to start.
#[derive(Clone, Copy)]
pub(crate) struct ClientStart {
    pub(crate) name: &'static str,
    /// Its incarnation.
    pub(crate) life: u64,
    pub(crate) rate: Rate,
    /// The node it asks.
    pub(crate) home: usize,
    pub(crate) wants: u64,
}

/// The one resource.
pub(crate) fn resource() -> ResourceId {
    ResourceId::new("r", 16).expect("a name")
}

/// The configuration of a capacity of `units`.
pub(crate) fn repository(units: u64) -> Repository {
    let template = Template {
        safe_capacity: SafeCapacity::Fixed(Amount::ZERO),
        lease_length: LEASE,
        refresh_interval: REFRESH,
        ..Template::new(Glob::new("*").expect("a glob"), Amount::from_units(units))
    };
    Repository::new(vec![template]).expect("it holds together")
}

// === impl World: beginnings ===

impl World {
    pub(crate) fn begin(bounds: &Bounds, clocks: &Clocks) -> World {
        let mut world = World {
            real: 0,
            ticks: 0,
            clients: Vec::new(),
            sites: Vec::new(),
            delivery: Vec::new(),
            streams: Vec::new(),
            left: bounds.budget,
            slow_reader: bounds.slow_reader,
            only_promise: bounds.only_promise,
            prompt_releases: bounds.prompt_releases,
            past: Past::default(),
            estate: Amount::ZERO,
            broken: None,
            arriving: Vec::new(),
            facts: 0,
        };
        let sites = if bounds.shape == Shape::Flat { 1 } else { 2 };
        for site in 0..sites {
            world.lead(bounds, site, 1, clocks.nodes, None);
        }
        for (number, name) in ["a", "b"].into_iter().enumerate() {
            let home = usize::from(bounds.shape == Shape::Tree && number == 0);
            let (rate, wants) = (clocks.clients[number], bounds.wants[number]);
            world.start(bounds, ClientStart { name, life: 1, rate, home, wants });
        }
        for client in 0..world.clients.len() {
            world.pump_client(client);
        }
        world
    }

    /// A client process starts.
    pub(crate) fn start(&mut self, bounds: &Bounds, start: ClientStart) {
        let ClientStart { name, life, rate, home, wants } = start;
        let id = ClientId::new(name, 16).expect("a name");
        let session = Session::new(SessionConfig {
            drift: Drift::from_parts_per_million(DRIFT_PPM),
            spacing: std::time::Duration::ZERO,
            transport: bounds.transport,
            #[cfg(feature = "mutations")]
            rules: bounds.mutation.map(lessor_sim::mutation::Mutation::client).unwrap_or_default(),
            ..SessionConfig::new(id, Incarnation(life), vec![address(home).into()])
        });
        let mut client = Client {
            session,
            name,
            incarnation: life,
            rate,
            home,
            alive: true,
            joined: true,
            came_back: false,
            wants,
            told: Allowance::NOTHING,
            order: None,
            promised: None,
            line: Line::default(),
        };
        client.join(self.real);
        self.clients.push(Kept::new(client));
    }

    /// A node begins to lead.
    pub(crate) fn lead(
        &mut self,
        bounds: &Bounds,
        site: usize,
        epoch: u64,
        rate: Rate,
        record: Option<Record>,
    ) {
        let parent = (site > 0).then(|| ParentConfig {
            servers: vec![address(0).into()],
            transport: bounds.transport,
            eager: true,
        });
        let config = NodeConfig {
            drift: Drift::from_parts_per_million(DRIFT_PPM),
            parent,
            record,
            line: Some(0),
            trust_claims: true,
            #[cfg(feature = "mutations")]
            rules: bounds.mutation.map(lessor_sim::mutation::Mutation::node).unwrap_or_default(),
            ..NodeConfig::new(if site == 0 { "root" } else { "n" }, Epoch(epoch))
        };
        let units = if self.past.cut { CAPACITY / 2 } else { CAPACITY };
        let node = Node::new(rate.at(self.real), config, repository(units));
        let line = Line::default();
        let found = Kept::new(Site { node, rate, epoch, line });
        match self.sites.get_mut(site) {
            Some(before) => *before = found,
            None => self.sites.push(found),
        }
    }
}

fn address(site: usize) -> &'static str {
    if site == 0 { "root:1" } else { "n:1" }
}

// === impl Client ===

impl Client {
    pub(crate) fn join(&mut self, real: u64) {
        self.joined = true;
        let config = HoldingConfig {
            fallback: Fallback::Pessimistic,
            ..HoldingConfig::new(Kind::Rate, self.wants as f64, 0)
        };
        self.session.add(self.rate.at(real), resource(), config);
    }

    pub(crate) fn leave(&mut self, real: u64) {
        self.joined = false;
        self.session.remove(self.rate.at(real), &resource());
    }
}

// === impl World: polling ===

impl World {
    /// The clock of a holder.
    pub(super) fn clock(&self, actor: Actor) -> Time {
        match actor {
            Actor::Client(client) => self.clients[client].rate.at(self.real),
            Actor::Node(site) => self.sites[site].rate.at(self.real),
        }
    }

    pub(crate) fn pump(&mut self, actor: Actor) {
        match actor {
            Actor::Client(client) => self.pump_client(client),
            Actor::Node(site) => self.pump_site(site),
        }
    }

    /// Lets a client do all that it has to do.
    pub(crate) fn pump_client(&mut self, number: usize) {
        if !self.clients[number].alive {
            return;
        }
        loop {
            let now = self.clock(Actor::Client(number));
            let action = Kept::change(&mut self.clients[number]).session.poll(now);
            match action {
                Some(Action::Change(change)) => self.tell(number, &change),
                Some(Action::News(_)) => {}
                Some(action) => self.perform(Actor::Client(number), action),
                None => return,
            }
        }
    }

    /// The program of a client hears what it may use.
    fn tell(&mut self, number: usize, change: &Change) {
        let now = self.clock(Actor::Client(number));
        let before = self.clients[number].told;
        let allowance = change.allowance;
        let amount = allowance.capacity.unwrap_or(Amount::MAX);
        let more = now < allowance.until
            && amount > Amount::ZERO
            && (before.until != allowance.until || before.capacity < allowance.capacity);
        let grant = self.arriving.iter().find(|grant| grant.capacity == amount).and_then(|grant| grant.order);
        Kept::change(&mut self.clients[number]).told = allowance;
        if more && let Some(order) = grant {
            self.adopted(number, order);
        }
    }

    /// Lets a node do all that it has to do, also what it puts off for a moment.
    pub(crate) fn pump_site(&mut self, number: usize) {
        loop {
            let now = self.clock(Actor::Node(number));
            match Kept::change(&mut self.sites[number]).node.poll(now) {
                Some(Output::Send { peer, down }) => {
                    let sent = |stream: &&mut Arc<Kept<Stream>>| {
                        stream.peer == Some(peer) && grantor(stream.holder, &self.clients) == number
                    };
                    let Some(stream) = self.streams.iter_mut().find(sent) else { continue };
                    let stream = Kept::change(stream);
                    if stream.heard {
                        stream.down.push_back(Some(down));
                    }
                    if !stream.heard || !self.slow_reader {
                        Kept::change(&mut self.sites[number]).node.ready(now, peer);
                    }
                }
                Some(Output::Close { peer }) => {
                    for stream in &mut self.streams {
                        if stream.peer == Some(peer) && grantor(stream.holder, &self.clients) == number {
                            let stream = Kept::change(stream);
                            stream.peer = None;
                            stream.mute = true;
                            stream.up.clear();
                            stream.down.push_back(None);
                        }
                    }
                }
                Some(Output::Parent(action)) => self.perform(Actor::Node(number), action),
                None => {
                    let deadline = self.sites[number].node.next_deadline();
                    let soon = self.sites[number].rate.at(self.real + PAUSE);
                    if deadline.is_none_or(|deadline| deadline > soon) {
                        return;
                    }
                    self.real += PAUSE;
                }
            }
        }
    }

    /// Time has moved.
    pub(crate) fn pump_all(&mut self) {
        for client in 0..self.clients.len() {
            self.pump_client(client);
        }
        for site in (0..self.sites.len()).rev() {
            self.pump_site(site);
        }
    }

    /// A holder does what its session says.
    fn perform(&mut self, actor: Actor, action: Action) {
        match action {
            Action::Change(_) | Action::News(_) => {}
            Action::Ask { id, ask, .. } => {
                self.watch_ask(actor, &ask);
                if self.speaks(actor, id.0) {
                    self.delivery.push(Kept::new(Delivery::Ask { from: actor, id: id.0, ask }));
                }
            }
            Action::Release { id, release, .. } => {
                if self.speaks(actor, id.0) {
                    self.delivery.push(Kept::new(Delivery::Release { from: actor, id: id.0, release }));
                }
            }
            Action::Connect { id, hello, .. } => {
                let mute = !self.speaks(actor, id);
                let up = if mute { Default::default() } else { [Some(Up::Hello(hello))].into() };
                let stream =
                    Stream { holder: actor, id, peer: None, heard: true, mute, up, down: Default::default() };
                let site = self.streams.partition_point(|other| (other.holder, other.id) < (actor, id));
                self.streams.insert(site, Kept::new(stream));
            }
            Action::Send { id, up } => {
                if let Up::Report(report) = &up {
                    self.watch_reports(actor, &report.reports);
                }
                let Some(site) = self.line_of(actor, id) else { return };
                if self.streams[site].mute {
                    return;
                }
                let speaks = self.speaks(actor, id);
                let stream = Kept::change(&mut self.streams[site]);
                stream.mute = !speaks;
                if speaks {
                    stream.up.push_back(Some(up));
                }
            }
            Action::Disconnect { id } => {
                if let Some(site) = self.line_of(actor, id) {
                    self.hang_up(site);
                }
            }
        }
    }

    /// Whether a message of a holder gets out. With request `id` the answers to those before are passed over.
    fn speaks(&mut self, actor: Actor, id: u64) -> bool {
        let most = match actor {
            Actor::Client(client) => self.left.words[client.min(2)],
            Actor::Node(_) => self.left.words[2],
        };
        let line = match actor {
            Actor::Client(client) => &mut Kept::change(&mut self.clients[client]).line,
            Actor::Node(site) => &mut Kept::change(&mut self.sites[site]).line,
        };
        line.last = id;
        line.words += u8::from(line.words <= most);
        let within = line.words <= most;
        let prompt = self.prompt_releases;
        self.delivery.retain(|delivery| match &***delivery {
            Delivery::Answer { to, id: of, .. } | Delivery::Released { to, id: of } => {
                *to != actor || *of >= id
            }
            Delivery::Release { from, .. } => *from != actor || !prompt,
            Delivery::Ask { .. } => true,
        });
        within
    }

    pub(crate) fn line_of(&self, actor: Actor, id: u64) -> Option<usize> {
        self.streams.iter().position(|stream| (stream.holder, stream.id) == (actor, id))
    }

    /// The holder has no use for a stream any more. What it has said may still arrive.
    pub(super) fn hang_up(&mut self, site: usize) {
        let stream = Kept::change(&mut self.streams[site]);
        stream.heard = false;
        stream.down.clear();
        stream.up.push_back(None);
        self.sweep();
    }

    /// Forgets streams that can do nothing any more: those hung up whose other end is closed or was never reached, and
    /// will not be.
    pub(super) fn sweep(&mut self) {
        self.streams.retain(|stream| {
            let beginning = stream.up.iter().any(|up| matches!(up, Some(Up::Hello(_))));
            stream.heard || stream.peer.is_some() || beginning
        });
    }
}

/// The node that a holder asks.
pub(crate) fn grantor(actor: Actor, clients: &[Arc<Kept<Client>>]) -> usize {
    match actor {
        Actor::Client(client) => clients[client].home,
        Actor::Node(site) => site - 1,
    }
}
