//! The stream on which deltas are sent: numbered reports up it, updates that acknowledge them down it.
//!
//! A client has one to its server, and a node one to the node above it.

use std::collections::VecDeque;
use std::time::Duration;

use lessor_proto::Time;
use lessor_proto::message::DomainNews;

use super::Clocks;

/// The least time between two reports, however many questions there are.
const PAUSE: Duration = Duration::from_millis(5);
/// The most reports whose time is remembered.
const MOST_UNACKED: usize = 1_024;
/// Hits that were placed earlier than they were by more than this are said again: they would be forgotten too early.
const MISPLACED: i128 = 500_000_000;

/// The state of one stream of deltas; by default there is none.
#[derive(Clone, Debug, Default)]
pub struct DeltaStream {
    id: Option<u64>,
    /// An update has come that acknowledges a report of this stream.
    has_begun: bool,
    clocks: Clocks,
    /// Reports that are not acknowledged, each with the time at which it was sent.
    unacked: VecDeque<(u64, Time)>,
    /// The number of the last report.
    last: u64,
    sent_at: Option<Time>,
    /// The next report is to be acknowledged at once.
    asks: bool,
    is_urgent: bool,
    /// The least lead of the clock there by which hits were placed on it since all were said.
    placed_by: Option<i128>,
}

// === impl DeltaStream ===

impl DeltaStream {
    /// A stream on which nothing was sent; its first report asks for all that is known there.
    #[must_use]
    pub fn on(id: Option<u64>) -> DeltaStream {
        DeltaStream { id, asks: id.is_some(), ..DeltaStream::default() }
    }

    /// Its number, if there is one.
    #[must_use]
    pub fn id(&self) -> Option<u64> {
        self.id
    }

    /// Whether there is a stream, and an update has come on it.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.id.is_some() && self.has_begun
    }

    /// Whether the next report is to be sent at once.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// The bounds on the clock at the other end, as far as they are known.
    #[must_use]
    pub fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// Has the next report sent at once.
    pub fn hurry(&mut self) {
        self.is_urgent = true;
    }

    /// Has the next report acknowledged at once, and returns the number that it will have; nothing without a stream.
    pub fn ask(&mut self) -> Option<u64> {
        self.id?;
        self.asks = true;
        Some(self.last + 1)
    }

    /// When the next report is to be sent, if one is: at once if it is urgent or a question, and else no sooner than `cadence`
    /// after the last, if there are `deltas`.
    #[must_use]
    pub fn next_deadline(&self, deltas: bool, cadence: Duration) -> Option<Time> {
        self.id?;
        let after = |pause| self.sent_at.map_or(Time::ZERO, |at| at + pause);
        if self.asks || self.is_urgent {
            return Some(after(PAUSE));
        }
        (self.has_begun && deltas).then(|| after(cadence))
    }

    /// A report is being made. Returns whether it is a question; nothing without a stream.
    pub fn take_question(&mut self) -> Option<bool> {
        self.id?;
        self.is_urgent = false;
        Some(std::mem::take(&mut self.asks))
    }

    /// Hits were placed on the clock there at `now` by what was known of it, which may be less than is known by now.
    pub fn placed(&mut self, now: Time, by: &Clocks) {
        self.placed_by = match (self.placed_by, by.least(now)) {
            (Some(before), Some(least)) => Some(before.min(least)),
            (before, least) => before.or(least),
        };
    }

    /// Whether hits that were said are by what is known at `now` much later than they were said to be, so that all are to be said
    /// again. Says so once.
    ///
    /// It is so where all that had come before came slowly.
    pub fn take_misplaced(&mut self, now: Time) -> bool {
        let least = self.clocks.least(now);
        let is_misplaced =
            matches!((self.placed_by, least), (Some(placed), Some(least)) if least - placed > MISPLACED);
        if is_misplaced {
            self.placed_by = None;
        }
        is_misplaced
    }

    /// A report is sent at `now`. Returns its number.
    pub fn sent(&mut self, now: Time) -> u64 {
        self.last += 1;
        self.sent_at = Some(now);
        self.unacked.push_back((self.last, now));
        if self.unacked.len() > MOST_UNACKED {
            self.unacked.pop_front();
        }
        self.last
    }

    /// Takes from an update when it was sent, and when the report that it acknowledges had come there. Returns whether it is
    /// one of this stream: what was sent to whom this has taken the place of speaks of other reports.
    pub fn on_update(&mut self, now: Time, update: &DomainNews) -> bool {
        self.has_begun |= update.begins;
        if !self.has_begun() {
            return false;
        }
        self.clocks.came(now, update.now);
        while let Some(&(id, sent)) = self.unacked.front()
            && id <= update.heard
        {
            if id == update.heard {
                self.clocks.heard(now, sent, update.heard_at);
            }
            self.unacked.pop_front();
        }
        true
    }
}
