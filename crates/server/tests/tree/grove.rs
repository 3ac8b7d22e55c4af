//! A tree of real nodes and sessions between which nothing takes time or is lost.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use lessor_client::holding::{Fallback, HoldingConfig, Kind, Surplus};
use lessor_client::session::{self, Action, Session, SessionConfig, Transport};
use lessor_proto::message::{Band, Bands, Down, HolderKind, Up};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ResourceId, Time};
use lessor_server::node::{Node, NodeConfig, Output, ParentConfig, Peer};
use lessor_server::repository::{Glob, Repository, Template};

/// A holder of something of a node: the node of that number, or the holder of that number outside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Party {
    Node(usize),
    Holder(usize),
}

/// Somebody who asks a node, and stands for as many clients as its bands say.
struct Holder {
    parent: usize,
    session: Session,
}

/// A stream between a holder and the node above it.
#[derive(Clone, Copy, Debug)]
struct Stream {
    of: Party,
    id: u64,
}

/// A message on its way.
enum Mail {
    ToNode { node: usize, peer: Peer, up: Up },
    ToParty { to: Party, id: u64, down: Down },
}

/// The tree: the root is node 0.
pub(crate) struct Grove {
    now: Time,
    nodes: Vec<Node>,
    /// The node that each node asks, if it asks one.
    parents: Vec<Option<usize>>,
    holders: Vec<Holder>,
    streams: BTreeMap<(usize, Peer), Stream>,
    peers: BTreeMap<(Party, u64), (usize, Peer)>,
    mail: VecDeque<Mail>,
}

/// Messages and wake-ups after which a tree should have come to rest.
const ENDLESS: usize = 2_000_000;

// === impl Grove ===

impl Grove {
    /// Nodes that ask those of the numbers `parents`, the first of which is the root and asks nobody, and the one of `template`.
    pub(crate) fn new(template: &Template, parents: &[Option<usize>], transport: Transport) -> Grove {
        let node = |(number, parent): (usize, &Option<usize>)| {
            let mut config = NodeConfig::new(name(number), Epoch(1));
            config.parent =
                parent.map(|parent| ParentConfig { servers: vec![address(parent)], transport, eager: true });
            let repository = Repository::new(vec![template.clone()]).expect("one template");
            Node::new(Time::ZERO, config, repository)
        };
        Grove {
            now: Time::ZERO,
            nodes: parents.iter().enumerate().map(node).collect(),
            parents: parents.to_vec(),
            holders: Vec::new(),
            streams: BTreeMap::new(),
            peers: BTreeMap::new(),
            mail: VecDeque::new(),
        }
    }

    /// Somebody asks `parent` for `bands`; several, or one of more than one client, is asked for as a node does.
    pub(crate) fn plant(&mut self, parent: usize, bands: &[Band], transport: Transport) {
        let is_client = bands.len() == 1 && bands[0].subclients == 1;
        let holder = ClientId::new(format!("h{}", self.holders.len()), 256).expect("a name");
        let config = SessionConfig {
            kind: if is_client { HolderKind::Client } else { HolderKind::Node },
            transport,
            ..SessionConfig::new(holder, Incarnation(1), vec![address(parent)])
        };
        let mut session = Session::new(config);
        let holding = HoldingConfig {
            kind: Kind::Rate,
            bands: bands.iter().cloned().collect::<Bands>(),
            fallback: Fallback::Pessimistic,
            surplus: Surplus::Return,
        };
        session.add(self.now, resource(), holding);
        self.holders.push(Holder { parent, session });
    }

    /// The amount that each holder may use.
    pub(crate) fn believed(&self) -> Vec<f64> {
        let amount = |holder: &Holder| holder.session.allowance(self.now, &resource()).capacity;
        self.holders.iter().map(|holder| amount(holder).unwrap_or(Amount::MAX).as_f64()).collect()
    }

    /// Lets time pass until `end`, with all that happens meanwhile.
    pub(crate) fn until(&mut self, end: Time) {
        for _ in 0..ENDLESS {
            if self.step() {
                continue;
            }
            let due = self.deadline();
            if due > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(due);
            self.wake();
        }
        panic!("the tree never comes to rest");
    }

    fn deadline(&self) -> Time {
        let nodes = self.nodes.iter().filter_map(Node::deadline);
        let holders = self.holders.iter().map(|holder| holder.session.deadline());
        nodes.chain(holders).min().unwrap_or(Time::MAX)
    }

    /// Delivers what is on its way first.
    fn step(&mut self) -> bool {
        let Some(mail) = self.mail.pop_front() else { return self.wake() };
        match mail {
            Mail::ToNode { node, peer, up } => self.nodes[node].receive(self.now, peer, up),
            Mail::ToParty { to: Party::Node(node), id, down } => {
                self.nodes[node].on_parent(self.now, session::Event::Down { id, down });
            }
            Mail::ToParty { to: Party::Holder(holder), id, down } => {
                self.holders[holder].session.handle(self.now, session::Event::Down { id, down });
            }
        }
        true
    }

    /// Takes out what everybody has to say, and returns whether it was anything.
    fn wake(&mut self) -> bool {
        let mut said = false;
        for node in 0..self.nodes.len() {
            while let Some(output) = self.nodes[node].poll(self.now) {
                said = true;
                self.take(node, output);
            }
        }
        for holder in 0..self.holders.len() {
            while let Some(action) = self.holders[holder].session.poll(self.now) {
                said = true;
                self.act(Party::Holder(holder), action);
            }
        }
        said
    }

    fn take(&mut self, node: usize, output: Output) {
        match output {
            Output::Parent(action) => self.act(Party::Node(node), action),
            Output::Close { peer } => _ = self.streams.remove(&(node, peer)),
            Output::Send { peer, down } => {
                self.nodes[node].ready(self.now, peer);
                if let Some(&Stream { of, id }) = self.streams.get(&(node, peer)) {
                    self.mail.push_back(Mail::ToParty { to: of, id, down });
                }
            }
        }
    }

    fn act(&mut self, from: Party, action: Action) {
        let parent = match from {
            Party::Node(node) => self.parents[node].expect("a root asks nobody"),
            Party::Holder(holder) => self.holders[holder].parent,
        };
        match action {
            Action::Change(_) | Action::News(_) => {}
            Action::Connect { id, hello, .. } => {
                let peer = self.nodes[parent].connect(self.now, hello);
                self.streams.insert((parent, peer), Stream { of: from, id });
                self.peers.insert((from, id), (parent, peer));
            }
            Action::Send { id, up } => {
                let (node, peer) = self.peers[&(from, id)];
                self.mail.push_back(Mail::ToNode { node, peer, up });
            }
            Action::Disconnect { id } => {
                if let Some((node, peer)) = self.peers.remove(&(from, id)) {
                    self.nodes[node].disconnect(self.now, peer);
                }
            }
            Action::Ask { id, ask, .. } => {
                let answer = self.nodes[parent].ask(self.now, &ask).expect("a good request");
                match from {
                    Party::Node(node) => {
                        self.nodes[node].on_parent(self.now, session::Event::Answered { id, answer });
                    }
                    Party::Holder(holder) => {
                        self.holders[holder]
                            .session
                            .handle(self.now, session::Event::Answered { id, answer });
                    }
                }
            }
            Action::Release { .. } => unreachable!("nobody releases anything"),
        }
    }
}

pub(crate) fn resource() -> ResourceId {
    ResourceId::new("db", 256).expect("a name")
}

/// A template that gives everybody that capacity of everything.
pub(crate) fn template(capacity: f64) -> Template {
    Template::new(Glob::new("*").expect("a glob"), Amount::from_f64(capacity))
}

fn name(node: usize) -> String {
    format!("n{node}")
}

fn address(node: usize) -> Arc<str> {
    format!("n{node}:1").into()
}
