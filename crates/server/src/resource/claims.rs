//! The claims of a resource: what holders have shown of what earlier leaders left out, and what they may keep of it.
//!
//! What is claimed is taken out of the ghost. Where the part that a claimant gives up is not free before the ghost ends, its
//! claim is *deferred*: what it does not keep goes back to the ghost. What a holder shows and cannot claim is remembered for
//! as long as that lasts: it is told of nothing smaller.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_proto::{Amount, Time};

use super::certain::Certain;
use super::echoed::Echoed;
use super::slab::Slot;
use crate::token::{Doubt, PollerLife};

/// All claims of one resource.
#[derive(Clone, Default, Debug)]
pub(super) struct GhostClaims {
    /// The part of each claim that was not given up, of those that are deferred.
    deferred: BTreeMap<Slot, Amount>,
    /// The amounts that count for certain at the node above.
    certain: Certain,
    /// The leases that were echoed and count for longer than the ghost.
    echoed: Echoed,
    /// The capacity that holders have shown to have of an earlier life of this node, of which it knows nothing, and
    /// until when.
    shown: BTreeMap<Slot, (Amount, Time)>,
    /// The nodes below which more may be out than they have shown to a server that learns, and what they have shown: they are
    /// granted no more before it has learnt what is out.
    learnt: BTreeMap<Slot, Amount>,
    /// The holders that use units of a gauge which nobody counts, and when all of those have ended.
    uncounted: BTreeMap<Slot, Time>,
    /// The amount of claims that wait until the record says that they outlast what is left from before.
    room: Amount,
    /// The outcomes since somebody last asked.
    tally: ClaimTally,
}

/// The outcomes of what holders showed from earlier epochs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct ClaimTally {
    /// Believed, at least in part.
    pub honoured: u64,
    /// Without a token.
    pub missing: u64,
    /// With a token whose seal does not fit.
    pub forged: u64,
    /// Of this epoch, or of one to come.
    pub not_earlier: u64,
    /// Of an epoch before the line of succession of this node, which the node above counts.
    pub before_record: u64,
    /// Of more than the token says: what it says was believed.
    pub too_large: u64,
}

// === impl GhostClaims ===

impl GhostClaims {
    /// A claim of `amount` was honoured.
    pub(super) fn honour(&mut self, amount: Amount) {
        self.tally.honoured += u64::from(amount > Amount::ZERO);
    }

    /// A claim was not believed, or not in full.
    pub(super) fn doubt(&mut self, doubt: Doubt) {
        self.tally.doubt(doubt);
    }

    /// Whether there are outcomes of which nobody has asked yet.
    pub(super) fn has_tally(&self) -> bool {
        self.tally != ClaimTally::default()
    }

    /// Returns the outcomes since this was last asked.
    pub(super) fn take_tally(&mut self) -> ClaimTally {
        std::mem::take(&mut self.tally)
    }

    /// The part of its claim of `amount` that the holder at `slot` gives up goes back to the ghost.
    pub(super) fn defer(&mut self, slot: Slot, amount: Amount) {
        self.deferred.insert(slot, amount);
    }

    /// The part of its claim that the holder at `slot` has not given up, if that claim is deferred.
    pub(super) fn deferred(&self, slot: Slot) -> Option<Amount> {
        self.deferred.get(&slot).copied()
    }

    /// All that are deferred.
    pub(super) fn all_deferred(&self) -> impl Iterator<Item = (Slot, Amount)> {
        self.deferred.iter().map(|(&slot, &amount)| (slot, amount))
    }

    /// The holder at `slot` is about to be charged for no more than `left`. Returns what of its claim goes back to the ghost.
    #[must_use]
    pub(super) fn give_up(&mut self, slot: Slot, left: Amount) -> Amount {
        let Some(kept) = self.deferred.get_mut(&slot) else { return Amount::ZERO };
        let given_up = kept.saturating_sub(left);
        *kept = left.min(*kept);
        given_up
    }

    /// Whether any claim is deferred.
    pub(super) fn is_any_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Defers nothing any more. Returns whose claims were.
    pub(super) fn end_deferral(&mut self) -> Vec<Slot> {
        std::mem::take(&mut self.deferred).into_keys().collect()
    }

    /// The holder at `slot` is forgotten. Returns what of its claim goes back to the ghost.
    #[must_use]
    pub(super) fn forget(&mut self, slot: Slot) -> Amount {
        self.shown.remove(&slot);
        self.learnt.remove(&slot);
        self.uncounted.remove(&slot);
        self.deferred.remove(&slot).unwrap_or_default()
    }

    /// The holder at `slot` has `amount` of an earlier life of this node until then. Who is told nothing goes on being told
    /// nothing.
    pub(super) fn show(&mut self, now: Time, slot: Slot, amount: Amount, until: Time) {
        match self.shown.get_mut(&slot) {
            Some((Amount::MAX, end)) if now < *end => *end = until.max(*end),
            _ => _ = self.shown.insert(slot, (amount, until)),
        }
    }

    /// The holder at `slot` is told nothing before `until`, whatever is due to it.
    pub(super) fn silence(&mut self, slot: Slot, until: Time) {
        self.shown.insert(slot, (Amount::MAX, until));
    }

    /// Whether anybody has shown anything that it cannot claim.
    pub(super) fn is_any_shown(&self) -> bool {
        !self.shown.is_empty()
    }

    /// Whether the holder at `slot` has shown more than `amount`, for longer than until `now`.
    pub(super) fn has_shown_more(&self, now: Time, slot: Slot, amount: Amount) -> bool {
        self.shown.get(&slot).is_some_and(|&(shown, until)| now < until && amount < shown)
    }

    /// The holder at `slot` is granted as much as it has shown.
    pub(super) fn match_shown(&mut self, slot: Slot) {
        self.shown.remove(&slot);
    }

    /// The node at `slot` has shown `amount`, and is charged for more.
    pub(super) fn learn(&mut self, slot: Slot, amount: Amount) {
        self.learnt.insert(slot, amount);
    }

    /// The most that the holder at `slot` is granted of what it is charged for, before the server has learnt what is out.
    pub(super) fn most_learnt(&self, slot: Slot) -> Amount {
        self.learnt.get(&slot).copied().unwrap_or(Amount::MAX)
    }

    /// The holder at `slot` is charged for all units that it uses.
    pub(super) fn count_use(&mut self, slot: Slot) {
        self.uncounted.remove(&slot);
    }

    /// The holder at `slot` uses units that nobody counts. If it is told nothing from here on, they have ended at `end`.
    pub(super) fn await_end_of_use(&mut self, slot: Slot, end: Time) {
        self.uncounted.entry(slot).or_insert(end);
    }

    /// Whether the holder at `slot` may use units at `now` that nobody counts.
    pub(super) fn uses_uncounted(&self, now: Time, slot: Slot) -> bool {
        self.uncounted.get(&slot).is_some_and(|&end| now < end)
    }

    /// A claim waits for `room` beside what is left from before.
    pub(super) fn wait_for(&mut self, room: Amount) {
        self.room = self.room.max(room);
    }

    /// The room that claims wait for.
    pub(super) fn room(&self) -> Amount {
        self.room
    }

    /// A write has made the room for those who wait, or they say so again.
    pub(super) fn forget_room(&mut self) {
        self.room = Amount::ZERO;
    }

    /// The node above counts `amount` for certain until `end`, which need not be told more exactly than by `grain`.
    pub(super) fn count_above(&mut self, end: Time, amount: Amount, grain: Duration) {
        self.certain.add(end, amount, grain);
    }

    /// The amounts that the node above counts for certain, of `most` in all, each until its time.
    pub(super) fn counted_above(&self, now: Time, most: Amount) -> Vec<(Amount, Time)> {
        self.certain.parts(now, most)
    }

    /// The leases that were echoed.
    pub(super) fn echoed(&self) -> &Echoed {
        &self.echoed
    }

    /// `name` goes on with `amount` of the lease that it shows until then.
    pub(super) fn note_echo(&mut self, name: &str, life: PollerLife, amount: Amount, until: Time) {
        self.echoed.note(name, life, amount, until);
    }

    /// `name` has claimed its lease.
    pub(super) fn settle_echo(&mut self, name: &str, life: PollerLife) {
        self.echoed.remove(name, life);
    }

    /// Drops what was echoed and has ended. Returns what is left of it, and when the first of it ends.
    pub(super) fn echoed_at(&mut self, now: Time) -> Option<(Amount, Time)> {
        self.echoed.left(now)
    }
}

// === impl ClaimTally ===

impl ClaimTally {
    /// One more that was not believed, or not in full.
    pub(crate) fn doubt(&mut self, doubt: Doubt) {
        match doubt {
            Doubt::Missing => self.missing += 1,
            Doubt::Forged => self.forged += 1,
            Doubt::NotEarlier => self.not_earlier += 1,
            Doubt::BeforeRecord => self.before_record += 1,
            Doubt::TooLarge => self.too_large += 1,
        }
    }

    /// These as well.
    pub(crate) fn add(&mut self, other: ClaimTally) {
        self.honoured += other.honoured;
        self.missing += other.missing;
        self.forged += other.forged;
        self.not_earlier += other.not_earlier;
        self.before_record += other.before_record;
        self.too_large += other.too_large;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_told_nothing_is_told_nothing_whatever_it_shows_meanwhile() {
        let (units, at) = (Amount::from_units, Time::from_nanos);
        let (mut claims, slot) = (GhostClaims::default(), Slot::default());
        claims.show(at(0), slot, units(18), at(10));
        assert!(
            !claims.has_shown_more(at(1), slot, units(18)) && claims.has_shown_more(at(1), slot, units(17))
        );
        claims.silence(slot, at(20));
        claims.show(at(2), slot, units(18), at(10));
        assert!(claims.has_shown_more(at(19), slot, units(18)), "it has shown more since");
        assert!(!claims.has_shown_more(at(20), slot, units(17)), "that is over");
        claims.show(at(19), slot, units(18), at(30));
        assert!(claims.has_shown_more(at(29), slot, units(18)), "what it shows lasts longer");
        claims.show(at(30), slot, units(5), at(40));
        assert!(!claims.has_shown_more(at(31), slot, units(5)), "it may be told of as much again");
    }
}
