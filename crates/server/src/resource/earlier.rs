//! Earlier leaders of nodes below: how long that lasts at the most which they had.
//!
//! A leader of a node counts what those before it may have left out as long as its record says: until the longest of their
//! leases has ended, counted from when they led last. Their own lease from here may have ended long before, and what they
//! granted under it no later. So it is told with each grant, for a while, when that is over: what they are charged for when
//! the new leader is first heard, and what they may have had from earlier leaders of this node, whichever lasts longer.
//!
//! It is told only when this leader has certainly led since it heard of the new one. Until then it may have a successor of
//! which it does not know, and that one may have granted something to the old leader below before that fell silent.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lessor_proto::{Amount, Time};

use super::slab::Slot;
use super::{CallContext, Resource};
use crate::mutation::Rule;

/// The leaders before those that are heard.
#[derive(Clone, Debug)]
pub(super) struct EarlierLeaders {
    /// Those of nodes below: what they had when the present ones were first heard of.
    below: BTreeMap<Slot, Earlier>,
    /// The present ones who have not been told yet when all of that is over.
    untold: BTreeSet<Slot>,
    /// When all is over that those of this node granted; absent: that is not known.
    end_here: Option<Time>,
}

/// The holdings of the leaders of a node below before the one that is heard now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Earlier {
    /// When that one was first heard.
    heard: Time,
    /// The amount that those before it were charged for at that time, and until when.
    out: Option<(Amount, Time)>,
    /// The end of all they had that it was told last.
    told: Option<Time>,
}

/// For so many leases a new leader is told: then its ghost is over in any case.
const TOLD_FOR: u32 = 2;

// === impl EarlierLeaders ===

impl EarlierLeaders {
    /// All is over by `end_here` that earlier leaders of this node granted, if that is known.
    pub(super) fn new(end_here: Option<Time>) -> EarlierLeaders {
        EarlierLeaders { below: BTreeMap::new(), untold: BTreeSet::new(), end_here }
    }

    /// When all is over that earlier leaders of this node granted is not known any more.
    pub(super) fn forget_end(&mut self) {
        self.end_here = None;
    }

    /// The leader at `slot` is heard for the first time; those before it are charged for `out`, and until then.
    pub(super) fn succeed(&mut self, now: Time, slot: Slot, out: Option<(Amount, Time)>) {
        self.below.insert(slot, Earlier { heard: now, out, told: None });
        self.untold.insert(slot);
    }

    /// The amount that those before the leader at `slot` were charged for, and until when.
    pub(super) fn out(&self, slot: Slot) -> Option<(Amount, Time)> {
        self.below.get(&slot)?.out
    }

    pub(super) fn forget(&mut self, slot: Slot) {
        self.below.remove(&slot);
        self.untold.remove(&slot);
    }

    /// Whether somebody is to be told something when it is certain that this leader has led until later.
    pub(super) fn has_untold(&self) -> bool {
        self.end_here.is_some() && !self.untold.is_empty()
    }

    /// Those who can be told as this leader has certainly led until `led`.
    fn confirmed(&self, led: Time) -> Vec<Slot> {
        let is_heard = |slot: &Slot| self.below.get(slot).is_some_and(|earlier| earlier.heard <= led);
        self.untold.iter().copied().filter(is_heard).collect()
    }

    /// All is over by `end` that earlier leaders of this node granted, if not sooner. Returns who was told of something later.
    fn end_by(&mut self, end: Time) -> Vec<Slot> {
        if self.end_here.is_none_or(|here| end >= here) {
            return Vec::new();
        }
        self.end_here = Some(end);
        let is_sooner = |earlier: &Earlier| earlier.told.is_some_and(|told| earlier.end(end) < told);
        self.below.iter().filter(|(_, earlier)| is_sooner(earlier)).map(|(&slot, _)| slot).collect()
    }
}

// === impl Resource ===

impl Resource {
    /// Returns the longest time for which the holdings of leaders before the one at `slot` last, to be told at
    /// `now`; nothing if that is not known for certain.
    pub(super) fn tell_earlier(&mut self, now: Time, slot: Slot, cx: CallContext<'_>) -> Option<Duration> {
        let (here, rules) = (self.earlier.end_here?, cx.config.rules);
        let is_certain = |heard: Time| heard <= cx.led || !rules.keep(Rule::EarlierConfirmed);
        let earlier = self.earlier.below.get_mut(&slot).filter(|earlier| is_certain(earlier.heard))?;
        self.earlier.untold.remove(&slot);
        if now >= earlier.heard + self.terms.lease_length * TOLD_FOR {
            return None;
        }
        let end = if rules.keep(Rule::EarlierCounted) { earlier.end(here) } else { Time::ZERO };
        earlier.told = Some(end);
        Some(end.since(now))
    }

    /// Whether somebody is to be told something when it is certain that this leader has led until later.
    pub(crate) fn has_untold(&self) -> bool {
        self.earlier.has_untold()
    }

    /// This leader has certainly led until `led`: those who listen are told what could not be told before.
    pub(crate) fn confirm(&mut self, led: Time) {
        let confirmed = self.earlier.confirmed(led);
        self.owe(&confirmed);
    }

    /// By `end` all is over that leaders of this node before this one had from the node above, and granted under it: what is
    /// left of that counts no longer, and those below are told.
    pub(crate) fn end_ghost(&mut self, now: Time, end: Time) {
        self.ledger.end_ghost(end);
        let told = self.earlier.end_by(end);
        self.owe(&told);
        self.advance(now);
    }
}

// === impl Earlier ===

impl Earlier {
    /// When all is over that those leaders had, if what they had from earlier leaders of this node is over by `here`.
    fn end(&self, here: Time) -> Time {
        self.out.map_or(Time::ZERO, |(_, end)| end).max(here)
    }
}
