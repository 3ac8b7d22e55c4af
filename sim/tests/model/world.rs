//! A state of the model, and how messages move through it: the real machines, and a network that may do anything.
//!
//! After each step every machine that had a part in it is polled until it has nothing more to do.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use lessor_client::allowance::Allowance;
use lessor_client::holding::{Fallback, HoldingConfig, Kind};
use lessor_client::session::{Action, Change, Session, SessionConfig};
use lessor_proto::message::{Grant, Up};
use lessor_proto::{Amount, ClientId, Drift, ResourceId, Time};
use lessor_server::node::{Node, NodeConfig, Output, ParentConfig, Record};
use lessor_server::repository::{Glob, Repository, SafeCapacity, Template};

use super::bounds::{Bounds, Budget, CAPACITY, Clocks, DRIFT_PPM, LEASE, REFRESH, Rate, Shape};
use super::parts::{Client, Kept, Line, Mail, Party, Place, Stream};
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
    pub(crate) places: Vec<Arc<Kept<Place>>>,
    pub(crate) mail: Vec<Arc<Kept<Mail>>>,
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
        let places: Vec<u64> = self.places.iter().map(|place| place.print()).collect();
        // What is on its way is a set; streams are in the order of their holders and numbers.
        let mut mail: Vec<u64> = self.mail.iter().map(|mail| mail.print()).collect();
        mail.sort_unstable();
        let streams: Vec<u64> = self.streams.iter().map(|stream| stream.print()).collect();
        let rest = (self.real, self.ticks, self.estate, self.left, self.past, self.broken);
        (clients, places, mail, streams, rest)
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
            places: Vec::new(),
            mail: Vec::new(),
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
        let places = if bounds.shape == Shape::Flat { 1 } else { 2 };
        for place in 0..places {
            world.lead(bounds, place, 1, clocks.nodes, None);
        }
        for (number, name) in ["a", "b"].into_iter().enumerate() {
            let home = usize::from(bounds.shape == Shape::Tree && number == 0);
            world.start(bounds, name, 1, clocks.clients[number], home, bounds.wants[number]);
        }
        for client in 0..world.clients.len() {
            world.pump_client(client);
        }
        world
    }

    /// A client process starts.
    pub(crate) fn start(
        &mut self,
        bounds: &Bounds,
        name: &'static str,
        life: u64,
        rate: Rate,
        home: usize,
        wants: u64,
    ) {
        let id = ClientId::new(name, 16).expect("a name");
        let session = Session::new(SessionConfig {
            drift: Drift::from_parts_per_million(DRIFT_PPM),
            spacing: std::time::Duration::ZERO,
            transport: bounds.transport,
            #[cfg(feature = "mutations")]
            mutation: bounds.mutation.and_then(lessor_sim::mutation::Mutation::client),
            ..SessionConfig::new(id, life, vec![address(home).into()])
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
        place: usize,
        epoch: u64,
        rate: Rate,
        record: Option<Record>,
    ) {
        let parent = (place > 0).then(|| ParentConfig {
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
            ..NodeConfig::new(if place == 0 { "root" } else { "n" }, epoch)
        };
        let units = if self.past.cut { CAPACITY / 2 } else { CAPACITY };
        let node = Node::new(rate.at(self.real), config, repository(units));
        let line = Line::default();
        let found = Kept::new(Place { node, rate, epoch, line });
        match self.places.get_mut(place) {
            Some(before) => *before = found,
            None => self.places.push(found),
        }
    }
}

fn address(place: usize) -> &'static str {
    if place == 0 { "root:1" } else { "n:1" }
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
    pub(super) fn clock(&self, party: Party) -> Time {
        match party {
            Party::Client(client) => self.clients[client].rate.at(self.real),
            Party::Node(place) => self.places[place].rate.at(self.real),
        }
    }

    pub(crate) fn pump(&mut self, party: Party) {
        match party {
            Party::Client(client) => self.pump_client(client),
            Party::Node(place) => self.pump_place(place),
        }
    }

    /// Lets a client do all that it has to do.
    pub(crate) fn pump_client(&mut self, number: usize) {
        if !self.clients[number].alive {
            return;
        }
        loop {
            let now = self.clock(Party::Client(number));
            let action = Kept::change(&mut self.clients[number]).session.poll(now);
            match action {
                Some(Action::Change(change)) => self.tell(number, &change),
                Some(Action::News(_)) => {}
                Some(action) => self.perform(Party::Client(number), action),
                None => return,
            }
        }
    }

    /// The program of a client hears what it may use.
    fn tell(&mut self, number: usize, change: &Change) {
        let now = self.clock(Party::Client(number));
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
    pub(crate) fn pump_place(&mut self, number: usize) {
        loop {
            let now = self.clock(Party::Node(number));
            match Kept::change(&mut self.places[number]).node.poll(now) {
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
                        Kept::change(&mut self.places[number]).node.ready(now, peer);
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
                Some(Output::Parent(action)) => self.perform(Party::Node(number), action),
                None => {
                    let deadline = self.places[number].node.deadline();
                    let soon = self.places[number].rate.at(self.real + PAUSE);
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
        for place in (0..self.places.len()).rev() {
            self.pump_place(place);
        }
    }

    /// A holder does what its session says.
    fn perform(&mut self, party: Party, action: Action) {
        match action {
            Action::Change(_) | Action::News(_) => {}
            Action::Ask { id, ask, .. } => {
                self.watch_ask(party, &ask);
                if self.speaks(party, id) {
                    self.mail.push(Kept::new(Mail::Ask { from: party, id, ask }));
                }
            }
            Action::Release { id, release, .. } => {
                if self.speaks(party, id) {
                    self.mail.push(Kept::new(Mail::Release { from: party, id, release }));
                }
            }
            Action::Connect { id, hello, .. } => {
                let mute = !self.speaks(party, id);
                let up = if mute { Default::default() } else { [Some(Up::Hello(hello))].into() };
                let stream =
                    Stream { holder: party, id, peer: None, heard: true, mute, up, down: Default::default() };
                let place = self.streams.partition_point(|other| (other.holder, other.id) < (party, id));
                self.streams.insert(place, Kept::new(stream));
            }
            Action::Send { id, up } => {
                if let Up::Report(report) = &up {
                    self.watch_reports(party, &report.reports);
                }
                let Some(place) = self.line_of(party, id) else { return };
                if self.streams[place].mute {
                    return;
                }
                let speaks = self.speaks(party, id);
                let stream = Kept::change(&mut self.streams[place]);
                stream.mute = !speaks;
                if speaks {
                    stream.up.push_back(Some(up));
                }
            }
            Action::Disconnect { id } => {
                if let Some(place) = self.line_of(party, id) {
                    self.hang_up(place);
                }
            }
        }
    }

    /// Whether a message of a holder gets out. With request `id` the answers to those before are passed over.
    fn speaks(&mut self, party: Party, id: u64) -> bool {
        let most = match party {
            Party::Client(client) => self.left.words[client.min(2)],
            Party::Node(_) => self.left.words[2],
        };
        let line = match party {
            Party::Client(client) => &mut Kept::change(&mut self.clients[client]).line,
            Party::Node(place) => &mut Kept::change(&mut self.places[place]).line,
        };
        line.last = id;
        line.words += u8::from(line.words <= most);
        let within = line.words <= most;
        let prompt = self.prompt_releases;
        self.mail.retain(|mail| match &***mail {
            Mail::Answer { to, id: of, .. } | Mail::Released { to, id: of } => *to != party || *of >= id,
            Mail::Release { from, .. } => *from != party || !prompt,
            Mail::Ask { .. } => true,
        });
        within
    }

    pub(crate) fn line_of(&self, party: Party, id: u64) -> Option<usize> {
        self.streams.iter().position(|stream| (stream.holder, stream.id) == (party, id))
    }

    /// The holder has no use for a stream any more. What it has said may still arrive.
    pub(super) fn hang_up(&mut self, place: usize) {
        let stream = Kept::change(&mut self.streams[place]);
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
pub(crate) fn grantor(party: Party, clients: &[Arc<Kept<Client>>]) -> usize {
    match party {
        Party::Client(client) => clients[client].home,
        Party::Node(place) => place - 1,
    }
}
