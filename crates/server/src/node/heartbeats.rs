//! Heartbeats of all streams, in turn: a slice of one stream's resources at a time, so that nobody waits for those who hold many.
//!
//! The holder is told when all of them have been renewed. Until then what was renewed first counts for longer in the books than
//! its holder knows, which errs on the side of counting it. What is granted meanwhile counts from this heartbeat if its resource
//! was heard in it, and else is renewed when its slice comes.
//!
//! Where everything on a stream lasts for long enough, its heartbeats are answered with an empty message that renews nothing, and
//! every so many of them renew all.

use std::collections::{BTreeSet, VecDeque};

use lessor_proto::message::Down;
use lessor_proto::{ResourceId, Time};
use smallvec::SmallVec;

use super::{Node, Peer};
use crate::mutation::Rule;
use crate::resource::{Renewal, earliest};
use crate::streams::{Beat, BeatRun, Stream};

/// The streams whose heartbeats wait for their time, or are being answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Heartbeats {
    /// When the next one of a stream may begin.
    waiting: BTreeSet<(Time, Peer)>,
    /// Those that are being answered, in turn.
    running: VecDeque<Peer>,
    /// The last look was at a slice, and the next is at a resource.
    yields: bool,
}

/// The step that a heartbeat has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HeartbeatStep {
    /// There is another slice.
    More,
    /// It is answered.
    Over,
    /// Its stream is dropped.
    Dropped,
}

// === impl Heartbeats ===

impl Heartbeats {
    /// Whether there is one to go on with.
    pub(super) fn is_due(&self, now: Time) -> bool {
        !self.running.is_empty() || self.waiting.first().is_some_and(|&(at, _)| at <= now)
    }

    /// Whether it is their turn, where a resource waits to be looked at if `is_look_due`.
    pub(super) fn take_turn(&mut self, now: Time, is_look_due: bool) -> bool {
        if !self.is_due(now) {
            return false;
        }
        self.yields = !self.yields;
        self.yields || !is_look_due
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let running = (!self.running.is_empty()).then_some(Time::ZERO);
        earliest([running, self.waiting.first().map(|&(at, _)| at)])
    }

    /// The stream is gone.
    pub(super) fn forget(&mut self, peer: Peer, stream: &Stream) {
        self.waiting.remove(&(stream.beats.begins_at(), peer));
    }

    /// The first stream whose time has come.
    fn pop_waiting(&mut self, now: Time) -> Option<Peer> {
        let &(at, peer) = self.waiting.first().filter(|(at, _)| *at <= now)?;
        self.waiting.remove(&(at, peer));
        Some(peer)
    }
}

// === impl Node ===

impl Node {
    /// The holder at the other end keeps what it has. Everything granted on the stream is renewed if that is due, either by one
    /// message for all of it, or by a grant for what has to be granted anew. The message would be believed of a lease that cannot
    /// be renewed now and has not ended; where there is one, all others are granted anew.
    pub(super) fn on_heartbeat(&mut self, now: Time, peer: Peer, beat: Beat) {
        let round = self.streams.peers.round();
        let Some(stream) = self.streams.peers.get_mut(peer) else { return };
        let begins_at = stream.beats.begins_at();
        if now < begins_at {
            stream.beats.wait(beat);
            // One that is being answered calls for the next.
            if begins_at < Time::MAX {
                self.streams.heartbeats.waiting.insert((begins_at, peer));
            }
            return;
        }
        let (resources, is_busy) = (stream.attached.len(), stream.is_busy());
        let may_rest = stream.beats.may_rest(beat, self.streams.heartbeat, round);
        if resources > 0 && (may_rest || !self.config.rules.keep(Rule::RenewedInTime)) {
            stream.beats.begin(now, 0);
            if is_busy {
                return self.streams.peers.note_heartbeat(peer, beat);
            }
            return self.only_answer(peer);
        }
        stream.beats.begin(now, resources);
        let mut run = BeatRun::new(beat, is_busy, round);
        if resources > self.config.heartbeat_slice {
            stream.beats.run = Some(Box::new(run));
            return self.streams.heartbeats.running.push_back(peer);
        }
        while self.step(now, peer, &mut run) == HeartbeatStep::More {}
    }

    /// Goes on with one heartbeat that waits: as far as its next slice goes.
    pub(super) fn work_heartbeats(&mut self, now: Time) {
        if let Some(peer) = self.streams.heartbeats.pop_waiting(now) {
            let latest = self.streams.peers.get_mut(peer).and_then(|stream| stream.beats.take());
            return latest.into_iter().for_each(|beat| self.on_heartbeat(now, peer, beat));
        }
        let Some(peer) = self.streams.heartbeats.running.pop_front() else { return };
        let Some(mut run) = self.streams.peers.get_mut(peer).and_then(|stream| stream.beats.run.take())
        else {
            return;
        };
        let step = self.step(now, peer, &mut run);
        let Some(stream) = self.streams.peers.get_mut(peer) else { return };
        match step {
            HeartbeatStep::More => {
                stream.beats.run = Some(run);
                self.streams.heartbeats.running.push_back(peer);
            }
            // The one that is over may itself wait until the stream takes something.
            HeartbeatStep::Over if stream.beats.is_another_waiting(run.beat) => {
                self.streams.heartbeats.waiting.insert((stream.beats.begins_at(), peer));
            }
            HeartbeatStep::Over | HeartbeatStep::Dropped => {}
        }
    }

    /// One slice of a heartbeat.
    fn step(&mut self, now: Time, peer: Peer, run: &mut BeatRun) -> HeartbeatStep {
        let Some(stream) = self.streams.peers.get(peer) else { return HeartbeatStep::Dropped };
        let slice = self.config.heartbeat_slice;
        let ids: SmallVec<[ResourceId; 4]> =
            stream.attached.after(run.after.as_ref()).take(slice).cloned().collect();
        for id in &ids {
            if run.grants_rest {
                self.grant_rest(now, peer, id, run);
            } else if !self.beat(now, peer, id, run) {
                // It has been silent for so long that it was forgotten: it has to say everything again.
                self.drop_stream(now, peer);
                return HeartbeatStep::Dropped;
            }
        }
        if ids.len() == slice {
            run.after = ids.last().cloned();
            return HeartbeatStep::More;
        }
        if run.is_busy {
            return self.answer_later(now, peer, run.beat);
        }
        if run.all {
            self.streams.peers.renewed(peer, run.beat.id);
            if let Some(stream) = self.streams.peers.get_mut(peer) {
                stream.beats.renewed(run);
            }
            return HeartbeatStep::Over;
        }
        if !run.grants_rest {
            (run.grants_rest, run.after) = (true, None);
            return HeartbeatStep::More;
        }
        self.only_answer(peer);
        HeartbeatStep::Over
    }

    /// Says nothing but that somebody is there.
    fn only_answer(&mut self, peer: Peer) {
        self.streams.peers.say(peer, Down::Grants(Vec::new()));
    }

    /// The heartbeat is heard of one resource, and renews it if the stream takes something. Returns whether the holder is known
    /// there.
    fn beat(&mut self, now: Time, peer: Peer, id: &ResourceId, run: &mut BeatRun) -> bool {
        let beaten = self.call(id, |resource, around| {
            resource.advance(now);
            let slot = resource.listener(peer)?;
            resource.beat(run.beat.at, slot, run.beat.id);
            if run.is_busy {
                return Some(());
            }
            let renewed = resource.renew(now, run.beat.at, around.cx, slot);
            if renewed.renewal == Renewal::None {
                run.all &= resource.is_over(slot);
            }
            let renew_by = resource.renew_by(slot, around.cx);
            run.renew_by = run.renew_by.min(renew_by);
            if let Some(grant) = renewed.grant {
                run.granted.push(id.clone());
                around.peers.grant(peer, grant, renew_by);
            }
            Some(())
        });
        if !run.is_busy && beaten.flatten().is_some() {
            self.follow(now, id);
        }
        beaten.flatten().is_some()
    }

    /// Grants what was renewed without a word, as one message does not say it.
    fn grant_rest(&mut self, now: Time, peer: Peer, id: &ResourceId, run: &BeatRun) {
        if run.granted.binary_search(id).is_ok() {
            return;
        }
        self.with_unsaid(id, |resource, around| {
            let slot = resource.listener(peer)?;
            let grant = resource.grant_anew(now, slot, around.cx)?;
            around.peers.grant(peer, grant, resource.renew_by(slot, around.cx));
            Some(())
        });
    }

    /// Its holder has been heard, and is answered when the stream takes something.
    fn answer_later(&mut self, now: Time, peer: Peer, beat: Beat) -> HeartbeatStep {
        let Some(stream) = self.streams.peers.get_mut(peer) else { return HeartbeatStep::Dropped };
        if stream.is_busy() {
            self.streams.peers.note_heartbeat(peer, beat);
        } else {
            // It has taken something meanwhile. This one is over before that begins.
            stream.beats.wait(beat);
            self.streams.heartbeats.waiting.insert((stream.beats.begins_at().max(now), peer));
        }
        HeartbeatStep::Over
    }
}
