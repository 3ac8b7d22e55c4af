//! Streams that take something again for which much was put off: a slice of the resources at a time, so that nobody waits for
//! those who hold many.
//!
//! A slice that grants something is a message, and the rest waits until that has been taken. One that grants nothing is followed
//! by the next in a turn of its own.

use lessor_proto::Time;

use super::{Node, Peer};

/// Resources that are looked at as soon as the stream takes something: hardly any stream has more.
const AT_ONCE: usize = 16;

// === impl Node ===

impl Node {
    /// Notes that the last output for a stream has left.
    pub fn ready(&mut self, now: Time, peer: Peer) {
        let Some(noted) = self.streams.peers.ready(peer) else { return };
        if noted <= AT_ONCE {
            self.resume(now, peer, noted);
        } else if self.streams.peers.is_first_to_resume(peer) {
            self.streams.resuming.push(peer);
        }
        self.sharing.ready(now, peer);
    }

    /// Goes on with one stream, by a slice.
    pub(super) fn work_resuming(&mut self, now: Time) {
        let Some(peer) = self.streams.resuming.pop() else { return };
        if !self.streams.peers.goes_on(peer) {
            return;
        }
        self.resume(now, peer, self.config.heartbeat_slice);
        if self.streams.peers.is_any_noted(peer) && self.streams.peers.is_first_to_resume(peer) {
            self.streams.resuming.push(peer);
        }
    }

    /// Looks at so many of the resources that were noted for a stream, and takes up its heartbeat at the end of each round of them:
    /// of one that is slow there may always be some.
    fn resume(&mut self, now: Time, peer: Peer, most: usize) {
        let put_off = self.streams.peers.take_noted(peer, most);
        for id in &put_off.resources {
            self.with(now, id, |resource, around| {
                if let Some(slot) = resource.listener(peer) {
                    resource.respond(now, slot, around.cx, around.peers);
                    resource.resume_units(now, slot, around.cx, around.peers);
                }
            });
        }
        if let Some(beat) = put_off.heartbeat {
            self.on_heartbeat(now, peer, beat);
        }
    }
}
