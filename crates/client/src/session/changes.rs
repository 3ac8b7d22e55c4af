//! Changes of what a program may use: what it has to hear before anything is promised of that.

use std::collections::VecDeque;

use lessor_proto::Time;

use super::{Change, Session};

// === impl Session ===

impl Session {
    /// The next change for the program at `now`, before anything is sent: what [`Session::poll`] would give out as well.
    pub fn next_change(&mut self, now: Time) -> Option<Change> {
        if now >= self.next_end {
            self.settle(now);
        }
        self.hand_out()
    }

    /// Gives back what reports of the entries at `places` do not hold any more. Returns whether there is something that the
    /// program has to hear before they are built: what is in use is read after that.
    pub(super) fn gives_back(&mut self, now: Time, places: &[usize]) -> bool {
        let config = &self.config;
        let transport = self.streams.transport;
        let given_back =
            places.iter().filter(|&&place| self.entries[place].give_back(config, transport)).count();
        if given_back > 0 {
            self.settle_at(now, places);
        }
        !self.changes.is_empty()
    }

    /// The next change, of which the program hears now.
    pub(super) fn hand_out(&mut self) -> Option<Change> {
        let change = self.changes.pop_front()?;
        if self.changes.is_empty() {
            // Of millions of sessions hardly any has something to say at a time.
            self.changes = VecDeque::new();
        }
        if let Ok(place) = self.find(&change.resource) {
            self.entries[place].handed_out(change.allowance, &self.config);
        }
        Some(change)
    }

    /// Collects what has changed for the program.
    pub(super) fn settle(&mut self, now: Time) {
        self.tend_floors(now);
        for place in 0..self.entries.len() {
            if !self.entries[place].is_floor {
                self.note_change(now, place);
            }
        }
        let ends =
            self.entries.iter().filter(|entry| entry.is_open()).filter_map(|entry| entry.holding.end(now));
        self.next_end = ends.min().unwrap_or(Time::MAX);
    }

    /// The same where nothing but the entries at `places` has changed, without a look at each of thousands: gauges and keys of
    /// windows have no floors, and so are nothing to each other. An end that was pushed out is looked at when it would have come.
    pub(super) fn settle_at(&mut self, now: Time, places: &[usize]) {
        if now >= self.next_end || !places.iter().all(|&place| self.entries[place].stands_alone()) {
            return self.settle(now);
        }
        for &place in places {
            self.note_change(now, place);
            let entry = &self.entries[place];
            let end = entry.holding.end(now).filter(|_| entry.is_open());
            self.next_end = self.next_end.min(end.unwrap_or(Time::MAX));
        }
    }

    /// Collects what has changed of the entry at `place`.
    fn note_change(&mut self, now: Time, place: usize) {
        let (allowance, rung) = self.standing(now, place);
        self.changes.extend(self.entries[place].change(allowance, rung));
    }
}
