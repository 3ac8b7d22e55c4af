//! A network of real nodes: the streams that holders have to them, and nodes to the ones above.
//!
//! A [`Net`] carries out at a node what a holder asks for, and gives back what is to arrive elsewhere: going up that is an
//! [`Action`] of a session, coming down an [`Event`] for one. When it arrives, and whether, is up to the world around it:
//! after a delay, never, or at once, as in a [`StillNet`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lessor_client::Failure;
use lessor_client::internals::session::{Action, Event, Session};
use lessor_proto::Time;
use lessor_proto::message::Up;
use lessor_server::node::{Node, NodeConfig, Output, Peer};
use lessor_server::repository::Repository;

/// One end of a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Endpoint {
    /// A holder outside of the network, by its number.
    Holder(usize),
    /// A node, by its number, that asks the one above.
    Node(usize),
}

/// A message on its way.
#[derive(Debug)]
pub enum NetMessage {
    /// The action of an endpoint, on its way to the node above it.
    Up(Endpoint, Action),
    /// An event for an endpoint, on its way from there.
    Down(Endpoint, Event),
}

/// Nodes, and who is connected with them.
#[derive(Default)]
pub struct Net {
    sites: Vec<NetSite>,
    /// The node that each holder asks.
    homes: Vec<usize>,
    /// The peer of each stream at the node above, by its number at the other end.
    streams: BTreeMap<(Endpoint, u64), Peer>,
}

/// A node, or the site of one that is lost.
#[derive(Default)]
struct NetSite {
    node: Option<Node>,
    /// The node above.
    parent: Option<usize>,
    peers: BTreeMap<Peer, (Endpoint, u64)>,
}

/// A net on which messages take no time, and the sessions of the holders.
#[derive(Default)]
pub struct StillNet {
    /// The nodes.
    pub net: Net,
    /// The session of each holder.
    pub sessions: Vec<Session>,
    /// The endpoints that are cut off: nobody hears of them, nor they of anybody.
    pub cut: BTreeSet<Endpoint>,
    messages: VecDeque<NetMessage>,
}

/// The most messages at one moment.
const ENDLESS: usize = 2_000_000;

// === impl Net ===

impl Net {
    /// A network of sites whose nodes ask those of the numbers `parents`, and of no node yet.
    #[must_use]
    pub fn new(parents: &[Option<usize>]) -> Net {
        let site = |&parent: &Option<usize>| NetSite { parent, ..NetSite::default() };
        Net { sites: parents.iter().map(site).collect(), ..Net::default() }
    }

    /// The number of sites.
    #[must_use]
    pub fn sites(&self) -> usize {
        self.sites.len()
    }

    /// The node at a site; absent where it is lost.
    #[must_use]
    pub fn node(&self, site: usize) -> Option<&Node> {
        self.sites[site].node.as_ref()
    }

    /// The same, to be changed.
    pub fn node_mut(&mut self, site: usize) -> Option<&mut Node> {
        self.sites[site].node.as_mut()
    }

    /// The site that the node of a site asks.
    #[must_use]
    pub fn parent(&self, site: usize) -> Option<usize> {
        self.sites[site].parent
    }

    /// Another holder, which asks the node at `home`. Returns its number.
    pub fn add_holder(&mut self, home: usize) -> usize {
        self.homes.push(home);
        self.homes.len() - 1
    }

    /// The site that an endpoint asks.
    ///
    /// # Panics
    /// When that is a node that asks nobody.
    #[must_use]
    pub fn home(&self, endpoint: Endpoint) -> usize {
        match endpoint {
            Endpoint::Holder(holder) => self.homes[holder],
            Endpoint::Node(site) => self.sites[site].parent.expect("a root asks nobody"),
        }
    }

    /// A node begins at a site, in place of the one that is lost.
    pub fn begin(&mut self, now: Time, site: usize, config: NodeConfig, repository: Repository) {
        self.sites[site].node = Some(Node::new(now, config, repository));
    }

    /// The node at a site is lost, and the streams with it. Returns the ends of those that go to it, and of its own.
    pub fn lose(&mut self, site: usize) -> Vec<NetMessage> {
        self.sites[site].node = None;
        let peers = std::mem::take(&mut self.sites[site].peers);
        let end = |(endpoint, id)| {
            self.streams.remove(&(endpoint, id));
            NetMessage::Down(endpoint, Event::Closed { id, failure: refused() })
        };
        let mut ends: Vec<NetMessage> = peers.into_values().map(end).collect();
        let own = Endpoint::Node(site);
        let up = self.streams.range((own, 0)..=(own, u64::MAX));
        ends.extend(up.map(|(&(_, id), _)| NetMessage::Up(own, Action::Disconnect { id })));
        ends
    }

    /// The action of an endpoint arrives at the node above it. Returns the event that answers it, if one does at once.
    ///
    /// # Panics
    /// When it is one for the program behind a session.
    pub fn take_up(&mut self, now: Time, from: Endpoint, action: Action) -> Option<Event> {
        let home = self.home(from);
        let node = self.sites[home].node.as_mut();
        match action {
            Action::Connect { id, hello, .. } => match node {
                Some(node) => {
                    let peer = node.connect(now, hello);
                    self.sites[home].peers.insert(peer, (from, id));
                    self.streams.insert((from, id), peer);
                    None
                }
                None => Some(Event::Closed { id, failure: refused() }),
            },
            Action::Send { id, up } => self.take_message(now, from, id, up),
            Action::Disconnect { id } => {
                self.hang_up(now, from, id);
                None
            }
            Action::Ask { id, ask, .. } => Some(match node {
                Some(node) => match node.ask(now, &ask) {
                    Ok(answer) => Event::Answered { id, answer },
                    Err(refusal) => Event::Failed { id, failure: Failure::Refused(refusal.to_string()) },
                },
                None => Event::Failed { id, failure: refused() },
            }),
            Action::Release { id, release, .. } => Some(match node {
                Some(node) => {
                    node.release(now, &release);
                    Event::Released { id, redirect: None }
                }
                None => Event::Failed { id, failure: refused() },
            }),
            Action::Change(_) | Action::News(_) => panic!("for the program: {action:?}"),
        }
    }

    fn take_message(&mut self, now: Time, from: Endpoint, id: u64, up: Up) -> Option<Event> {
        let home = self.home(from);
        match (&mut self.sites[home].node, self.streams.get(&(from, id))) {
            (Some(node), Some(&peer)) => {
                node.receive(now, peer, up);
                None
            }
            _ => Some(Event::Closed { id, failure: refused() }),
        }
    }

    fn hang_up(&mut self, now: Time, from: Endpoint, id: u64) {
        let Some(peer) = self.streams.remove(&(from, id)) else { return };
        let home = self.home(from);
        self.sites[home].peers.remove(&peer);
        if let Some(node) = &mut self.sites[home].node {
            node.disconnect(now, peer);
        }
    }

    /// An event arrives at `to`: the node above learns that its stream takes more. Returns the event if it is for a holder.
    pub fn take_down(&mut self, now: Time, to: Endpoint, event: Event) -> Option<Event> {
        if let Event::Down { id, .. } = &event {
            self.read(now, to, *id);
        }
        match to {
            Endpoint::Holder(_) => Some(event),
            Endpoint::Node(site) => {
                if let Some(node) = &mut self.sites[site].node {
                    node.on_parent(now, event);
                }
                None
            }
        }
    }

    /// `to` has read what was sent down its stream `id`.
    pub fn read(&mut self, now: Time, to: Endpoint, id: u64) {
        let home = self.home(to);
        if let (Some(node), Some(&peer)) = (&mut self.sites[home].node, self.streams.get(&(to, id))) {
            node.ready(now, peer);
        }
    }

    /// The node at a site does what is due. Returns all that it has to say.
    pub fn serve(&mut self, now: Time, site: usize) -> Vec<NetMessage> {
        let NetSite { node, peers, .. } = &mut self.sites[site];
        let Some(node) = node else { return Vec::new() };
        node.advance(now);
        let mut messages = Vec::new();
        while let Some(output) = node.poll(now) {
            match output {
                Output::Send { peer, down: message } => {
                    let event =
                        |&(to, id): &(Endpoint, u64)| NetMessage::Down(to, Event::Down { id, down: message });
                    messages.extend(peers.get(&peer).map(event));
                }
                Output::Close { peer } => {
                    let event = |&(to, id): &(Endpoint, u64)| {
                        NetMessage::Down(to, Event::Closed { id, failure: refused() })
                    };
                    messages.extend(peers.get(&peer).map(event));
                }
                Output::Parent(action) => messages.push(NetMessage::Up(Endpoint::Node(site), action)),
            }
        }
        messages
    }

    /// When the node at a site has something to do by itself.
    #[must_use]
    pub fn next_deadline(&self, site: usize) -> Option<Time> {
        self.sites[site].node.as_ref()?.next_deadline()
    }
}

// === impl StillNet ===

impl StillNet {
    /// A net of sites whose nodes ask those of the numbers `parents`, and of no node and no holder yet.
    #[must_use]
    pub fn new(parents: &[Option<usize>]) -> StillNet {
        StillNet { net: Net::new(parents), ..StillNet::default() }
    }

    /// Another holder, which asks the node at `home`. Returns its number.
    pub fn add(&mut self, home: usize, session: Session) -> usize {
        self.sessions.push(session);
        self.net.add_holder(home)
    }

    /// The next time at which a node or a session has something to do by itself.
    #[must_use]
    pub fn next_deadline(&self) -> Time {
        let nodes = (0..self.net.sites()).filter_map(|site| self.net.next_deadline(site));
        let sessions = self.sessions.iter().map(Session::next_deadline);
        nodes.chain(sessions).min().unwrap_or(Time::MAX)
    }

    /// The node at a site is lost, and those connected with it find that out.
    pub fn lose(&mut self, site: usize) {
        let ends = self.net.lose(site);
        self.messages.extend(ends);
    }

    /// Everything that is to be said at `now` is said, and arrives. What is for the program behind a session goes to `program`,
    /// and so does a look at each message that arrives at one.
    ///
    /// # Panics
    /// When it does not come to an end.
    pub fn settle(&mut self, now: Time, program: &mut impl FnMut(usize, Heard<'_>)) {
        for _ in 0..ENDLESS {
            if let Some(message) = self.messages.pop_front() {
                self.arrive(now, message, program);
            } else if !self.say(now, program) {
                return;
            }
        }
        panic!("nobody comes to rest");
    }

    /// Takes out what everybody has to say. Returns whether it was anything.
    fn say(&mut self, now: Time, program: &mut impl FnMut(usize, Heard<'_>)) -> bool {
        let mut said = false;
        for holder in 0..self.sessions.len() {
            while let Some(action) = self.sessions[holder].poll(now) {
                said = true;
                match action {
                    Action::Change(_) | Action::News(_) => program(holder, Heard::Action(action)),
                    action => self.messages.push_back(NetMessage::Up(Endpoint::Holder(holder), action)),
                }
            }
        }
        for site in 0..self.net.sites() {
            let messages = self.net.serve(now, site);
            said |= !messages.is_empty();
            self.messages.extend(messages);
        }
        said
    }

    fn arrive(&mut self, now: Time, message: NetMessage, program: &mut impl FnMut(usize, Heard<'_>)) {
        match message {
            // Nobody hears of one that is cut off, also not that its stream has ended.
            NetMessage::Up(from, _) if self.cut.contains(&from) => {}
            NetMessage::Up(from, action) => {
                let answer = self.net.take_up(now, from, action);
                self.messages.extend(answer.map(|event| NetMessage::Down(from, event)));
            }
            NetMessage::Down(to, event) if self.cut.contains(&to) => {
                // It was written, and lies on the way.
                if let Event::Down { id, .. } = event {
                    self.net.read(now, to, id);
                }
            }
            NetMessage::Down(to, event) => {
                let Some(event) = self.net.take_down(now, to, event) else { return };
                let Endpoint::Holder(holder) = to else { return };
                program(holder, Heard::Event(&event));
                self.sessions[holder].handle(now, event);
            }
        }
    }
}

/// Something that the program behind a session hears.
#[derive(Debug)]
pub enum Heard<'a> {
    /// The session says it: a change, or news of domains.
    Action(Action),
    /// It comes from the server, and the session is going to handle it.
    Event(&'a Event),
}

/// Why a stream or a request has come to nothing.
fn refused() -> Failure {
    Failure::Unreachable("connection refused".to_owned())
}
