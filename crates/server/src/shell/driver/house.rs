//! What stands behind the lock: the node, and the outboxes of those who are connected to it.

use std::collections::BTreeMap;

use lessor_client::session::Action;
use lessor_proto::Time;
use lessor_proto::message::{Down, Hello, Refusal};
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::node::{Node, Output, Peer};

/// The node gives out one message a stream, and the next when that has been taken.
const OUTBOX: usize = 1;

/// The node and its outboxes.
pub(super) struct House {
    pub(super) node: Node,
    outboxes: BTreeMap<Peer, mpsc::Sender<Down>>,
    /// Streams at a time.
    limit: usize,
    /// To whoever carries out what is to be done with the node above.
    pub(super) upward: Option<mpsc::UnboundedSender<Action>>,
}

// === impl House ===

impl House {
    pub(super) fn new(node: Node, limit: usize) -> House {
        House { node, outboxes: BTreeMap::new(), limit, upward: None }
    }

    pub(super) fn connect(
        &mut self,
        now: Time,
        hello: Hello,
    ) -> Result<(Peer, mpsc::Receiver<Down>), Refusal> {
        let count = self.outboxes.len() + 1;
        if count > self.limit {
            return Err(Refusal::Exhausted { what: "streams".to_owned(), count, limit: self.limit });
        }
        let peer = self.node.connect(now, hello);
        let (sender, receiver) = mpsc::channel(OUTBOX);
        self.outboxes.insert(peer, sender);
        Ok((peer, receiver))
    }

    /// Whether it was connected.
    pub(super) fn disconnect(&mut self, now: Time, peer: Peer) -> bool {
        let was_connected = self.outboxes.remove(&peer).is_some();
        if was_connected {
            self.node.disconnect(now, peer);
        }
        was_connected
    }

    pub(super) fn disconnect_all(&mut self, now: Time) {
        for peer in std::mem::take(&mut self.outboxes).into_keys() {
            self.node.disconnect(now, peer);
        }
    }

    pub(super) fn streams(&self) -> usize {
        self.outboxes.len()
    }

    /// Does what the node says at `now`.
    pub(super) fn hand_out(&mut self, now: Time) {
        while let Some(output) = self.node.poll(now) {
            match output {
                Output::Send { peer, down } => {
                    let sent = self.outboxes.get(&peer).map(|outbox| outbox.try_send(down));
                    // A stream that has just ended is not there any more, or takes nothing.
                    let is_full = matches!(sent, Some(Err(TrySendError::Full(_))));
                    assert!(!is_full, "stream {peer}: a second message before the first was taken");
                }
                Output::Close { peer } => drop(self.outboxes.remove(&peer)),
                Output::Parent(action) => {
                    if let Some(upward) = &self.upward {
                        // Nobody carries it out when the server has been told to end.
                        let _ = upward.send(action);
                    }
                }
            }
        }
    }
}
