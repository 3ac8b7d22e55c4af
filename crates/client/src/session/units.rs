//! Units on request: what limiters with too small a lease ask for, and what is sent to them.
//!
//! A grantor that says when units are due sends them on the stream as well, to whoever asks. A limiter does so as long as
//! there is a stream on which its resource is granted; without one it goes by the moments at which they are due.
//!
//! How many units are asked for is counted from the beginning of the stream, with those that were sent. So a request says
//! all there is to be said, and it does not matter whether it crosses what is sent.

use lessor_proto::ResourceId;
use lessor_proto::message::{UnitsAsked, Up};

use super::entry::Entry;
use super::line::{Line, Open};
use super::{Action, Session};
use crate::allowance::Allowance;
use crate::holding::Rung;
use crate::limiter::Wish;

// === impl Session ===

impl Session {
    /// The limiter of `resource` wants this from here on.
    pub fn wish(&mut self, resource: &ResourceId, wish: Wish) {
        let Ok(place) = self.find(resource) else { return };
        let entry = &mut self.entries[place];
        // What is kept for those who do not wait only runs down.
        let before = std::mem::replace(&mut entry.streamed.wish, wish);
        let is_news = before.missing != wish.missing || before.keep.is_none() && wish.keep.is_some();
        if is_news && matches!(self.streams.line, Line::Open(_)) {
            self.streams.wished.insert(resource.clone());
        }
    }

    /// Units that were sent since this was last asked, for the limiter of a resource.
    pub fn next_units(&mut self) -> Option<(ResourceId, u32)> {
        self.streams.units.pop_front()
    }

    pub(super) fn on_units(&mut self, resource: ResourceId, units: u32) {
        if let Ok(place) = self.find(&resource) {
            let streamed = &mut self.entries[place].streamed;
            streamed.units += u64::from(units);
            // By so much less is missing, which need not be said.
            streamed.wish.missing = streamed.wish.missing.saturating_sub(units);
            self.streams.units.push_back((resource, units));
        }
    }

    /// Asks for the units that one resource lacks.
    pub(super) fn ask_units_up(&mut self, open: Open) -> Option<Action> {
        while let Some(resource) = self.streams.wished.pop_first() {
            let Ok(place) = self.find(&resource) else { continue };
            let streamed = &self.entries[place].streamed;
            if streamed.granted.is_some() {
                let (asked, keep) = (streamed.units + u64::from(streamed.wish.missing), streamed.wish.keep);
                return Some(self.send(open.id, Up::Units(UnitsAsked { resource, asked, keep })));
            }
        }
        None
    }

    /// `own`, what `entry` allows on that rung, where its units are asked for if they can be.
    pub(super) fn with_units(&self, entry: &Entry, own: Allowance, rung: Rung) -> Allowance {
        let is_heard = matches!(self.streams.line, Line::Open(_)) && entry.streamed.granted.is_some();
        match own.capacity {
            Some(asked) if rung == Rung::Leased && is_heard && entry.holding.is_small() => {
                Allowance { asked, ..own }
            }
            _ => own,
        }
    }
}
