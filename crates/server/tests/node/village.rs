//! A village: nodes and the sessions of their clients on one clock. What is said is heard at once, or never by those who are
//! cut off. Leaders die and are succeeded by others, who find what was written.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_client::allowance::Allowance;
use lessor_client::holding::{HoldingConfig, Kind, Rung};
use lessor_client::session::{self, Action, Change, Failure, Session, SessionConfig, Transport};
use lessor_proto::message::{Down, Up};
use lessor_proto::{Amount, Drift, Epoch, Incarnation, ResourceId, Time};
use lessor_server::node::{MarkWrite, Node, NodeConfig, Output, ParentConfig, Peer};
use lessor_server::record::{Record, RecordChange};
use lessor_server::repository::{Repository, Template};

use super::holders::{client, repository, resource};

/// More things than that at one moment, and nobody will ever come to rest.
const ENDLESS: usize = 1_000_000;

/// A holder: a client, or the node at a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Who {
    Client(usize),
    Place(usize),
}

/// A node and what is written for whoever leads it next.
pub(crate) struct Place {
    pub(crate) node: Option<Node>,
    parent: Option<usize>,
    record: Record,
    epoch: u64,
}

/// A client, and what it believes.
pub(crate) struct Client {
    pub(crate) session: Session,
    place: usize,
    pub(crate) allowance: Allowance,
    pub(crate) rung: Rung,
}

pub(crate) struct Village {
    pub(crate) now: Time,
    pub(crate) places: Vec<Place>,
    pub(crate) clients: Vec<Client>,
    pub(crate) template: Template,
    /// Nobody hears of these, nor they of anybody.
    pub(crate) cut: Vec<Who>,
    streams: BTreeMap<(Who, u64), (usize, Peer)>,
    /// Grants that came down to clients.
    pub(crate) grants: usize,
    /// The most that all clients together believed since it was last set to nothing, in millionths.
    pub(crate) peak: u64,
}

// === impl Village ===

impl Village {
    /// A root, and `leaves` nodes below it; the clients are below those, if there are any.
    pub(crate) fn new(template: Template, leaves: usize) -> Village {
        let place = |parent| Place { node: None, parent, record: Record::default(), epoch: 0 };
        let mut places = vec![place(None)];
        places.extend((0..leaves).map(|_| place(Some(0))));
        let mut village = Village {
            now: Time::ZERO + Duration::from_secs(1_000),
            places,
            clients: Vec::new(),
            template,
            cut: Vec::new(),
            streams: BTreeMap::new(),
            grants: 0,
            peak: 0,
        };
        (0..=leaves).for_each(|place| village.elect(place));
        village
    }

    /// Somebody leads the place from here on who knows only what is written; who did before is dead.
    pub(crate) fn elect(&mut self, index: usize) {
        self.lose(index);
        let place = &mut self.places[index];
        place.epoch += 1;
        let parent = place.parent.map(|parent| ParentConfig {
            servers: vec![parent.to_string().into()],
            transport: Transport::Stream,
            eager: true,
        });
        let config = NodeConfig {
            drift: Drift::NONE,
            record: Some(place.record.clone()),
            marks: true,
            line: Some(0),
            authority: Duration::from_secs(1),
            trust_claims: true,
            parent,
            ..NodeConfig::new(format!("place-{index}"), Epoch(place.epoch))
        };
        place.node = Some(Node::new(self.now, config, repository(self.template.clone())));
        self.settle();
    }

    /// The leader of a place dies, and those connected with it find that out.
    pub(crate) fn lose(&mut self, index: usize) {
        self.places[index].node = None;
        let ended: Vec<_> = self.streams.iter().filter(|(_, (place, _))| *place == index).collect();
        let ended: Vec<_> = ended.into_iter().map(|(&key, _)| key).collect();
        for (who, id) in ended {
            self.streams.remove(&(who, id));
            self.closed(who, id);
        }
        let own: Vec<_> = self.streams.keys().copied().filter(|&(who, _)| who == Who::Place(index)).collect();
        for key in own {
            self.hang_up(key);
        }
    }

    /// Another client that wants so much; below the leaves in turn, if there are any.
    pub(crate) fn come(&mut self, wants: f64) -> usize {
        let index = self.clients.len();
        let leaves = self.places.len() - 1;
        let place = if leaves == 0 { 0 } else { 1 + index % leaves };
        let config = SessionConfig {
            drift: Drift::NONE,
            transport: Transport::Stream,
            timeout: Duration::from_secs(2),
            ..SessionConfig::new(client(&format!("c{index}")), Incarnation(7), vec![place.to_string().into()])
        };
        let mut session = Session::new(config);
        session.add(self.now, resource(), HoldingConfig::new(Kind::Rate, wants, 0));
        self.clients.push(Client { session, place, allowance: Allowance::NOTHING, rung: Rung::Waiting });
        self.settle();
        index
    }

    /// The client gives back all it has.
    pub(crate) fn go(&mut self, index: usize) {
        self.clients[index].session.remove_all(self.now);
        self.settle();
    }

    pub(crate) fn want(&mut self, index: usize, wants: f64) {
        self.clients[index].session.set_wants(self.now, &resource(), wants);
        self.settle();
    }

    /// Everybody hears of another template.
    pub(crate) fn configure(&mut self, template: Template) {
        self.template = template;
        for index in 0..self.places.len() {
            let (now, repository) = (self.now, repository(self.template.clone()));
            if let Some(node) = &mut self.places[index].node {
                node.reload(now, repository);
            }
        }
        self.settle();
    }

    /// One place hears of another template, or of none.
    pub(crate) fn configure_one(&mut self, index: usize, template: Option<Template>) {
        let repository = template.map_or_else(Repository::default, repository);
        if let Some(node) = &mut self.places[index].node {
            node.reload(self.now, repository);
        }
        self.settle();
    }

    pub(crate) fn cut_off(&mut self, who: Who, is_cut: bool) {
        self.cut.retain(|&other| other != who);
        if is_cut {
            self.cut.push(who);
        }
    }

    pub(crate) fn pass(&mut self, length: Duration) {
        let end = self.now + length;
        while self.now < end {
            let sessions = self.clients.iter().map(|client| client.session.deadline());
            let nodes = self.places.iter().filter_map(|place| place.node.as_ref()?.deadline());
            let tick = self.now + Duration::from_secs(1);
            self.now = sessions.chain(nodes).fold(tick.min(end), Time::min).max(self.now);
            for place in &mut self.places {
                if let Some(node) = &mut place.node {
                    node.advance(self.now);
                }
            }
            self.settle();
        }
    }

    /// The amount that all clients together may use, in millionths.
    pub(crate) fn believed(&self) -> u64 {
        let live = |client: &&Client| self.now < client.allowance.until;
        let amount = |client: &Client| client.allowance.capacity.unwrap_or(Amount::MAX).as_micros();
        self.clients.iter().filter(live).map(amount).sum()
    }

    /// The amount that the leader of the root has out, in millionths.
    pub(crate) fn out(&self, resource: &ResourceId) -> u128 {
        let node = self.places[0].node.as_ref();
        node.and_then(|node| node.books(self.now, resource)).map_or(0, |books| books.total)
    }

    // === what happens at one moment ===

    fn settle(&mut self) {
        for step in 0.. {
            assert!(step < ENDLESS, "nobody comes to rest");
            let mut moved = false;
            for index in 0..self.clients.len() {
                while let Some(action) = self.clients[index].session.poll(self.now) {
                    moved = true;
                    self.act(Who::Client(index), action);
                }
            }
            for index in 0..self.places.len() {
                moved |= self.drive(index);
            }
            self.peak = self.peak.max(self.believed());
            if !moved {
                return;
            }
        }
    }

    fn drive(&mut self, index: usize) -> bool {
        let mut moved = false;
        while let Some(output) = self.places[index].node.as_mut().and_then(|node| node.poll(self.now)) {
            moved = true;
            match output {
                Output::Parent(action) => self.act(Who::Place(index), action),
                Output::Send { peer, down } => {
                    if let Some(node) = &mut self.places[index].node {
                        node.ready(self.now, peer);
                    }
                    self.down(index, peer, down);
                }
                Output::Close { peer } => {
                    if let Some((who, id)) = self.stream_of(index, peer) {
                        self.streams.remove(&(who, id));
                        self.closed(who, id);
                    }
                }
            }
        }
        while let Some(write) = self.places[index].node.as_mut().and_then(|node| node.next_marks(self.now)) {
            moved = true;
            let ticket = write.ticket;
            self.places[index].write(write);
            if let Some(node) = &mut self.places[index].node {
                node.on_marks(self.now, ticket, true);
            }
        }
        moved
    }

    fn act(&mut self, who: Who, action: Action) {
        match action {
            Action::Change(Change { resource: id, allowance, rung, .. }) => {
                assert_eq!(id, resource(), "a program hears of what it has opened");
                if let Who::Client(index) = who {
                    (self.clients[index].allowance, self.clients[index].rung) = (allowance, rung);
                }
            }
            Action::Connect { id, hello, .. } => {
                let place = self.above(who);
                let hears = !self.cut.contains(&who);
                if let Some(node) = self.places[place].node.as_mut().filter(|_| hears) {
                    let peer = node.connect(self.now, hello);
                    self.streams.insert((who, id), (place, peer));
                }
            }
            Action::Send { id, up } => self.up(who, id, up),
            Action::Disconnect { id } => self.hang_up((who, id)),
            Action::Ask { .. } | Action::Release { .. } => panic!("nobody polls"),
            Action::News(_) => panic!("nobody tells of domains"),
        }
    }

    fn up(&mut self, who: Who, id: u64, up: Up) {
        let Some(&(place, peer)) = self.streams.get(&(who, id)).filter(|_| !self.cut.contains(&who)) else {
            return;
        };
        if let Some(node) = &mut self.places[place].node {
            node.receive(self.now, peer, up);
        }
    }

    fn down(&mut self, place: usize, peer: Peer, down: Down) {
        let Some((who, id)) = self.stream_of(place, peer).filter(|(who, _)| !self.cut.contains(who)) else {
            return;
        };
        match who {
            Who::Client(index) => {
                if let Down::Grants(grants) = &down {
                    self.grants += grants.len();
                }
                self.clients[index].session.handle(self.now, session::Event::Down { id, down });
            }
            Who::Place(index) => {
                if let Some(node) = &mut self.places[index].node {
                    node.on_parent(self.now, session::Event::Down { id, down });
                }
            }
        }
    }

    fn closed(&mut self, who: Who, id: u64) {
        let failure = Failure::Unreachable("connection reset".into());
        match who {
            _ if self.cut.contains(&who) => {}
            Who::Client(index) => {
                self.clients[index].session.handle(self.now, session::Event::Closed { id, failure });
            }
            Who::Place(index) => {
                if let Some(node) = &mut self.places[index].node {
                    node.on_parent(self.now, session::Event::Closed { id, failure });
                }
            }
        }
    }

    /// The holder leaves the stream; whoever is cut off does so unheard.
    fn hang_up(&mut self, key: (Who, u64)) {
        let Some((place, peer)) = self.streams.remove(&key) else { return };
        if let Some(node) = self.places[place].node.as_mut().filter(|_| !self.cut.contains(&key.0)) {
            node.disconnect(self.now, peer);
        }
    }

    fn stream_of(&self, place: usize, peer: Peer) -> Option<(Who, u64)> {
        self.streams.iter().find(|(_, end)| **end == (place, peer)).map(|(&key, _)| key)
    }

    fn above(&self, who: Who) -> usize {
        match who {
            Who::Client(index) => self.clients[index].place,
            Who::Place(index) => self.places[index].parent.expect("the root asks nobody"),
        }
    }
}

// === impl Place ===

impl Place {
    fn write(&mut self, write: MarkWrite) {
        let MarkWrite { closed, change: RecordChange { marks, proofs, deletes, terms, .. }, .. } = write;
        let record = &mut self.record;
        record.proofs.retain(|id, _| !marks.contains_key(id) && !deletes.contains(id));
        record.proofs.extend(proofs);
        record.marks.extend(marks);
        record.marks.retain(|id, _| !deletes.contains(id));
        if let Some(terms) = terms {
            record.longest_lease = terms.longest_lease;
            record.longest_safe_lease = terms.longest_safe_lease;
            record.authority = terms.authority;
            record.closed = closed;
        }
    }
}
