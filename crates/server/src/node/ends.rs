//! Streams that have ended: a slice of the resources at a time, so that nobody waits for those who held many.
//!
//! Until its turn has come a resource takes such a stream for one that listens and takes nothing: nobody is granted anything on
//! it. What its holder gives back stays charged for as long.

use lessor_proto::message::{Hello, HolderKind};
use lessor_proto::{ClientId, Time};

use super::Node;
use crate::resource::{Holder, life};
use crate::streams::{Attached, Peer};

/// The work that is left for a stream that has ended.
#[derive(Clone, Debug)]
pub(super) struct EndedStream {
    pub(super) peer: Peer,
    /// The resources of which somebody listens on it still.
    pub(super) attached: Attached,
    /// The holder, if it has given all back.
    pub(super) leaver: Option<Hello>,
}

// === impl EndedStream ===

impl EndedStream {
    fn is_given_back_by(&self, kind: HolderKind, holder: &ClientId) -> bool {
        self.leaver.as_ref().is_some_and(|hello| hello.kind == kind && hello.holder == *holder)
    }
}

// === impl Node ===

impl Node {
    /// Goes on with one of them.
    pub(super) fn work_ends(&mut self, now: Time) {
        if let Some(end) = self.streams.ended.pop() {
            self.work_end(now, end);
        }
    }

    /// Does a slice of what is left of one.
    pub(super) fn work_end(&mut self, now: Time, mut end: EndedStream) {
        self.end_slice(now, &mut end);
        match end.attached.is_empty() {
            true => self.streams.peers.leave_place(end.peer),
            false => self.streams.ended.push(end),
        }
    }

    /// Does all that is left of those of a holder that speaks again: what it says then is about what it has from then on.
    pub(super) fn finish_ends(&mut self, now: Time, kind: HolderKind, holder: &ClientId) {
        while let Some(mut end) = self.streams.ended.take(|end| end.is_given_back_by(kind, holder)) {
            while !end.attached.is_empty() {
                self.end_slice(now, &mut end);
            }
            self.streams.peers.leave_place(end.peer);
        }
    }

    fn end_slice(&mut self, now: Time, end: &mut EndedStream) {
        let ids = end.attached.take_first(self.config.heartbeat_slice);
        if let Some(hello) = &end.leaver {
            let life = life(hello.kind, hello.line, hello.incarnation, self.config.rules);
            let holder = Holder { kind: hello.kind, name: hello.holder.as_str(), life };
            for id in &ids {
                self.with(now, id, |resource, around| resource.release(holder, None, around.cx));
            }
        }
        for id in &ids {
            self.with_unsaid(id, |resource, _| {
                resource.advance(now);
                resource.detach(end.peer);
            });
        }
    }
}
