//! A village: nodes and the sessions of their clients on one clock. What is said is heard at once, or never by those who are
//! cut off. Leaders die and are succeeded by others, who find what was written.

use std::time::Duration;

use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{Action, Change, Event, Session, SessionConfig};
use lessor_client::{Kind, Rung, Transport};
use lessor_proto::message::Down;
use lessor_proto::{Amount, Drift, Epoch, Incarnation, ResourceId, Time};
use lessor_server::node::{MarkWrite, NodeConfig, ParentConfig, ResourceRow, StatusQuery};
use lessor_server::record::{Record, RecordChange};
use lessor_server::repository::{Repository, Template};
use lessor_sim::net::{Endpoint, Heard, StillNet};

use super::holders::{client, repository, resource};

/// More writes than that at one moment, and nobody will ever come to rest.
const ENDLESS: usize = 100_000;

/// The record that the next leader of a place finds, and the epoch of the last.
#[derive(Default)]
struct Place {
    record: Record,
    epoch: Epoch,
}

/// The beliefs of a client.
pub(crate) struct Client {
    pub(crate) allowance: Allowance,
    pub(crate) rung: Rung,
}

pub(crate) struct Village {
    pub(crate) now: Time,
    /// The nodes, and the sessions of the clients.
    pub(crate) net: StillNet,
    places: Vec<Place>,
    pub(crate) clients: Vec<Client>,
    pub(crate) template: Template,
    /// Grants that came down to clients.
    pub(crate) grants: usize,
    /// The most that all clients together believed since it was last set to nothing, in millionths.
    pub(crate) peak: u64,
}

// === impl Village ===

impl Village {
    /// A root, and `leaves` nodes below it; the clients are below those, if there are any.
    pub(crate) fn new(template: Template, leaves: usize) -> Village {
        let parents: Vec<Option<usize>> = std::iter::once(None).chain(vec![Some(0); leaves]).collect();
        let mut village = Village {
            now: Time::ZERO + Duration::from_secs(1_000),
            net: StillNet::new(&parents),
            places: parents.iter().map(|_| Place::default()).collect(),
            clients: Vec::new(),
            template,
            grants: 0,
            peak: 0,
        };
        (0..=leaves).for_each(|place| village.elect(place));
        village
    }

    /// The number of places for nodes.
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// Somebody leads the place from here on who knows only what is written; who did before is dead.
    pub(crate) fn elect(&mut self, index: usize) {
        self.lose(index);
        let place = &mut self.places[index];
        place.epoch = place.epoch.next();
        let parent = self.net.net.parent(index).map(|parent| ParentConfig {
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
            ..NodeConfig::new(format!("place-{index}"), place.epoch)
        };
        self.net.net.begin(self.now, index, config, repository(self.template.clone()));
        self.settle();
    }

    /// The leader of a place dies, and those connected with it find that out.
    pub(crate) fn lose(&mut self, index: usize) {
        self.net.lose(index);
    }

    /// Another client that wants so much; below the leaves in turn, if there are any.
    pub(crate) fn come(&mut self, wants: f64) -> usize {
        self.come_as(&format!("c{}", self.clients.len()), 7, wants)
    }

    /// The same of a life of a client of that name.
    pub(crate) fn come_as(&mut self, name: &str, life: u64, wants: f64) -> usize {
        let index = self.clients.len();
        let leaves = self.places.len() - 1;
        let place = if leaves == 0 { 0 } else { 1 + index % leaves };
        let config = SessionConfig {
            drift: Drift::NONE,
            transport: Transport::Stream,
            timeout: Duration::from_secs(2),
            ..SessionConfig::new(client(name), Incarnation(life), vec![place.to_string().into()])
        };
        let mut session = Session::new(config);
        session.add(self.now, resource(), HoldingConfig::new(Kind::Rate, wants, 0));
        self.net.add(place, session);
        self.clients.push(Client { allowance: Allowance::NOTHING, rung: Rung::Waiting });
        self.settle();
        index
    }

    /// The client gives back all it has.
    pub(crate) fn go(&mut self, index: usize) {
        self.net.sessions[index].remove_all(self.now);
        self.settle();
    }

    pub(crate) fn want(&mut self, index: usize, wants: f64) {
        self.net.sessions[index].set_wants(self.now, &resource(), wants);
        self.settle();
    }

    /// Everybody hears of another template.
    pub(crate) fn configure(&mut self, template: Template) {
        self.template = template;
        for index in 0..self.places.len() {
            let (now, repository) = (self.now, repository(self.template.clone()));
            if let Some(node) = self.net.net.node_mut(index) {
                node.reload(now, repository);
            }
        }
        self.settle();
    }

    /// One place hears of another template, or of none.
    pub(crate) fn configure_one(&mut self, index: usize, template: Option<Template>) {
        let repository = template.map_or_else(Repository::default, repository);
        if let Some(node) = self.net.net.node_mut(index) {
            node.reload(self.now, repository);
        }
        self.settle();
    }

    pub(crate) fn cut_off(&mut self, who: Endpoint, is_cut: bool) {
        self.net.cut.remove(&who);
        if is_cut {
            self.net.cut.insert(who);
        }
    }

    pub(crate) fn pass(&mut self, length: Duration) {
        let end = self.now + length;
        while self.now < end {
            let tick = self.now + Duration::from_secs(1);
            self.now = self.net.next_deadline().min(tick).min(end).max(self.now);
            self.settle();
        }
    }

    /// The amount that all clients together may use, in millionths.
    pub(crate) fn believed(&self) -> u64 {
        believed(&self.clients, self.now)
    }

    /// The amount that the leader of the root has out, in millionths.
    pub(crate) fn out(&self, resource: &ResourceId) -> u128 {
        let books = self.net.net.node(0).and_then(|node| node.books(self.now, resource));
        books.map_or(0, |books| books.total)
    }

    /// The resource at a place, as operators see it.
    pub(crate) fn row(&self, place: usize) -> Option<ResourceRow> {
        let query = StatusQuery { resource: Some(resource().to_string()), ..StatusQuery::default() };
        self.net.net.node(place)?.status(self.now, &query).resources.pop()
    }

    // === what happens at one moment ===

    fn settle(&mut self) {
        for _ in 0..ENDLESS {
            let Village { now, net, clients, grants, peak, .. } = self;
            net.settle(*now, &mut |index, heard| match heard {
                Heard::Action(Action::Change(Change { resource: id, allowance, rung, .. })) => {
                    assert_eq!(id, resource(), "a program hears of what it has opened");
                    (clients[index].allowance, clients[index].rung) = (allowance, rung);
                    *peak = (*peak).max(believed(clients, *now));
                }
                Heard::Event(Event::Down { down: Down::Grants(told), .. }) => *grants += told.len(),
                Heard::Event(_) => {}
                Heard::Action(action) => panic!("nobody tells of domains: {action:?}"),
            });
            if !self.write() {
                return;
            }
        }
        panic!("nobody comes to rest");
    }

    /// Writes what leaders want written. Returns whether it was anything.
    fn write(&mut self) -> bool {
        let mut written = false;
        for (index, place) in self.places.iter_mut().enumerate() {
            let Some(node) = self.net.net.node_mut(index) else { continue };
            while let Some(write) = node.next_marks(self.now) {
                written = true;
                let ticket = write.ticket;
                place.write(write);
                node.on_marks(self.now, ticket, true);
            }
        }
        written
    }
}

/// The amount that clients together may use, in millionths.
fn believed(clients: &[Client], now: Time) -> u64 {
    let live = |client: &&Client| now < client.allowance.until;
    let amount = |client: &Client| client.allowance.capacity.unwrap_or(Amount::MAX).as_micros();
    clients.iter().filter(live).map(amount).sum()
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
