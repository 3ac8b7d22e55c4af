//! Arrivals and losses: messages at either end, the ends of streams, and the ends of leaders.

use lessor_server::record::Record;
use std::collections::BTreeMap;
use std::sync::Arc;

use lessor_client::Failure;
use lessor_client::internals::session;
use lessor_proto::message::{Down, HolderKind, Up};
use lessor_proto::{Amount, Incarnation, ReportId};

use super::bounds::{Bounds, LEASE};
use super::parts::{Actor, Delivery, Kept};
use super::world::{World, grantor, resource};

/// A holder as books know it: whether it is a node, its name, and which life of it.
pub(crate) type Who = (bool, String, Option<Incarnation>);

/// The charges of a node.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Charges {
    pub(crate) of: Vec<(Who, Amount)>,
    pub(crate) ghost: Amount,
    pub(crate) in_debt: bool,
}

// === impl World: what arrives ===

impl World {
    /// A message arrives; it may arrive again if it is kept.
    pub(crate) fn deliver(&mut self, index: usize, kept: bool) {
        let delivery = if kept { Arc::clone(&self.delivery[index]) } else { self.delivery.remove(index) };
        match &**delivery {
            Delivery::Ask { from, id, ask } => {
                let site = grantor(*from, &self.clients);
                let before = self.charges(site);
                let now = self.clock(Actor::Node(site));
                let answer = Kept::change(&mut self.sites[site]).node.ask(now, ask);
                self.watch_books(site, &before);
                if self.awaits(*from, *id)
                    && let Ok(answer) = answer
                {
                    self.delivery.push(Kept::new(Delivery::Answer { to: *from, id: *id, answer }));
                }
                self.pump_site(site);
            }
            Delivery::Release { from, id, release } => {
                let site = grantor(*from, &self.clients);
                let now = self.clock(Actor::Node(site));
                Kept::change(&mut self.sites[site]).node.release(now, release);
                if self.awaits(*from, *id) {
                    self.delivery.push(Kept::new(Delivery::Released { to: *from, id: *id }));
                }
                self.pump_site(site);
            }
            Delivery::Answer { to, id, answer } => {
                let (now, id) = (self.clock(*to), *id);
                self.arriving.clone_from(&answer.grants);
                let answer = answer.clone();
                match *to {
                    Actor::Client(client) => {
                        Kept::change(&mut self.clients[client])
                            .session
                            .handle(now, session::Event::Answered { id: ReportId(id), answer });
                    }
                    Actor::Node(site) => {
                        let node = &mut Kept::change(&mut self.sites[site]).node;
                        node.on_parent(now, session::Event::Answered { id: ReportId(id), answer });
                    }
                }
                self.pump(*to);
            }
            Delivery::Released { to, id } => {
                let (now, id) = (self.clock(*to), *id);
                match *to {
                    Actor::Client(client) => {
                        Kept::change(&mut self.clients[client])
                            .session
                            .handle(now, session::Event::Released { id: ReportId(id), redirect: None });
                    }
                    Actor::Node(site) => {
                        let node = &mut Kept::change(&mut self.sites[site]).node;
                        node.on_parent(now, session::Event::Released { id: ReportId(id), redirect: None });
                    }
                }
                self.pump(*to);
            }
        }
        self.arriving.clear();
    }

    /// Whether a holder may still take the answer to its request `id`.
    fn awaits(&self, actor: Actor, id: u64) -> bool {
        match actor {
            Actor::Client(client) => self.clients[client].alive && self.clients[client].line.last == id,
            Actor::Node(site) => self.sites[site].line.last == id,
        }
    }

    /// The next message up a stream arrives.
    pub(crate) fn arrive_up(&mut self, index: usize) {
        let stream = Kept::change(&mut self.streams[index]);
        let (holder, peer) = (stream.holder, stream.peer);
        let site = grantor(holder, &self.clients);
        let Some(up) = Kept::change(&mut self.streams[index]).up.pop_front() else { return };
        let now = self.clock(Actor::Node(site));
        let before = self.charges(site);
        let node = &mut Kept::change(&mut self.sites[site]).node;
        match (up, peer) {
            (Some(Up::Hello(hello)), _) => {
                let peer = node.connect(now, hello);
                Kept::change(&mut self.streams[index]).peer = Some(peer);
            }
            (Some(up), Some(peer)) => node.receive(now, peer, up),
            (None, Some(peer)) => {
                node.disconnect(now, peer);
                Kept::change(&mut self.streams[index]).peer = None;
            }
            (_, None) => {}
        }
        self.watch_books(site, &before);
        self.pump_site(site);
        self.sweep();
    }

    /// The next message down a stream arrives.
    pub(crate) fn arrive_down(&mut self, index: usize) {
        let stream = Kept::change(&mut self.streams[index]);
        let (holder, id, peer) = (stream.holder, stream.id, stream.peer);
        let Some(down) = stream.down.pop_front() else { return };
        let now = self.clock(holder);
        match down {
            Some(down) => {
                if let Down::Grants(grants) = &down {
                    self.arriving.clone_from(grants);
                }
                match holder {
                    Actor::Client(client) => {
                        Kept::change(&mut self.clients[client])
                            .session
                            .handle(now, session::Event::Down { id, down });
                    }
                    Actor::Node(site) => {
                        let node = &mut Kept::change(&mut self.sites[site]).node;
                        node.on_parent(now, session::Event::Down { id, down });
                    }
                }
                self.pump(holder);
            }
            None => self.lost(index),
        }
        self.arriving.clear();
        if self.slow_reader
            && let Some(peer) = peer
        {
            let site = grantor(holder, &self.clients);
            let now = self.clock(Actor::Node(site));
            Kept::change(&mut self.sites[site]).node.ready(now, peer);
            self.pump_site(site);
        }
    }

    /// The holder finds its stream ended.
    pub(crate) fn lost(&mut self, index: usize) {
        let (holder, id) = (self.streams[index].holder, self.streams[index].id);
        self.hang_up(index);
        let (now, failure) = (self.clock(holder), Failure::Unreachable("it broke".to_owned()));
        match holder {
            Actor::Client(client) => {
                Kept::change(&mut self.clients[client])
                    .session
                    .handle(now, session::Event::Closed { id, failure });
            }
            Actor::Node(site) => {
                let node = &mut Kept::change(&mut self.sites[site]).node;
                node.on_parent(now, session::Event::Closed { id, failure });
            }
        }
        self.pump(holder);
    }

    /// The grantor finds a stream ended. What it has said may still arrive, and then the end.
    pub(crate) fn lost_below(&mut self, index: usize) {
        let stream = Kept::change(&mut self.streams[index]);
        let Some(peer) = stream.peer.take() else { return };
        stream.mute = true;
        stream.up.clear();
        stream.down.push_back(None);
        let site = grantor(self.streams[index].holder, &self.clients);
        let now = self.clock(Actor::Node(site));
        Kept::change(&mut self.sites[site]).node.disconnect(now, peer);
        self.pump_site(site);
        self.sweep();
    }

    /// The leader of a site dies, and another takes over at once, with the record of what was out.
    pub(crate) fn succeed(&mut self, bounds: &Bounds, site: usize) {
        let (rate, epoch) = (self.sites[site].rate, self.sites[site].epoch);
        let outstanding: BTreeMap<_, _> = self.sites[site].node.outstanding(self.clock(Actor::Node(site)));
        let record = Record { marks: outstanding, longest_lease: LEASE, ..Record::default() };
        // Its own requests were its own.
        self.delivery.retain(|delivery| {
            !matches!(&***delivery, Delivery::Answer { to, .. } | Delivery::Released { to, .. } if *to == Actor::Node(site))
        });
        for index in (0..self.streams.len()).rev() {
            if self.streams[index].holder == Actor::Node(site) {
                self.hang_up(index);
            }
        }
        self.lead(bounds, site, epoch + 1, rate, Some(record));
        for stream in &mut self.streams {
            if grantor(stream.holder, &self.clients) == site && stream.peer.is_some() {
                let stream = Kept::change(stream);
                stream.peer = None;
                stream.mute = true;
                stream.up.clear();
                stream.down.push_back(None);
            }
        }
        self.sweep();
        self.pump_site(site);
    }

    /// The charges of a node, each with the holder that it is of.
    pub(crate) fn charges(&self, site: usize) -> Charges {
        let now = self.clock(Actor::Node(site));
        let Some(books) = self.sites[site].node.books(now, &resource()) else { return Charges::default() };
        let children = books.children.iter().map(|child| {
            ((child.kind == HolderKind::Node, child.holder.to_string(), child.incarnation), child.charge)
        });
        Charges { of: children.collect(), ghost: books.ghost, in_debt: books.in_debt }
    }
}
