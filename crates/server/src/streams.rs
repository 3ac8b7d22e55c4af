//! The streams of a node: who is at the other end, and what waits to be sent.
//!
//! Of every stream at most one message is outside the node at a time. What is due to a holder whose stream does not take
//! it is not computed, only noted; when the stream takes something again the holder gets what is due to it then. So a slow
//! reader makes nothing grow, and what reaches it is never older than the last message it took.

mod attached;
mod beats;
mod noted;
mod peer;
mod peer_table;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use lessor_client::internals::session::Action;
use lessor_proto::message::{Down, Grant, Hello, HolderKind, JobNews};
use lessor_proto::{ClientId, Features, ReportId, ResourceId, Time};

use crate::mutation::{Rule, Rules};

pub(crate) use self::attached::Attached;
use self::beats::Beats;
pub(crate) use self::beats::{Beat, BeatRun};
use self::noted::Noted;
pub use self::peer::Peer;
pub use self::peer_table::PeerTable;

/// An output of a node.
#[derive(Clone, PartialEq, Debug)]
pub enum Output {
    /// Send down a stream. Nothing more comes out for it until [`Node::ready`](crate::node::Node::ready).
    Send {
        /// Which stream.
        peer: Peer,
        /// The message to send.
        down: Down,
    },
    /// The node has dropped the stream: end it after what was sent before.
    Close {
        /// Which stream.
        peer: Peer,
    },
    /// Do this with the node above.
    Parent(Action),
}

/// All streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peers {
    peers: PeerTable<Stream>,
    /// Places of streams that have ended.
    free: Vec<u32>,
    /// Those that were ever taken.
    places: u32,
    /// The streams of nodes.
    nodes: BTreeSet<Peer>,
    /// Streams with something to send that take it, the oldest first; and some that have ended since.
    sendable: BinaryHeap<Reverse<Peer>>,
    /// The number of streams that take nothing while something waits for them.
    waiting: usize,
    /// Dropped, and not said so yet.
    closing: VecDeque<Peer>,
    last: u64,
    /// The kinds of message that this node says.
    features: Features,
    /// The streams of holders that know fewer than this version does.
    older: usize,
    /// The round of renewals.
    round: u32,
    rules: Rules,
}

/// One stream.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) hello: Hello,
    /// The resources that are granted on it: those with a listener.
    pub(crate) attached: Attached,
    /// The resources that its holder may hold no more: hardly ever any.
    pub(crate) revoked: Attached,
    /// The resources of which an override lets its holder have nothing, and of which it is not heard what it wants: hardly ever
    /// any.
    pub(crate) drained: Attached,
    queue: Queue,
    /// A message is on its way out.
    busy: bool,
    /// Something waits until it has left.
    is_awaited: bool,
    /// It stands among those that have something to send.
    is_sendable: bool,
    /// Resources to look at when it takes something again.
    noted: Noted,
    /// It stands in the line of those of which resources are being looked at.
    is_resuming: bool,
    /// The heartbeats that wait, for that among others.
    pub(crate) beats: Beats,
    /// Grants given to it so far.
    grants: u64,
}

/// Messages that wait: hardly ever more than one.
#[derive(Clone, Default, Debug)]
struct Queue {
    first: Option<Down>,
    rest: VecDeque<Down>,
}

/// Messages that may wait on a stream whose other end sends without reading; with more it is dropped.
const MOST_WAITING: usize = 64;

/// Resources of whose jobs one message speaks at the most.
const MOST_JOBS: usize = 256;

// === impl Peers ===

impl Peers {
    /// None, of a node of these features.
    pub(crate) fn new(features: Features, rules: Rules) -> Peers {
        Peers { features, rules, ..Peers::default() }
    }

    pub(crate) fn open(&mut self, hello: Hello) -> Peer {
        self.last += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.places += 1;
            self.places - 1
        });
        let peer = Peer::new(self.last, place);
        let stream = Stream {
            hello,
            attached: Attached::default(),
            revoked: Attached::default(),
            drained: Attached::default(),
            queue: Queue::default(),
            busy: false,
            is_awaited: false,
            is_sendable: false,
            noted: Noted::default(),
            is_resuming: false,
            beats: Beats::default(),
            grants: 0,
        };
        if stream.hello.kind == HolderKind::Node {
            self.nodes.insert(peer);
        }
        self.older += usize::from(!stream.hello.features.is_current());
        self.peers.insert(peer, stream);
        peer
    }

    pub(crate) fn len(&self) -> usize {
        self.peers.len()
    }

    /// The number of streams of holders of an earlier version, which know fewer kinds of message.
    pub(crate) fn older(&self) -> usize {
        self.older
    }

    /// The streams, and who is at the other end of each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Peer, &Stream)> {
        self.peers.iter()
    }

    pub(crate) fn get(&self, peer: Peer) -> Option<&Stream> {
        self.peers.get(peer)
    }

    pub(crate) fn get_mut(&mut self, peer: Peer) -> Option<&mut Stream> {
        self.peers.get_mut(peer)
    }

    /// The streams of nodes, and their names.
    pub(crate) fn nodes(&self) -> Vec<(Peer, ClientId)> {
        let name = |&peer: &Peer| Some((peer, self.peers.get(peer)?.hello.holder.clone()));
        self.nodes.iter().filter_map(name).collect()
    }

    /// The other end is gone.
    pub(crate) fn remove(&mut self, peer: Peer) -> Option<Stream> {
        let stream = self.peers.remove(peer)?;
        self.nodes.remove(&peer);
        self.waiting -= usize::from(stream.is_awaited);
        self.older -= usize::from(!stream.hello.features.is_current());
        Some(stream)
    }

    /// Nothing is left of a stream that has ended: another one may have its place.
    pub(crate) fn leave_place(&mut self, peer: Peer) {
        self.free.push(peer.place());
    }

    /// The stream is dropped by this end.
    pub(crate) fn close(&mut self, peer: Peer) -> Option<Stream> {
        let stream = self.remove(peer)?;
        self.closing.push_back(peer);
        Some(stream)
    }

    /// Whether `peer` takes a grant of `resource`. If not, it is asked for again when it does.
    pub(crate) fn takes(&mut self, peer: Peer, resource: &ResourceId) -> bool {
        let Some(stream) = self.peers.get_mut(peer) else { return false };
        if stream.busy {
            stream.noted.insert(resource);
            stream.wait(&mut self.waiting);
        }
        !stream.busy
    }

    /// Whether something waits for a stream that takes nothing.
    pub(crate) fn is_any_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Whether there may be something to send, or to end.
    pub(crate) fn is_any_sendable(&self) -> bool {
        !self.sendable.is_empty() || !self.closing.is_empty()
    }

    pub(crate) fn is_busy(&self, peer: Peer) -> bool {
        self.peers.get(peer).is_some_and(Stream::is_busy)
    }

    /// Sends a grant that is to be renewed by then.
    pub(crate) fn grant(&mut self, peer: Peer, grant: Grant, renew_by: Time) {
        let Some(stream) = self.peers.get_mut(peer) else { return };
        stream.grants += 1;
        stream.beats.renew_no_later(renew_by);
        match stream.queue.last_mut() {
            Some(Down::Grants(grants)) => grants.push(grant),
            _ => stream.queue.push(Down::Grants(vec![grant])),
        }
        self.queued(peer);
    }

    /// Says something of a job, with what waits to be said of others. It is left out where too much waits, and where the other end
    /// does not know of jobs.
    pub(crate) fn tell_of_job(&mut self, peer: Peer, news: JobNews) {
        let waiting = self.peers.get_mut(peer).and_then(|stream| stream.queue.last_mut());
        match waiting {
            Some(Down::Jobs(waiting)) if waiting.len() < MOST_JOBS => {
                match waiting.iter_mut().find(|of| of.resource == news.resource) {
                    Some(of) => (of.done, of.asks) = (news.done.or(of.done), news.asks.or(of.asks)),
                    None => waiting.push(news),
                }
            }
            _ => _ = self.say(peer, Down::Jobs(vec![news])),
        }
    }

    /// Everything granted on the stream lasts longer, counted from heartbeat `basis`.
    pub(crate) fn renewed(&mut self, peer: Peer, basis: ReportId) {
        if let Some(grants) = self.peers.get(peer).map(|stream| stream.grants) {
            self.say(peer, Down::Renewed { basis, grants });
        }
    }

    /// All that is granted on the stream is renewed by then.
    pub(crate) fn renew_no_later(&mut self, peer: Peer, than: Time) {
        if let Some(stream) = self.peers.get_mut(peer) {
            stream.beats.renew_no_later(than);
        }
    }

    /// All that is granted on streams is renewed with their next heartbeats.
    pub(crate) fn renew_soon(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// The round of renewals: what was renewed in an earlier one is to be renewed with the next heartbeat.
    pub(crate) fn round(&self) -> u32 {
        self.round
    }

    /// Sends something, in the way in which the other end knows it; what it could not know is not sent. All but grants goes
    /// through here. Returns whether the stream is still there: one that sends and never reads is dropped.
    pub(crate) fn say(&mut self, peer: Peer, down: Down) -> bool {
        let Some(stream) = self.peers.get_mut(peer) else { return false };
        if stream.queue.len() >= MOST_WAITING {
            return false;
        }
        let known = match self.rules.keep(Rule::KnownKinds) {
            true => self.features.and(stream.hello.features),
            false => self.features,
        };
        let Some(down) = down.known_by(known) else { return true };
        stream.queue.push(down);
        self.queued(peer);
        true
    }

    /// Something waits to be sent down a stream.
    fn queued(&mut self, peer: Peer) {
        let Some(stream) = self.peers.get_mut(peer) else { return };
        if stream.busy {
            stream.wait(&mut self.waiting);
        } else if !std::mem::replace(&mut stream.is_sendable, true) {
            self.sendable.push(Reverse(peer));
        }
    }

    /// The stream takes something again. Returns the number of resources that were noted for it, if nothing waits before them.
    pub(crate) fn ready(&mut self, peer: Peer) -> Option<usize> {
        let stream = self.peers.get_mut(peer)?;
        stream.busy = false;
        self.waiting -= usize::from(std::mem::take(&mut stream.is_awaited));
        if stream.queue.len() > 0 {
            self.queued(peer);
            return None;
        }
        Some(stream.noted.len())
    }

    /// Takes so many of the resources that were noted for a stream, and its heartbeat with the last of each round.
    pub(crate) fn take_noted(&mut self, peer: Peer, most: usize) -> PutOff {
        let Some(stream) = self.peers.get_mut(peer) else { return PutOff::default() };
        let slice = stream.noted.take(most);
        let heartbeat = if slice.ends_round { stream.beats.take() } else { None };
        PutOff { resources: slice.resources, heartbeat }
    }

    /// Whether resources are noted for a stream.
    pub(crate) fn is_any_noted(&self, peer: Peer) -> bool {
        self.peers.get(peer).is_some_and(|stream| !stream.noted.is_empty())
    }

    /// Whether the stream does not stand in the line yet of those of which resources are being looked at. It does from here on.
    pub(crate) fn is_first_to_resume(&mut self, peer: Peer) -> bool {
        let stream = self.peers.get_mut(peer);
        stream.is_some_and(|stream| !std::mem::replace(&mut stream.is_resuming, true))
    }

    /// The stream stands in that line no more. Returns whether it is gone on with: one that takes nothing has to be ready first.
    pub(crate) fn goes_on(&mut self, peer: Peer) -> bool {
        let Some(stream) = self.peers.get_mut(peer) else { return false };
        stream.is_resuming = false;
        !stream.busy
    }

    /// A heartbeat that cannot be answered now. An earlier one need not be answered any more.
    pub(crate) fn note_heartbeat(&mut self, peer: Peer, beat: Beat) {
        if let Some(stream) = self.peers.get_mut(peer) {
            stream.beats.wait(beat);
            stream.wait(&mut self.waiting);
        }
    }

    /// The next thing to send, or to end.
    pub(crate) fn poll(&mut self) -> Option<Output> {
        while let Some(Reverse(peer)) = self.sendable.pop() {
            let Some(stream) = self.peers.get_mut(peer) else { continue };
            let down = stream.queue.pop().expect("what is sendable has something to send");
            (stream.busy, stream.is_sendable) = (true, false);
            if stream.queue.len() > 0 || !stream.noted.is_empty() {
                stream.wait(&mut self.waiting);
            }
            return Some(Output::Send { peer, down });
        }
        self.closing.pop_front().map(|peer| Output::Close { peer })
    }
}

// === impl Stream ===

impl Stream {
    /// Whether a message is on its way out.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    /// The number of grants that wait until it takes something.
    pub(crate) fn waiting_grants(&self) -> usize {
        let grants = |down: &Down| if let Down::Grants(grants) = down { grants.len() } else { 0 };
        self.queue.first.iter().chain(&self.queue.rest).map(grants).sum()
    }

    /// Something waits until its message has left.
    fn wait(&mut self, waiting: &mut usize) {
        *waiting += usize::from(!self.is_awaited);
        self.is_awaited = true;
    }
}

// === impl Queue ===

impl Queue {
    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    fn last_mut(&mut self) -> Option<&mut Down> {
        self.rest.back_mut().or(self.first.as_mut())
    }

    fn push(&mut self, down: Down) {
        match &self.first {
            None => self.first = Some(down),
            Some(_) => self.rest.push_back(down),
        }
    }

    fn pop(&mut self) -> Option<Down> {
        let next = self.rest.pop_front();
        if self.rest.is_empty() {
            self.rest = VecDeque::new();
        }
        std::mem::replace(&mut self.first, next)
    }
}

/// The work that was put off while a stream took nothing.
#[derive(Debug, Default)]
pub(crate) struct PutOff {
    pub(crate) resources: Vec<ResourceId>,
    pub(crate) heartbeat: Option<Beat>,
}

#[cfg(test)]
mod tests {
    use lessor_proto::Incarnation;

    use super::*;

    #[test]
    fn a_place_is_another_streams_when_nothing_is_left_of_the_one_before() {
        let mut peers = Peers::default();
        let open = |peers: &mut Peers, name: &str| {
            peers.open(Hello::new(HolderKind::Client, ClientId::new(name, 16).unwrap(), Incarnation(1)))
        };
        let (first, second) = (open(&mut peers, "a"), open(&mut peers, "b"));
        peers.remove(first).unwrap();
        let third = open(&mut peers, "c");
        assert_eq!([first, second, third].map(Peer::place), [0, 1, 2]);
        peers.leave_place(first);
        assert_eq!(open(&mut peers, "d").place(), first.place());
        assert_eq!(open(&mut peers, "e").place(), 3);
    }
}
