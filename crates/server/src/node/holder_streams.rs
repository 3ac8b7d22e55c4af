//! The streams of the holders of a node: who is connected, and what of each waits for its turn.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_proto::message::{Hello, HolderKind};
use lessor_proto::{ClientId, Incarnation, ResourceId, Time};

use super::ends::EndedStream;
use super::heartbeats::Heartbeats;
use super::line::WorkLine;
use super::looks::Lookers;
use super::waiting::Waiting;
use crate::config::NodeConfig;
use crate::jobs::JobBoard;
use crate::resource::earliest;
use crate::streams::{Peer, Peers, Stream};

/// All streams of holders, and the work that is left to be done for them.
#[derive(Clone, Debug)]
pub(super) struct HolderStreams {
    pub(super) peers: Peers,
    /// The stream of each life of each holder.
    by_holder: BTreeMap<(HolderKind, ClientId, Incarnation), Peer>,
    /// The interval at which streams should be heard of.
    pub(super) heartbeat: Duration,
    pub(super) heartbeats: Heartbeats,
    /// The streams of which resources are left to be looked at.
    pub(super) resuming: WorkLine<Peer>,
    /// Claims that wait for a write.
    pub(super) waiting: Waiting,
    /// The looks of operators, which go down the streams of nodes.
    pub(super) lookers: Lookers,
    /// Those that have to be looked at because overrides have changed, each with the resource that was looked at last.
    pub(super) sweep: WorkLine<(Peer, Option<ResourceId>)>,
    /// Those that have ended, of which there is something left to be done.
    pub(super) ended: WorkLine<EndedStream>,
    /// The jobs of resources for which somebody has waited.
    pub(super) jobs: BTreeMap<ResourceId, JobBoard>,
    /// The resources of whose jobs there is more to say.
    pub(super) job_words: WorkLine<ResourceId>,
}

// === impl HolderStreams ===

impl HolderStreams {
    /// None, of which each should be heard of at that interval.
    pub(super) fn new(config: &NodeConfig, heartbeat: Duration) -> HolderStreams {
        HolderStreams {
            peers: Peers::new(config.features, config.rules),
            by_holder: BTreeMap::new(),
            heartbeat,
            heartbeats: Heartbeats::default(),
            resuming: WorkLine::default(),
            waiting: Waiting::default(),
            lookers: Lookers::default(),
            sweep: WorkLine::default(),
            ended: WorkLine::default(),
            jobs: BTreeMap::new(),
            job_words: WorkLine::default(),
        }
    }

    /// Opens a stream. Returns the one that the same life of the same holder had before, as well.
    pub(super) fn open(&mut self, hello: Hello) -> (Peer, Option<Peer>) {
        let key = (hello.kind, hello.holder.clone(), hello.incarnation);
        let peer = self.peers.open(hello);
        (peer, self.by_holder.insert(key, peer))
    }

    /// The stream of a life of a holder.
    pub(super) fn of_life(&self, kind: HolderKind, holder: ClientId, life: Incarnation) -> Option<Peer> {
        self.by_holder.get(&(kind, holder, life)).copied()
    }

    /// Forgets what waits of a stream that is gone.
    pub(super) fn forget(&mut self, peer: Peer, stream: &Stream) {
        self.heartbeats.forget(peer, stream);
        self.waiting.forget(peer, None);
        let hello = &stream.hello;
        let key = (hello.kind, hello.holder.clone(), hello.incarnation);
        if self.by_holder.get(&key) == Some(&peer) {
            self.by_holder.remove(&key);
        }
    }

    /// Whether a heartbeat is to be gone on with, or something that was put off for a stream.
    pub(super) fn is_look_due(&self, now: Time) -> bool {
        self.heartbeats.is_due(now)
            || self.resuming.is_any()
            || self.job_words.is_any()
            || self.sweep.is_any()
            || self.ended.is_any()
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let (waiting, heartbeats) = (self.waiting.next_deadline(), self.heartbeats.next_deadline());
        let (resuming, job_words) = (self.resuming.next_deadline(), self.job_words.next_deadline());
        let (sweep, ended) = (self.sweep.next_deadline(), self.ended.next_deadline());
        earliest([waiting, heartbeats, resuming, job_words, sweep, ended])
    }
}
