//! The calls of those who are connected: streams from below, and the node above.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lessor_client::internals::session;
use lessor_proto::message::{Down, Hello, Up};
use lessor_proto::{Epoch, ResourceId, Time};
use tokio::sync::mpsc;
use tracing::debug;

use super::hold_kind::HoldKind;
use super::{Driver, LeaderState, Mailbox, StreamKey, Unanswered, Upward};
use crate::node::{Node, Peer};

// === impl Driver ===

impl Driver {
    /// Somebody has opened a stream. What is due to it comes out of the mailbox; each message of the node that has been
    /// taken out is to be followed by [`Driver::ready`], and news of domains by [`Driver::domains_ready`]. The mailbox ends
    /// when the node or a drain has closed the stream.
    pub(in crate::shell) fn connect(&self, hello: &Hello) -> Result<(StreamKey, Arc<Mailbox>), Unanswered> {
        let connected = self.with_state(HoldKind::Stream, |leader_state, now| {
            // Looked at under the lock: a stream is closed by a drain, or not opened.
            if self.health.is_draining() {
                return Err(Unanswered::Ending);
            }
            if !leader_state.node.as_ref().is_some_and(|node| self.acts(node.epoch(), now)) {
                return Err(Unanswered::NotLeading(self.identity.another(leader_state.leader())));
            }
            leader_state.connect(now, hello.clone()).map_err(Unanswered::Refused)
        });
        let connected = connected??;
        self.traffic.streams_opened.fetch_add(1, Ordering::Relaxed);
        let stream = connected.0;
        debug!(%stream, holder = %hello.holder, incarnation = hello.incarnation.0, "connected");
        Ok(connected)
    }

    /// Something came up a stream.
    pub(in crate::shell) fn receive(&self, key: StreamKey, up: Up) -> Result<(), Unanswered> {
        self.call_for(key, |node, now, peer| node.receive(now, peer, up))
    }

    /// The same of a stream that takes a message at once. Returns the first one there is for it then; of that it need not
    /// be said that it was taken.
    pub(in crate::shell) fn exchange(&self, key: StreamKey, up: Up) -> Result<Option<Down>, Unanswered> {
        let held = self.with_state_for(HoldKind::Report, Some(key), |leader_state, now| {
            self.with_stream(leader_state, now, key, |node, now, peer| node.receive(now, peer, up))
        })?;
        held.outcome.map(|()| held.taken)
    }

    /// The holder at the other end of a stream may hold these no more.
    pub(in crate::shell) fn revoke(
        &self,
        key: StreamKey,
        resources: &[ResourceId],
    ) -> Result<(), Unanswered> {
        self.call_for(key, |node, now, peer| node.revoke(now, peer, resources))
    }

    /// A stream has ended. May be said twice.
    pub(in crate::shell) fn disconnect(&self, key: StreamKey) {
        // Of a broken node nothing is expected.
        if let Ok(true) =
            self.with_state(HoldKind::Stream, |leader_state, now| leader_state.disconnect(now, key))
        {
            debug!(stream = %key, "disconnected");
        }
    }

    /// Ends all streams, after what has come out for them. Whoever is draining opens no others.
    pub(in crate::shell) fn close_streams(&self) {
        // Of a broken node nothing is expected.
        let _ = self.with_state(HoldKind::Stream, LeaderState::disconnect_all);
    }

    /// The same for a stream that was opened in this epoch.
    fn call_for<R>(
        &self,
        key: StreamKey,
        call: impl FnOnce(&mut Node, Time, Peer) -> R,
    ) -> Result<R, Unanswered> {
        self.with_state(HoldKind::Report, |leader_state, now| self.with_stream(leader_state, now, key, call))?
    }

    fn with_stream<R>(
        &self,
        leader_state: &mut LeaderState,
        now: Time,
        key: StreamKey,
        call: impl FnOnce(&mut Node, Time, Peer) -> R,
    ) -> Result<R, Unanswered> {
        match (leader_state.peer(key), &mut leader_state.node) {
            (Some(peer), Some(node)) if self.acts(node.epoch(), now) => Ok(call(node, now, peer)),
            _ => Err(Unanswered::NotLeading(self.identity.another(leader_state.leader()))),
        }
    }
}

// === impl Driver: the node above ===

impl Driver {
    /// The actions that the node wants of the one above, from here on.
    pub(in crate::shell) fn parent_actions(&self) -> Result<mpsc::UnboundedReceiver<Upward>, Unanswered> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.with_state(HoldKind::Parent, |leader_state, _| leader_state.upward = Some(sender))?;
        Ok(receiver)
    }

    /// Something came from the node above in answer to the leader of `epoch`.
    pub(in crate::shell) fn on_parent(&self, epoch: Epoch, event: session::Event) -> Result<(), Unanswered> {
        self.with_state(HoldKind::Parent, |leader_state, now| leader_state.on_parent(now, epoch, event))
    }
}
