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

/// Why something that came up a stream was not heard.
#[derive(Debug)]
pub(in crate::shell) enum Unheard {
    /// This task may not act before it hears of etcd, and nobody else can lead yet: this is to be said again after that.
    Lapsed(Box<Up>),
    /// The stream is over.
    Unanswered(Unanswered),
}

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
            self.acting_node(leader_state, now)?;
            leader_state.connect(now, hello.clone()).map_err(Unanswered::Refused)
        });
        let connected = connected??;
        self.traffic.streams_opened.fetch_add(1, Ordering::Relaxed);
        let stream = connected.0;
        debug!(%stream, holder = %hello.holder, incarnation = hello.incarnation.0, "connected");
        Ok(connected)
    }

    /// Something came up a stream.
    pub(in crate::shell) fn receive(&self, key: StreamKey, up: Up) -> Result<(), Unheard> {
        self.hear(key, None, up).map(|_| ())
    }

    /// The same of a stream that takes a message at once. Returns the first one there is for it then; of that it need not
    /// be said that it was taken.
    pub(in crate::shell) fn exchange(&self, key: StreamKey, up: Up) -> Result<Option<Down>, Unheard> {
        self.hear(key, Some(key), up)
    }

    fn hear(&self, key: StreamKey, reader: Option<StreamKey>, up: Up) -> Result<Option<Down>, Unheard> {
        let held = self.with_state_for(HoldKind::Report, reader, |leader_state, now| {
            match self.connected(leader_state, now, key) {
                Ok((node, peer)) => {
                    node.receive(now, peer, up);
                    Ok(())
                }
                Err(Unanswered::Lapsed) => Err(Unheard::Lapsed(Box::new(up))),
                Err(fault) => Err(Unheard::Unanswered(fault)),
            }
        });
        let held = held.map_err(Unheard::Unanswered)?;
        held.outcome.map(|()| held.taken)
    }

    /// The holder at the other end of a stream may hold these no more.
    pub(in crate::shell) fn revoke(
        &self,
        key: StreamKey,
        resources: &[ResourceId],
    ) -> Result<(), Unanswered> {
        self.with_state(HoldKind::Report, |leader_state, now| {
            let (node, peer) = self.connected(leader_state, now, key)?;
            node.revoke(now, peer, resources);
            Ok(())
        })?
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

    /// The node, if this task may act for it, and what it calls a stream that was opened in this epoch.
    fn connected<'a>(
        &self,
        leader_state: &'a mut LeaderState,
        now: Time,
        key: StreamKey,
    ) -> Result<(&'a mut Node, Peer), Unanswered> {
        let Some(peer) = leader_state.peer(key) else {
            return Err(Unanswered::NotLeading(self.identity.another(leader_state.leader())));
        };
        self.acting_node(leader_state, now).map(|node| (node, peer))
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
