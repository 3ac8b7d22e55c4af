//! Changes of what a program may use: what it has to hear before anything is promised of that.

use std::collections::VecDeque;

use lessor_proto::Time;

use super::{Change, Session};

// === impl Session ===

impl Session {
    /// The next change for the program at `now`, before anything is sent: what [`Session::poll`] would give out as well.
    pub fn next_change(&mut self, now: Time) -> Option<Change> {
        if now >= self.entries.next_end() {
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
            places.iter().filter(|&&place| self.entries.edit(place).give_back(config, transport)).count();
        if given_back > 0 {
            self.settle(now);
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
        if let Some(place) = self.find(&change.resource) {
            self.entries.edit(place).handed_out(change.allowance, &self.config);
        }
        Some(change)
    }

    /// Collects what has changed for the program. Only entries that were changed are looked at, those whose leases have ended, and
    /// what they are the floors of.
    pub(super) fn settle(&mut self, now: Time) {
        let changed = self.entries.take_changed(now);
        let mut places = self.entries.with_kin(changed);
        if self.tend_floors(now, &places) {
            let changed = self.entries.take_changed(now);
            places = self.entries.joined(places, changed);
        }
        for place in places {
            if !self.entries[place].is_floor {
                let (allowance, rung) = self.standing(now, place);
                self.changes.extend(self.entries.tell(place, allowance, rung));
            }
        }
    }
}
