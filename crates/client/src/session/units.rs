//! Units on request: what limiters with too small a lease ask for, and what is sent to them.
//!
//! A grantor that says when units are due sends them on the stream as well, to whoever asks. A limiter does so as long as
//! there is a stream on which its resource is granted; without one it goes by the moments at which they are due.
//!
//! How many units are asked for is counted from the beginning of the stream, with those that were sent, and so is how many of
//! those that were to be kept are used or lost. So a request says all there is to be said, and it does not matter whether it
//! crosses what is sent.

use lessor_proto::ResourceId;
use lessor_proto::message::{UnitsAsked, Up};

use super::entry::Entry;
use super::line::{LineState, OpenStream};
use super::{Action, Session};
use crate::allowance::Allowance;
use crate::holding::Rung;
use crate::limiter::{SentUnits, UnitWish};

// === impl Session ===

impl Session {
    /// The limiter of `resource` wants this from here on.
    /// Whether that is to be said.
    pub fn wish(&mut self, resource: &ResourceId, wish: UnitWish) -> bool {
        let Some(place) = self.find(resource) else { return false };
        let before = std::mem::replace(&mut self.entries.edit(place).streamed.wish, wish);
        let is_said = wish.is_news_after(&before) && matches!(self.streams.line, LineState::Open(_));
        if is_said {
            self.streams.side_mut().wished.insert(resource.clone());
        }
        is_said
    }

    /// Units that were sent since this was last asked, for the limiter of a resource.
    pub fn next_units(&mut self) -> Option<(ResourceId, SentUnits)> {
        self.streams.side.as_mut()?.units.pop_front()
    }

    pub(super) fn on_units(&mut self, resource: ResourceId, sent: SentUnits) {
        if let Some(place) = self.find(&resource) {
            let mut entry = self.entries.edit(place);
            let streamed = &mut entry.streamed;
            streamed.units += u64::from(sent.units);
            let kept = sent.keep.map_or(sent.units, |(kept, _)| kept.min(sent.units));
            streamed.kept += u64::from(kept);
            // By so much less is missing and more is held, which need not be said.
            let wish = &mut streamed.wish;
            wish.missing = wish.missing.saturating_sub(sent.units);
            wish.kept = wish.kept.saturating_sub(kept);
            wish.held = wish.held.saturating_add(kept);
            drop(entry);
            self.streams.side_mut().units.push_back((resource, sent));
        }
    }

    /// Asks for the units that one resource lacks.
    pub(super) fn ask_units_up(&mut self, open: OpenStream) -> Option<Action> {
        while let Some(resource) = self.streams.side.as_mut()?.wished.pop_first() {
            let Some(place) = self.find(&resource) else { continue };
            let streamed = &self.entries[place].streamed;
            if streamed.granted.is_some() {
                let UnitWish { missing, kept, keep, held } = streamed.wish;
                let asked = streamed.units + u64::from(missing);
                let done = streamed.kept.saturating_sub(held.into());
                let asked = UnitsAsked { resource, asked, keep, kept: Some(kept), done: Some(done) };
                return Some(self.send(open.id, Up::Units(asked)));
            }
        }
        None
    }

    /// `own`, what `entry` allows on that rung, where its units are asked for if they can be.
    pub(super) fn with_units(&self, entry: &Entry, own: Allowance, rung: Rung) -> Allowance {
        let is_heard = matches!(self.streams.line, LineState::Open(_)) && entry.streamed.granted.is_some();
        match own.capacity {
            Some(asked) if rung == Rung::Leased && is_heard && entry.holding.is_small() => {
                Allowance { asked, ..own }
            }
            _ => own,
        }
    }
}
