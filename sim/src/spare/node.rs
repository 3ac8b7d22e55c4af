//! A server: the root, or a leaf below it.

use std::collections::BTreeMap;
use std::sync::Arc;

use lessor_client::session::{self, Action, Transport};
use lessor_proto::message::{Down, Up};
use lessor_proto::{Epoch, Time};
use lessor_server::config::ParentConfig;
use lessor_server::node::{Node, NodeConfig, Output, Peer};

use super::SpareRun;

/// The number of a holder: clients first, and then leaves.
pub(super) type Holder = usize;

/// A server.
pub(super) struct SpareNode {
    node: Node,
    peers: BTreeMap<Peer, (Holder, u64)>,
    streams: BTreeMap<(Holder, u64), Peer>,
    /// When it is looked at next.
    pub(super) due: Option<Time>,
}

/// A message that a server sends.
#[derive(Debug)]
pub(super) enum SpareMessage {
    /// To a holder below; nothing: the stream has ended.
    Down(Holder, u64, Option<Down>),
    /// To the server above.
    Up(u64, Up),
}

// === impl SpareNode ===

impl SpareNode {
    pub(super) fn root(run: &SpareRun) -> SpareNode {
        SpareNode::new(NodeConfig::new("root", Epoch(1)), run)
    }

    pub(super) fn leaf(run: &SpareRun, number: usize) -> SpareNode {
        let servers = vec![Arc::from("root:1")];
        let parent = ParentConfig { servers, transport: Transport::Stream, eager: false };
        SpareNode::new(
            NodeConfig { parent: Some(parent), ..NodeConfig::new(format!("leaf-{number}"), Epoch(1)) },
            run,
        )
    }

    fn new(config: NodeConfig, run: &SpareRun) -> SpareNode {
        let node = Node::new(Time::ZERO, config, run.repository());
        SpareNode { node, peers: BTreeMap::new(), streams: BTreeMap::new(), due: None }
    }

    /// Something comes from below. Returns whether there is such a stream.
    pub(super) fn take_up(&mut self, now: Time, holder: Holder, stream: u64, up: Up) -> bool {
        match (up, self.streams.get(&(holder, stream))) {
            (Up::Hello(hello), _) => {
                let peer = self.node.connect(now, hello);
                self.peers.insert(peer, (holder, stream));
                self.streams.insert((holder, stream), peer);
                true
            }
            (up, Some(&peer)) => {
                self.node.receive(now, peer, up);
                true
            }
            (_, None) => false,
        }
    }

    /// Tells the node that what was sent down a stream has arrived.
    pub(super) fn ready(&mut self, now: Time, holder: Holder, stream: u64) {
        if let Some(&peer) = self.streams.get(&(holder, stream)) {
            self.node.ready(now, peer);
        }
    }

    /// Something comes from the server above.
    pub(super) fn take_down(&mut self, now: Time, id: u64, down: Option<Down>) {
        let event = match down {
            Some(down) => session::Event::Down { id, down },
            None => session::Event::Closed { id, failure: super::closed() },
        };
        self.node.on_parent(now, event);
    }

    /// Does what is due. Returns what is to be sent.
    pub(super) fn serve(&mut self, now: Time) -> Vec<SpareMessage> {
        let mut sent = Vec::new();
        self.node.advance(now);
        while let Some(output) = self.node.poll(now) {
            let (peer, down) = match output {
                Output::Send { peer, down } => (peer, Some(down)),
                Output::Close { peer } => (peer, None),
                Output::Parent(action) => {
                    sent.extend(upwards(action));
                    continue;
                }
            };
            sent.extend(
                self.peers.get(&peer).map(|&(holder, stream)| SpareMessage::Down(holder, stream, down)),
            );
        }
        sent
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.node.deadline()
    }
}

/// Returns the message of an action that goes up, on a stream that never ends.
pub(super) fn upwards(action: Action) -> Option<SpareMessage> {
    match action {
        Action::Connect { id, hello, .. } => Some(SpareMessage::Up(id, Up::Hello(hello))),
        Action::Send { id, up } => Some(SpareMessage::Up(id, up)),
        Action::Disconnect { .. } | Action::News(_) => None,
        action => unreachable!("{action:?} on a stream that never ends"),
    }
}
