//! The state behind the lock: the node, and the mailboxes of those who are connected to it.

use std::sync::Arc;

use arc_swap::ArcSwap;
use lessor_client::internals::clock;
use lessor_client::internals::session::{self, Action};
use lessor_proto::message::{Down, Hello, HolderKind, Leader, Refusal};
use lessor_proto::{Epoch, Time};
use tokio::sync::mpsc;
use tracing::{error, warn};

use super::domains::Notice;
use super::looks::LookNotice;
use super::mailbox::Mailbox;
use super::stream_key::StreamKey;
use crate::marks::MarkWrite;
use crate::node::{LearningTimes, NameWarning, Node, Output, Peer, PeerTable};
use crate::overrides::Overrides;
use crate::repository::Repository;

/// An instruction about the node above.
#[derive(Debug)]
pub(crate) enum Upward {
    /// This task leads from here on, in that epoch.
    Begin(Epoch),
    /// This.
    Do(Action),
    /// It leads no more: what it had begun is over.
    End,
}

/// The end of a mailbox at which the node puts messages in. When it is dropped, no more come.
struct Outlet(Arc<Mailbox>);

/// The leader of the node, as far as is known.
#[derive(Clone, Default, Debug)]
pub(super) struct KnownLeader {
    pub(super) leader: Leader,
    /// Its epoch.
    pub(super) epoch: Option<Epoch>,
    /// Whether it is this task, as long as it has authority.
    pub(super) is_here: bool,
    /// The loop for which its node is served as without a parent, if it stands above itself and this task leads it.
    pub(super) name_loop: Option<String>,
}

/// The sender of a queue to somebody who works beside the node.
struct Notifier<T> {
    queue: mpsc::UnboundedSender<T>,
    has_told: bool,
}

/// The configuration that this task has read, with which it would begin to lead.
pub(super) struct ReadConfiguration {
    pub(super) repository: Repository,
    pub(super) overrides: Overrides,
}

/// The queues of what the leader state tells those who work beside it.
pub(super) struct NoticeQueues {
    pub(super) domains: mpsc::UnboundedReceiver<Notice>,
    pub(super) looks: mpsc::UnboundedReceiver<LookNotice>,
}

/// The node and the mailboxes of its streams.
pub(super) struct LeaderState {
    /// Absent while another task leads.
    pub(super) node: Option<Node>,
    /// The leader as it is published to those who do not take the lock.
    known: Arc<ArcSwap<KnownLeader>>,
    pub(super) begins_with: ReadConfiguration,
    /// The guard that shows time that the clock did not.
    pub(super) clocks: clock::ClockWatch,
    /// When the node is to be polled if nothing else happens, as the task that does so was told last.
    pub(super) deadline: Time,
    /// The number of times that the node, or its absence, has been replaced.
    term: u64,
    outlets: PeerTable<Outlet>,
    /// Streams at a time.
    limit: usize,
    /// To whoever carries out what is to be done with the node above.
    pub(super) upward: Option<mpsc::UnboundedSender<Upward>>,
    /// For the synchronisation of domains.
    domains: Notifier<Notice>,
    /// For what operators ask of the whole tree.
    looks: Notifier<LookNotice>,
    /// To whoever writes the record for successors.
    pub(super) record: Option<mpsc::UnboundedSender<(Epoch, MarkWrite)>>,
}

// === impl Notifier ===

impl<T> Notifier<T> {
    fn new(queue: mpsc::UnboundedSender<T>) -> Notifier<T> {
        Notifier { queue, has_told: false }
    }

    fn tell(&mut self, notice: T) {
        self.has_told = true;
        // Nobody hears of it when the server has ended.
        let _ = self.queue.send(notice);
    }

    /// Whether anything was told since this was last asked.
    fn has_told(&mut self) -> bool {
        std::mem::take(&mut self.has_told)
    }
}

// === impl LeaderState ===

impl LeaderState {
    pub(super) fn new(
        node: Option<Node>,
        leader: Leader,
        repository: Repository,
        limit: usize,
    ) -> (LeaderState, NoticeQueues) {
        let epoch = node.as_ref().map(Node::epoch);
        let (notices, domains) = mpsc::unbounded_channel();
        let (look_notices, looks) = mpsc::unbounded_channel();
        let mut leader_state = LeaderState {
            node: None,
            known: Arc::new(ArcSwap::from_pointee(KnownLeader { leader, epoch, ..KnownLeader::default() })),
            begins_with: ReadConfiguration { repository, overrides: Overrides::default() },
            clocks: clock::ClockWatch::start(),
            deadline: Time::MAX,
            term: 0,
            outlets: PeerTable::default(),
            limit,
            upward: None,
            domains: Notifier::new(notices),
            looks: Notifier::new(look_notices),
            record: None,
        };
        if let Some(node) = node {
            leader_state.set_node(node);
        }
        (leader_state, NoticeQueues { domains, looks })
    }

    /// This task leads with `node`, whose domains are synchronised beside it.
    pub(super) fn set_node(&mut self, mut node: Node) {
        let sync = node.take_domain_sync();
        self.domains.tell(Notice::Anew(self.term, Box::new(sync)));
        let looks = node.take_looks();
        self.looks.tell(LookNotice::Anew(self.term, Box::new(looks)));
        self.node = Some(node);
        self.publish(|known| known.is_here = true);
    }

    /// Whether the synchronisation of domains was told something since this was last asked.
    pub(super) fn has_noted(&mut self) -> bool {
        self.domains.has_told()
    }

    /// The same of looks.
    pub(super) fn has_look_noted(&mut self) -> bool {
        self.looks.has_told()
    }

    /// Another leader begins, or none is known: this task is not it. Those who are connected are told where to go.
    pub(super) fn follow(&mut self, leader: Leader, epoch: Option<Epoch>) {
        if self.node.take().is_some() {
            instruct(&self.upward, Upward::End);
        }
        self.term += 1;
        self.domains.tell(Notice::Anew(self.term, Box::default()));
        self.looks.tell(LookNotice::Anew(self.term, Box::default()));
        for (_, outlet) in std::mem::take(&mut self.outlets).iter() {
            // Who has not read the last message yet finds out when the stream ends.
            let _ = outlet.0.put(Down::Redirect(leader.clone()));
        }
        self.publish(|known| *known = KnownLeader { leader, epoch, ..KnownLeader::default() });
    }

    /// The leader, wherever this is read.
    pub(super) fn published(&self) -> Arc<ArcSwap<KnownLeader>> {
        Arc::clone(&self.known)
    }

    /// Changes what is published of the leader. Nobody else does: the lock around this is held.
    fn publish(&self, change: impl FnOnce(&mut KnownLeader)) {
        let mut known = KnownLeader::clone(&self.known.load());
        change(&mut known);
        self.known.store(Arc::new(known));
    }

    /// Something came from the node above in answer to the leader of `epoch`.
    pub(super) fn on_parent(&mut self, now: Time, epoch: Epoch, event: session::Event) {
        let published = self.epoch();
        let Some(node) = self.node.as_mut().filter(|_| published == Some(epoch)) else { return };
        node.on_parent(now, event);
        let name_loop = node.name_loop();
        if self.known.load().name_loop.as_deref() != name_loop {
            let name_loop = name_loop.map(str::to_owned);
            self.publish(|known| known.name_loop = name_loop);
        }
    }

    /// The leader.
    pub(super) fn leader(&self) -> Leader {
        self.known.load().leader.clone()
    }

    /// The epoch of the leader.
    pub(super) fn epoch(&self) -> Option<Epoch> {
        self.known.load().epoch
    }

    /// The leader elsewhere says that this is its epoch.
    pub(super) fn hear_of_epoch(&mut self, epoch: Epoch) {
        if self.node.is_none() {
            self.publish(|known| known.epoch = Some(epoch));
        }
    }

    /// Says so if nothing is granted for want of the newest configuration.
    pub(super) fn warn_of_config(&self) {
        if let Some(later) = self.node.as_ref().and_then(Node::later_config) {
            let version = self.begins_with.repository.version();
            error!(version, later, "nothing is granted: a later version of the configuration was in force");
        }
    }

    /// Says so if newcomers get nothing at first, as nobody knows what is out.
    pub(super) fn warn_of_learning(&self) {
        let LearningTimes { leases, floors } =
            self.node.as_ref().map(Node::learning_times).unwrap_or_default();
        match floors.is_zero() {
            true if leases.is_zero() => {}
            true => warn!(?leases, "learning what is out: no new lease is granted for that long"),
            false if leases.is_zero() => {
                warn!(?floors, "learning what floors are out: no new floor is granted for that long");
            }
            false => warn!(
                ?leases,
                ?floors,
                "learning what is out: no new lease, no new floor is granted for that long"
            ),
        }
    }

    pub(super) fn connect(&mut self, now: Time, hello: Hello) -> Result<(StreamKey, Arc<Mailbox>), Refusal> {
        let count = self.outlets.len() + 1;
        if count > self.limit {
            return Err(Refusal::Exhausted { what: "streams".to_owned(), count, limit: self.limit });
        }
        let node = self.node.as_mut().expect("looked at before");
        node.check_hello(&hello)?;
        let is_node = hello.kind == HolderKind::Node;
        let peer = node.connect(now, hello);
        let mailbox = Arc::new(Mailbox::default());
        if is_node {
            self.looks.tell(LookNotice::Connected(peer, Arc::clone(&mailbox)));
        }
        self.outlets.insert(peer, Outlet(Arc::clone(&mailbox)));
        self.domains.tell(Notice::Connected(peer, Arc::clone(&mailbox)));
        Ok((StreamKey::new(self.term, peer), mailbox))
    }

    /// The number of a stream at the node, unless the stream is of an earlier epoch.
    pub(super) fn peer(&self, key: StreamKey) -> Option<Peer> {
        key.peer_in(self.term)
    }

    /// Whether it was connected.
    pub(super) fn disconnect(&mut self, now: Time, key: StreamKey) -> bool {
        let Some(peer) = self.peer(key) else { return false };
        let was_connected = self.outlets.remove(peer).is_some();
        if let Some(node) = self.node.as_mut().filter(|_| was_connected) {
            node.disconnect(now, peer);
        }
        was_connected
    }

    pub(super) fn disconnect_all(&mut self, now: Time) {
        for (peer, _) in std::mem::take(&mut self.outlets).iter() {
            if let Some(node) = &mut self.node {
                node.disconnect(now, peer);
            }
        }
    }

    pub(super) fn streams(&self) -> usize {
        self.outlets.len()
    }

    /// Streams have taken what came out for them last.
    pub(super) fn hear_taken(&mut self, now: Time, keys: Vec<StreamKey>) {
        let Some(node) = self.node.as_mut().filter(|_| !keys.is_empty()) else { return };
        // Streams of an earlier epoch have no part in this one.
        for peer in keys.into_iter().filter_map(|key| key.peer_in(self.term)) {
            node.ready(now, peer);
        }
    }

    /// Whether something waits for a stream to take something.
    pub(super) fn awaits_streams(&self) -> bool {
        self.node.as_ref().is_some_and(Node::awaits_streams)
    }

    /// Does what the node says at `now`, but for looks at resources whose time has come. Returns the first message for
    /// `reader`, who is about to take it, instead of putting it into the mailbox.
    pub(super) fn hand_out(&mut self, now: Time, reader: Option<Peer>) -> Option<Down> {
        let node = self.node.as_mut()?;
        let mut taken = None;
        while let Some(output) = node.poll_said(now) {
            match output {
                Output::Send { peer, down } if taken.is_none() && reader == Some(peer) => {
                    taken = Some(down);
                    node.ready(now, peer);
                }
                Output::Send { peer, down } => {
                    // A stream that has just ended is not there any more.
                    let has_room = self.outlets.get(peer).is_none_or(|outlet| outlet.0.put(down));
                    assert!(has_room, "stream {peer}: a second message before the first was taken");
                }
                Output::Close { peer } => drop(self.outlets.remove(peer)),
                Output::Parent(action) => instruct(&self.upward, Upward::Do(action)),
            }
        }
        while let Some(event) = node.next_domain_event() {
            self.domains.tell(Notice::Event(event));
        }
        while let Some(event) = node.next_look_event() {
            self.looks.tell(LookNotice::Event(event));
        }
        while let Some(warning) = node.next_name_warning() {
            warn_of_name(&warning);
        }
        while let Some(record) = &self.record
            && let Some(write) = node.next_marks(now)
        {
            // Nobody writes it when the server has been told to end.
            let _ = record.send((node.epoch(), write));
        }
        taken
    }
}

/// Has that done about the node above, if there is one.
pub(super) fn instruct(upward: &Option<mpsc::UnboundedSender<Upward>>, instruction: Upward) {
    if let Some(upward) = upward {
        // Nobody carries it out when the server has been told to end.
        let _ = upward.send(instruction);
    }
}

fn warn_of_name(warning: &NameWarning) {
    match warning {
        NameWarning::Loop { why } => {
            warn!(%why, "this node stands above itself, and is served as without a parent");
        }
        NameWarning::Refused { why } => warn!(%why, "a node that stands above this one is refused"),
        NameWarning::Taken => {
            warn!("another process holds the name of this node: each is charged by itself");
        }
        NameWarning::Duplicate { node } => {
            warn!(%node, "two processes claim the name of one node");
        }
    }
}

// === impl Outlet ===

impl Drop for Outlet {
    fn drop(&mut self) {
        self.0.close();
    }
}
