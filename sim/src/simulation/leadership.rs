//! Epochs: how they begin and end.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lessor_client::Failure;
use lessor_proto::message::{Down, Leader};
use lessor_proto::{Epoch, Time};
use lessor_server::election::state::{Growth, State};
use lessor_server::node::{Node, NodeConfig, ParentConfig, PeerTable};
use lessor_server::record::{Record, Unknown};
use lessor_server::token::{Key, TokenKeys};

use super::lapses::opening;
use super::{Event, Simulation, ToHolder, ToNode};
use crate::actor::Actor;
use crate::directory::Journal;
use crate::open_node::OpenNode;
use crate::plan::Keeps;
use crate::site::{Leadership, LeftBehind};
use crate::stream::StreamRef;
use crate::trace::Happening;

/// The end of an epoch, as those connected hear of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Farewell {
    /// Another leads, or nobody that is known.
    Redirect(Leader),
    /// The process has died: its host says so, or not.
    Crash { said: bool },
    /// The server ends in order.
    Resigned,
}

/// The records that those before a leader have left.
#[derive(Debug)]
pub(super) enum Left {
    /// Nobody writes anything down.
    Nothing,
    /// This stands in the state directory, in which the epoch has begun.
    File { state: Box<State>, record: Box<Record> },
    /// This stood at etcd.
    Elected(Box<Record>),
}

// === impl Left ===

impl Left {
    /// Whether what is out is written down from here on.
    pub(super) fn keeps(&self) -> bool {
        !matches!(self, Left::Nothing)
    }

    /// The last epoch before.
    fn epoch(&self) -> Epoch {
        match self {
            Left::Nothing => Epoch::default(),
            Left::File { record, .. } => record.epoch,
            Left::Elected(read) => read.epoch,
        }
    }
}

// === impl Simulation ===

impl Simulation {
    /// A task leads its site from here on, as far as it has heard. Those before it have `left` this.
    pub(super) fn begin_leadership(&mut self, task: u32, epoch: Epoch, left: Left) {
        let actor = Actor::Task(task);
        let address = self.tree.tasks[task as usize].address.to_string();
        self.end_leadership(task, &Farewell::Redirect(Leader { address: Some(address.clone()) }));
        let site = self.tree.tasks[task as usize].site;
        let is_succession = self.tree.sites[site as usize].epoch > Epoch::default();
        let (keeps, before) = (left.keeps(), left.epoch());
        let (line, journal, record) = self.take_over(task, left, is_succession);
        let learns = is_succession && record.as_ref().is_none_or(|record| record.unknown > Unknown::Nothing);
        let read = record.clone().unwrap_or_default();
        let config = NodeConfig { line, ..self.node_config(task, epoch, keeps, record) };
        let now = self.local(actor);
        let authority = if read.closed { Duration::ZERO } else { read.authority };
        let opens = now + self.rules.drift.stretch(authority);
        let ghost_end = self.ghost_end(now, authority, &read, learns);
        if learns {
            self.learn_until(site, now, ghost_end);
        }
        let rest_end = [read.rest_over.lease, read.rest_over.safe_lease];
        let rest_end = rest_end.map(|over| now + self.rules.drift.stretch(over));
        let heartbeat_slice = config.heartbeat_slice;
        let mut node = Node::new(now, config, self.repository(task));
        if let Some(overrides) = self.followed_overrides(task) {
            node.set_overrides(now, overrides);
        }
        let newest = read.config_version.max(node.repository().version());
        let node = OpenNode::new(node, self.resources.len());
        self.note(actor.who(), Happening::Leads, [epoch.0, before.0, read.closed.into()]);
        let peers = PeerTable::default();
        let found = &mut self.tree.tasks[task as usize];
        found.leadership = Some(Box::new(Leadership {
            node,
            epoch,
            heartbeat_slice,
            peers,
            rights: BTreeMap::new(),
            left: LeftBehind { record: read, opens, ghost_end, rest_end, learns },
            journal,
            waiting: VecDeque::new(),
            writing: None,
            keeps,
            newest,
            made_before: BTreeMap::new(),
        }));
        (found.up, found.knows.address) = (true, Some(address));
        found.process.life += 1;
        let life = found.process.life;
        self.succeed(task, epoch);
        self.count_company(task);
        self.later(Duration::from_secs(1), Event::Tidy(task, life));
    }

    /// The line of the record that was left to a task, its journal and the record, where it knows of one.
    fn take_over(
        &self,
        task: u32,
        left: Left,
        is_succession: bool,
    ) -> (Option<u64>, Option<Journal>, Option<Record>) {
        match left {
            Left::Nothing => (None, None, None),
            Left::File { state, record } => {
                let growth = if self.disk_plan().grows { Growth::from_length(0) } else { Growth::default() };
                (Some(state.line()), Some(Journal::new(*state, growth)), Some(*record))
            }
            Left::Elected(read) => {
                // Where nobody was before, nothing is out, as the operator knows as well.
                let is_known = !read.is_first() || is_succession;
                let line = read.line;
                (Some(line), None, is_known.then(|| self.left_at_etcd(task, *read)))
            }
        }
    }

    /// The time, by the clock of a leader that begins `now`, at which all is over that is out from before.
    fn ghost_end(&self, now: Time, authority: Duration, read: &Record, learns: bool) -> Time {
        let longest = read.longest_lease.max(read.longest_safe_lease);
        // What the node above counts may be out for as long as its own leases last.
        let longest_of_all =
            self.tree.sites.iter().map(|site| site.lengths.longest_lease).max().unwrap_or_default();
        let unknown = if learns { self.rules.drift.stretch(longest_of_all) } else { Duration::ZERO };
        now + self.rules.drift.stretch(authority + longest.max(unknown))
    }

    /// It is not known what is out below a site until then, by the clock of its leader.
    fn learn_until(&mut self, site: u32, now: Time, end: Time) {
        // Its clock may come to run slower; and nodes cut time into ticks of 67 ms.
        let until = self.now + self.rules.drift.stretch(end.since(now) + Duration::from_millis(70));
        let found = &mut self.tree.sites[site as usize];
        found.learns_until = found.learns_until.max(until);
    }

    /// The task is the head of its site, unless it was deposed by hand before it could be told that it leads.
    fn succeed(&mut self, task: u32, epoch: Epoch) {
        let site = self.tree.tasks[task as usize].site;
        let found = &mut self.tree.sites[site as usize];
        if epoch <= found.epoch {
            return;
        }
        (found.head, found.epoch) = (Some(task), epoch);
        if site == 0 {
            self.configured(task, true);
        }
    }

    fn node_config(&mut self, task: u32, epoch: Epoch, marks: bool, record: Option<Record>) -> NodeConfig {
        let hash_seed = self.rng.number();
        let features = self.features(Actor::Task(task));
        let site = self.tree.tasks[task as usize].site;
        let found = &self.tree.sites[site as usize];
        let keeps = found.keeps;
        let mut config = NodeConfig::new(&*found.name, epoch);
        config.drift = self.rules.drift;
        config.hash_seed = hash_seed;
        config.features = features;
        let limits = self.rules.limits;
        config.clients_per_resource = limits.clients.unwrap_or(config.clients_per_resource);
        config.holdings = limits.holdings.unwrap_or(config.holdings);
        config.resources_per_stream = limits.of_stream.unwrap_or(config.resources_per_stream);
        // Every other leader renews one resource of a stream at a time.
        config.heartbeat_slice = if hash_seed.is_multiple_of(2) { config.heartbeat_slice } else { 1 };
        config.record = record;
        config.marks = marks;
        // Whoever takes a directory next knows that the one before has ended.
        config.authority = if keeps == Keeps::File { Duration::ZERO } else { found.lengths.authority };
        config.claims = self.rules.claims;
        config.trust_claims = !self.rules.tokens;
        // Each way of remembering has a key of its own.
        let key = site as u8 ^ if keeps == Keeps::File { 0x80 } else { 0 };
        config.keys = self.rules.tokens.then(|| TokenKeys::new(Key::new([key; 32])));
        config.parent = found.kin.parent.map(|parent| ParentConfig {
            servers: self.addresses_of(parent),
            transport: found.upward.transport,
            eager: self.rules.settings.eager,
        });
        #[cfg(feature = "mutations")]
        {
            config.rules = self.rules.mutation.map(crate::mutation::Mutation::node).unwrap_or_default();
        }
        config
    }

    /// A task leads no more, as it has heard, or is gone; if it did.
    pub(super) fn end_leadership(&mut self, task: u32, farewell: &Farewell) {
        let found = &mut self.tree.tasks[task as usize];
        let Some(leadership) = found.leadership.take() else { return };
        let (site, clock) = (found.site, found.process.clock);
        let why = match farewell {
            Farewell::Redirect(_) => 0,
            Farewell::Crash { .. } => 1,
            Farewell::Resigned => 2,
        };
        self.note(Actor::Task(task).who(), Happening::Falls, [leadership.epoch.0, why, 0]);
        self.oracle.dethrone(task, clock);
        let head = &mut self.tree.sites[site as usize].head;
        head.take_if(|head| *head == task);
        // What it had begun with the node above is over. That of a process which is gone ends otherwise.
        if let Farewell::Redirect(_) = farewell
            && let Some(stream) = self.process_mut(Actor::Task(task)).stream.take()
        {
            self.abandon(stream, true);
        }
        // In the order in which they were opened.
        let mut streams: Vec<_> = leadership.peers.iter().collect();
        streams.sort_unstable_by_key(|&(peer, _)| peer);
        let connected = streams.into_iter().map(|(_, &stream)| stream);
        for stream in connected.chain(opening(leadership.waiting)) {
            match farewell {
                Farewell::Redirect(leader) => self.redirect(stream, leader),
                Farewell::Crash { said } => self.orphan(stream, *said),
                Farewell::Resigned => self.close_down(stream, "the server is ending"),
            }
        }
    }

    /// Something that a process kept back when it died is lost with it.
    pub(super) fn lost_with_process(&mut self, event: &Event, said: bool) {
        // The configuration is that of the site, and found there by whoever leads next.
        let Event::ToNode { delivery, .. } = event else { return };
        match **delivery {
            ToNode::Open { stream, .. } => self.orphan(stream, said),
            ToNode::Gone { stream, .. } => self.streams.node_left(stream),
            _ => {}
        }
    }

    /// The one at the other end is told where to go. Whoever has not read the last message finds that out later.
    fn redirect(&mut self, stream: StreamRef, leader: &Leader) {
        if self.streams.get(stream).is_some_and(|found| found.stalled <= self.now) {
            let down = Down::Redirect(leader.clone());
            self.send_down(stream, ToHolder::Down { stream, down });
        }
        self.close_down(stream, "not the leader");
    }

    /// The task at the other end of a stream is gone.
    pub(super) fn orphan(&mut self, stream: StreamRef, said: bool) {
        if said {
            self.close_down(stream, "connection reset");
            return;
        }
        let Some(found) = self.streams.get_mut(stream) else { return };
        found.down.cut = self.now;
        let holder = found.holder;
        let at = self.rng.time(Duration::from_secs(20), Duration::from_secs(60));
        let failure = Failure::Unreachable("dead in silence".to_owned());
        let delivery = Box::new(ToHolder::Closed { stream, failure, certain: true });
        self.later(at, Event::ToHolder { holder, delivery });
        self.streams.node_left(stream);
    }

    fn count_company(&mut self, task: u32) {
        let (now, site) = (self.now, self.tree.tasks[task as usize].site);
        let acts = |other: u32| other != task && self.tree.tasks[other as usize].acts(now);
        if self.tree.sites[site as usize].tasks.clone().any(acts) {
            self.progress.tally.beside += 1;
        }
    }
}
