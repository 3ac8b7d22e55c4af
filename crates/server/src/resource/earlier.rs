//! Earlier leaders of nodes below: how long that lasts at the most which they had.
//!
//! A leader of a node counts what those before it may have left out as long as its record says: until the longest of their
//! leases has ended, counted from when they led last. Their own lease from here may have ended long before, and what they
//! granted under it no later. So it is told with each grant, for a while, when that is over: what they are charged for when
//! the new leader is first heard, and what they may have had from earlier leaders of this node, whichever lasts longer.
//!
//! It is told only when this leader has certainly led since it heard of the new one. Until then it may have a successor of
//! which it does not know, and that one may have granted something to the old leader below before that fell silent.

use std::time::Duration;

use lessor_proto::{Amount, Time};

use super::slab::Slot;
use super::{CallContext, Resource};
use crate::mutation::Mutation;

/// The holdings of the leaders of a node below before the one that is heard now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Earlier {
    /// When that one was first heard.
    heard: Time,
    /// The amount that those before it were charged for at that time, and until when.
    pub(super) out: Option<(Amount, Time)>,
    /// The end of all they had that it was told last.
    told: Option<Time>,
}

/// For so many leases a new leader is told: then its ghost is over in any case.
const TOLD_FOR: u32 = 2;

// === impl Resource ===

impl Resource {
    /// Returns the longest time for which the holdings of leaders before the one at `slot` last, to be told at
    /// `now`; nothing if that is not known for certain.
    pub(super) fn tell_earlier(&mut self, now: Time, slot: Slot, cx: CallContext<'_>) -> Option<Duration> {
        let (here, rules) = (self.earlier_here?, cx.config.rules);
        let is_certain = |heard: Time| heard <= cx.led || rules.lack(Mutation::EarlierUnconfirmed);
        let earlier = self.earlier.get_mut(&slot).filter(|earlier| is_certain(earlier.heard))?;
        self.untold.remove(&slot);
        if now >= earlier.heard + self.terms.lease_length * TOLD_FOR {
            return None;
        }
        let end = if rules.lack(Mutation::EarlierUncounted) { Time::ZERO } else { earlier.end(here) };
        earlier.told = Some(end);
        Some(end.since(now))
    }

    /// Whether somebody is to be told something when it is certain that this leader has led until later.
    pub(crate) fn has_untold(&self) -> bool {
        self.earlier_here.is_some() && !self.untold.is_empty()
    }

    /// This leader has certainly led until `led`: those who listen are told what could not be told before.
    pub(crate) fn confirm(&mut self, led: Time) {
        for slot in &self.untold {
            if self.earlier.get(slot).is_some_and(|earlier| earlier.heard <= led) {
                self.streaming.owe(*slot);
                self.unsettled |= self.streaming.is_owed(*slot);
            }
        }
    }

    /// By `end` all is over that leaders of this node before this one had from the node above, and granted under it: what is
    /// left of that counts no longer, and those below are told.
    pub(crate) fn end_ghost(&mut self, now: Time, end: Time) {
        self.ledger.end_ghost(end);
        if self.earlier_here.is_some_and(|here| end < here) {
            self.earlier_here = Some(end);
            for (&slot, earlier) in &self.earlier {
                if earlier.told.is_some_and(|told| earlier.end(end) < told) {
                    self.streaming.owe(slot);
                    self.unsettled |= self.streaming.is_owed(slot);
                }
            }
        }
        self.advance(now);
    }
}

// === impl Earlier ===

impl Earlier {
    pub(super) fn new(heard: Time, out: Option<(Amount, Time)>) -> Earlier {
        Earlier { heard, out, told: None }
    }

    /// When all is over that those leaders had, if what they had from earlier leaders of this node is over by `here`.
    fn end(&self, here: Time) -> Time {
        self.out.map_or(Time::ZERO, |(_, end)| end).max(here)
    }
}
