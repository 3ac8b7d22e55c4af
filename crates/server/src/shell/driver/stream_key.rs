//! The key of a stream, by which it is called outside the node.

use std::fmt;

use crate::node::Peer;

/// A stream, as it is called outside the node: streams of an earlier epoch of this task may end while another is in force,
/// whose streams have the same numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::shell) struct StreamKey {
    term: u64,
    peer: Peer,
}

// === impl StreamKey ===

impl StreamKey {
    /// The stream of that number in that term of this task.
    pub(super) fn new(term: u64, peer: Peer) -> StreamKey {
        StreamKey { term, peer }
    }

    /// The number of the stream, if it was opened in this term.
    pub(super) fn peer_in(self, term: u64) -> Option<Peer> {
        (self.term == term).then_some(self.peer)
    }
}

impl fmt::Display for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.peer.fmt(f)
    }
}
