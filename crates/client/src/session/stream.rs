//! The stream of a session: whether there is one, with whom, and when it is given up.
//!
//! A session has one stream at the most. It is opened when there is something to hold, and replaced when it breaks, when
//! it says nothing for too long, or when it contradicts itself. None of that touches a lease: a lease lasts until its own
//! end, and the first thing said on the next stream is all that is held. What still comes from a stream that was given up
//! bears another number, and is passed over.

use std::time::Duration;

use lessor_proto::message::{Hello, Leader, Up, Welcome};
use lessor_proto::{Epoch, ReportId, Time};

use super::entry::Entry;
use super::exchange::RELEASES;
use super::line::{LineState, OpenStream, SHORTEST_HEARTBEAT};
use super::route::Astray;
use super::{Action, Failure, Fault, Session};
use crate::limiter::UnitWish;
use crate::mutation::HolderRule;

/// The time for which a server that has no streams is polled before a stream is tried again.
const STREAMLESS: Duration = Duration::from_secs(600);
/// The time to wait for a leader that does not take claims yet, about.
const CLAIMS_CLOSED: Duration = Duration::from_millis(100);
/// The longest time for which nobody may lead before those who hold something ask again: a fail-over takes
/// seconds.
const LEADERLESS: Duration = Duration::from_secs(1);

// === impl Session ===

impl Session {
    /// When to speak, to listen no longer, or to open a stream.
    pub(super) fn stream_deadline(&self) -> Time {
        let streams = &self.streams;
        if streams.dropped.is_some() {
            return Time::ZERO;
        }
        match streams.line {
            LineState::Down if self.entries.is_empty() => Time::MAX,
            LineState::Down => self.route.not_before(),
            _ if self.entries.is_empty() => Time::ZERO,
            LineState::Opening { since, timeout, .. } if self.fence.is_some() => since + timeout,
            LineState::Opening { since, timeout, .. } => self.next_report().min(since + timeout),
            LineState::Open(_) if streams.has_unsaid() => Time::ZERO,
            LineState::Open(open) => self.next_due().min(open.next_deadline()),
        }
    }

    /// The next action: to say something, or to drop or open a stream.
    pub(super) fn next_message(&mut self, now: Time) -> Option<Action> {
        if let Some(id) = self.streams.dropped.take() {
            return Some(Action::Disconnect { id });
        }
        match self.streams.line {
            LineState::Down if self.entries.is_empty() || now < self.route.not_before() => None,
            LineState::Down => Some(self.connect(now)),
            LineState::Opening { id, .. } if self.entries.is_empty() => {
                self.streams.line = LineState::Down;
                Some(Action::Disconnect { id })
            }
            // Whom we have never heard of cannot be the wrong one: nothing is held that it would have to know of first.
            LineState::Opening { id, .. } if self.fence.is_none() => self.report_due(now, id, None),
            LineState::Opening { .. } => None,
            LineState::Open(open) if self.entries.is_empty() => {
                let bye = self.send(open.id, Up::Bye);
                self.streams.line = LineState::Down;
                self.streams.dropped = Some(open.id);
                Some(bye)
            }
            LineState::Open(open) => {
                let spoken = self.say_jobs_up(now, open).or_else(|| self.release_up(now, open));
                let spoken = spoken.or_else(|| self.speak(now, open));
                let beside = spoken.or_else(|| self.ask_units_up(open)).or_else(|| self.tell_up(open));
                beside.or_else(|| self.show_up(open))
            }
        }
    }

    /// Says something on the stream; everything after the hello goes through here.
    ///
    /// # Panics
    /// When it is of a kind that the other end does not know: such a one would end the stream, or pass it over.
    pub(super) fn send(&mut self, id: u64, up: Up) -> Action {
        let known = self.config.features.and(self.streams.line.features());
        assert!(known.covers(up.needs()), "the other end knows {known:?}, and is told {up:?}");
        self.counts.sent += 1;
        Action::Send { id, up }
    }

    fn connect(&mut self, now: Time) -> Action {
        let id = self.next_id().0;
        self.streams.side = None;
        self.entries.each(|entry| entry.due = now);
        let shortest = self.entries.iter().filter_map(|entry| entry.holding.end(now)).min();
        let timeout = self.timeout(now, shortest);
        self.streams.line = LineState::Opening { id, since: now, timeout };
        self.counts.streams += 1;
        self.counts.sent += 1;
        let config = &self.config;
        let hello = Hello {
            kind: config.kind,
            holder: config.holder.clone(),
            incarnation: config.incarnation,
            line: config.line,
            features: config.features,
        };
        Action::Connect { id, to: self.route.target().clone(), hello }
    }

    /// Takes the welcome: the session fences itself from earlier epochs first, and then shows what it holds of
    /// them.
    pub(super) fn on_welcome(&mut self, now: Time, welcome: Welcome) {
        let LineState::Opening { id, .. } = self.streams.line else {
            return self.contradicted(now, "second welcome".to_owned());
        };
        let Welcome { epoch, claims_open, claims_open_in, heartbeat, features } = welcome;
        if self.is_fenced_from(epoch) {
            return self.contradicted(now, format!("welcome to epoch {epoch}, which is over"));
        }
        self.route.served();
        let earlier =
            |entry: &Entry| entry.is_open() && entry.holding.epoch(now).is_some_and(|of| of < epoch);
        if !claims_open && self.entries.iter().any(earlier) {
            // What is held can be used until its end, but not shown yet.
            let spread = CLAIMS_CLOSED.mul_f64(self.spread.fraction(id) / 2.0);
            let wait = claims_open_in.unwrap_or(CLAIMS_CLOSED.mul_f64(0.75)) + spread;
            // When all of that has ended there is nothing to show, and nothing to wait for.
            let ends =
                self.entries.iter().filter(|entry| earlier(entry)).filter_map(|entry| entry.holding.end(now));
            let until = ends.max().map_or(now + wait, |end| end.min(now + wait));
            self.drop_stream();
            return self.route.wait(until);
        }
        self.raise_fence(epoch);
        let heartbeat = heartbeat.max(SHORTEST_HEARTBEAT);
        self.streams.heartbeat = Some(heartbeat);
        self.streams.line = LineState::Open(OpenStream {
            id,
            epoch,
            features,
            heartbeat,
            pace: heartbeat,
            since: now,
            heard: now,
            next_beat: now + heartbeat.mul_f64(0.5 + self.spread.fraction(id) / 2.0),
            last_beat: ReportId::default(),
            grants: 0,
            released_by: Time::MAX,
        });
    }

    /// Not they: there. Follows as polling does.
    pub(super) fn on_redirected(&mut self, now: Time, leader: &Leader) {
        self.counts.redirects += 1;
        self.drop_stream();
        let longest = self.longest_stream_back_off(now);
        match self.route.redirected(now, leader, longest) {
            Ok(()) => {}
            Err(Astray::NoLeader) => self.blame(&Fault::NoLeader),
            Err(Astray::Circle) => self.blame(&Fault::Circle),
        }
    }

    /// Gives the stream up when nothing came for too long.
    pub(super) fn hear_nothing(&mut self, now: Time) {
        let (since, until) = match self.streams.line {
            LineState::Opening { since, timeout, .. } => (since, since + timeout),
            LineState::Open(open) => (open.heard, open.silent_at().min(open.released_by)),
            LineState::Down => return,
        };
        if until <= now {
            let waited = u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX);
            self.broken(now, Failure::Timeout(waited));
            self.settle(now);
        }
    }

    /// Gives stream `id` up, and its server for a while: what is held there lasts until its end, and nothing more is wanted.
    pub fn abandon(&mut self, now: Time, id: u64, failure: Failure) {
        if self.streams.line.id() != Some(id) {
            return;
        }
        self.counts.failures += 1;
        self.drop_stream();
        self.entries.retain(|entry| entry.may_still_release(now, RELEASES));
        self.route.failed(now, self.longest_stream_back_off(now));
        self.blame(&Fault::Failed(failure));
        self.settle(now);
    }

    /// Gives up the stream, as what came down cannot be.
    pub(super) fn contradicted(&mut self, now: Time, what: String) {
        self.broken(now, Failure::Malformed(what));
    }

    /// The stream is of no use any more, and its server may not be either.
    ///
    /// A break after a good while says nothing about the server: the next attempt is made almost at once. Whoever breaks
    /// off at once is left alone for longer and longer.
    pub(super) fn broken(&mut self, now: Time, failure: Failure) {
        self.counts.failures += 1;
        let line = self.streams.line;
        self.drop_stream();
        self.entries.retain(|entry| entry.may_still_release(now, RELEASES));
        match line {
            LineState::Open(open) if now.since(open.since) >= self.config.spacing => {
                self.route.lost(now, open.id);
            }
            _ => {
                self.route.failed(now, self.longest_stream_back_off(now));
                self.blame(&Fault::Failed(failure));
            }
        }
    }

    /// The longest back-off between streams. A holder does not wait for long: what others are granted meanwhile is
    /// the longer in coming. A floor is for long, and in nobody's way.
    fn longest_stream_back_off(&self, now: Time) -> Duration {
        let held = |entry: &Entry| entry.is_open() && !entry.is_floor && entry.holding.end(now).is_some();
        let alive = self.entries.iter().any(held);
        let longest = self.longest_back_off();
        if alive { longest.min(LEADERLESS) } else { longest }
    }

    /// The server has no streams: it is polled.
    pub(super) fn without_streams(&mut self, now: Time) {
        self.drop_stream();
        self.streams.poll(self.route.target().clone(), now + STREAMLESS);
        self.entries.each(|entry| entry.due = now);
    }

    /// Forgets the stream; what was to be sent on it is said again on the next.
    fn drop_stream(&mut self) {
        self.streams.dropped = self.streams.line.id();
        self.streams.line = LineState::Down;
        self.streams.side = None;
        self.streams.restart_jobs(self.says_jobs_again());
        self.outbox = None;
        self.entries.each(|entry| {
            entry.streamed.granted = None;
            entry.streamed.pace = None;
            (entry.streamed.wish, entry.streamed.units, entry.streamed.kept) = (UnitWish::default(), 0, 0);
            entry.exchange = None;
        });
    }

    /// Whether `epoch` is an epoch before one that we have heard of.
    pub(super) fn is_fenced_from(&self, epoch: Epoch) -> bool {
        self.fence > Some(epoch) && self.config.rules.keep(HolderRule::Fence)
    }

    fn raise_fence(&mut self, epoch: Epoch) {
        self.fence = self.fence.max(Some(epoch));
    }

    fn blame(&mut self, fault: &Fault) {
        self.entries.each(|entry| {
            if entry.is_open() {
                entry.setbacks.fault = Some(fault.clone());
            }
        });
    }
}
