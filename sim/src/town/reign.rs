//! Leaders: how they come, how they go, and what a successor is told.

use std::time::Duration;

use lessor_client::session::Failure;
use lessor_proto::Time;
use lessor_server::node::{Node, NodeConfig, ParentConfig, Record};
use lessor_server::token::{Key, Keys};

use super::{Event, ToHolder, ToNode, Town};
use crate::place::Leader;
use crate::process::Party;
use crate::story::{What, Who};
use crate::stream::StreamRef;

// === impl Town ===

impl Town {
    /// The leader of a place dies with all it knew, if there is one. Its task is there again at once, and does not lead.
    pub fn lose_leader(&mut self, place: u32) {
        self.fall(place, true);
    }

    /// Task `task` leads a place from here on, with a greater epoch than anybody before. If another leads, or the same
    /// does, that reign ends, and what it knew is gone.
    pub fn elect(&mut self, place: u32, task: u8) {
        self.fall(place, true);
        let clock = self.places[place as usize].tasks[usize::from(task)].clock;
        let epoch = self.places[place as usize].epoch + 1 + self.dice.below(3);
        let hash_seed = self.dice.number();
        let now = clock.at(self.now);
        let repository = self.repository(place);
        let found = &self.places[place as usize];
        let mut config = NodeConfig::new(&*found.name, epoch);
        config.drift = self.rules.drift;
        config.hash_seed = hash_seed;
        // A task that was there saw when the last leader went.
        let vacant = match found.tasks[usize::from(task)].up {
            true => self.rules.drift.length_until(found.vacant_since, self.now),
            false => Duration::ZERO,
        };
        let read = found.record.clone();
        config.record = Some(Record { vacant, ..read.clone() });
        config.marks = true;
        config.authority = found.authority;
        config.claims = self.rules.claims;
        config.trust_claims = !self.rules.tokens;
        config.keys = self.rules.tokens.then(|| Keys::new(Key::new([place as u8; 32])));
        config.parent = found.parent.map(|parent| ParentConfig {
            servers: self.places[parent as usize].addresses(),
            transport: found.transport,
            eager: self.rules.manners.eager,
        });
        #[cfg(feature = "mutations")]
        {
            config.rules = self.rules.mutation.map(crate::mutation::Mutation::node).unwrap_or_default();
        }
        // What the node itself works out: time without a leader is not waited for again.
        let waited = self.rules.drift.stretch(read.authority).saturating_sub(vacant);
        let opens = now + waited;
        let ghost_end = now + self.rules.drift.stretch(read.authority + read.longest_lease);
        let node = Node::new(now, config, repository);
        let found = &mut self.places[place as usize];
        found.process.renew();
        found.process.clock = clock;
        found.epoch = epoch;
        found.rumour = Some(task);
        found.tasks[usize::from(task)].up = true;
        let peers = std::collections::BTreeMap::new();
        found.leader = Some(Box::new(Leader { node, task, peers, read, opens, ghost_end }));
        self.note(Who::Place(place), What::Leads, [epoch, task.into(), 0]);
        if place == 0 {
            self.configured(true);
        }
        let reign = self.places[place as usize].process.life;
        self.later(Duration::from_secs(1), Event::Tidy(place, reign));
        self.drive_place(place);
    }

    /// A reign ends; those connected hear of it, or not.
    pub(super) fn fall(&mut self, place: u32, said: bool) {
        let Some(leader) = self.places[place as usize].leader.take() else { return };
        self.note(Who::Place(place), What::Falls, [self.places[place as usize].epoch, said.into(), 0]);
        self.oracle.dethrone(place, self.places[place as usize].process.clock);
        let found = &mut self.places[place as usize];
        found.vacant_since = self.now;
        let upwards = found.process.stream.take();
        let frozen = found.process.frozen.take();
        for stream in leader.peers.into_values() {
            self.orphan(stream, said);
        }
        for event in frozen.into_iter().flat_map(|frozen| frozen.backlog) {
            match event {
                Event::ToNode { mail: ToNode::Open { stream, .. }, .. } => self.orphan(stream, said),
                Event::ToNode { mail: ToNode::Gone { stream, .. }, .. } => self.streams.node_left(stream),
                // The configuration is that of the place, and found there by whoever leads next.
                _ => {}
            }
        }
        if let Some(stream) = upwards {
            self.abandon(stream, said);
        }
    }

    /// The leader at the other end of a stream is gone.
    fn orphan(&mut self, stream: StreamRef, said: bool) {
        if said {
            self.close_down(stream, "connection reset");
            return;
        }
        let Some(found) = self.streams.get_mut(stream) else { return };
        found.down_cut = self.now;
        let holder = found.holder;
        let at = self.dice.time(Duration::from_secs(20), Duration::from_secs(60));
        let failure = Failure::Unreachable("dead in silence".to_owned());
        self.later(at, Event::ToHolder { holder, mail: ToHolder::Closed { stream, failure, certain: true } });
        self.streams.node_left(stream);
    }

    /// A place without a leader gets one of its tasks.
    pub(super) fn elect_any(&mut self, place: u32) {
        if self.places[place as usize].leader.is_none() {
            let task = self.dice.index(self.places[place as usize].tasks.len()) as u8;
            self.elect(place, task);
        }
        self.places[place as usize].tasks.iter_mut().for_each(|task| task.up = true);
    }

    /// The leader hears of the configuration in force.
    pub(super) fn reload(&mut self, place: u32) {
        if self.places[place as usize].leader.is_none() {
            return;
        }
        let repository = self.repository(place);
        let now = self.local(Party::Place(place));
        self.node(place).reload(now, repository);
        if place == 0 {
            self.configured(false);
        }
        self.drive_place(place);
    }

    /// The root acts by the configuration in force from here on; a new leader of it does not know which leases are
    /// reduced already.
    fn configured(&mut self, succession: bool) {
        let longest = self.places[0].longest_lease + self.places[0].authority;
        let patience = self.rules.drift.stretch(self.rules.drift.stretch(longest));
        for (index, resource) in self.resources.iter().enumerate() {
            let capacity = if resource.covered { resource.capacity.as_micros() } else { 0 };
            self.oracle.limit(index, capacity, self.now + patience, succession);
        }
    }

    /// Everybody hears of another configuration, each a little later or earlier.
    pub(super) fn spread_configuration(&mut self) {
        for place in 0..self.places.len() as u32 {
            let at = self.dice.time(Duration::ZERO, Duration::from_secs(1));
            self.later(at, Event::Reload(place));
        }
    }

    /// Whether something may be out under the reigns before this one. Nodes cut time into ticks of 67 ms.
    pub(crate) fn is_haunted(&self, place: u32) -> bool {
        let now: Time = self.local(Party::Place(place));
        let tick = Duration::from_millis(70);
        self.places[place as usize].leader.as_ref().is_some_and(|leader| now < leader.ghost_end + tick)
    }
}
