//! Feeding: free capacity goes first to those who are short of their share, and what they miss is recalled from those who
//! hold most.
//!
//! A holder is *short* when it has less than its share by more than the tolerance δ: the one that has just reported at
//! once, others by twice that. Those who miss least come first, so that one who misses much does not hold up many who
//! miss little. What comes back for them bit by bit is gathered, and granted when it makes a quarter of a share, half of
//! what is missing, or the whole; or when nothing more is on its way. What is missing beyond what is free and on its way
//! back is recalled from the fullest, first down to their shares. Where the level has moved by less than a message is
//! worth, nobody has more than that: then down to `1 - δ` of their shares, each of them a message. So a gain `g` at a level `λ` costs no more than `2g / (δλ) + 1`
//! recalls, whatever the number of holders, and nobody who is recalled is short.
//!
//! A debt is fed in the same way. What one turn tells is bounded; others are heard before the next one.

use lessor_proto::{Amount, Time};

use super::slab::Slot;
use super::{CallContext, Resource};
use crate::streams::Peers;

/// The most grants of one turn.
pub(super) const SLICE: usize = 64;

/// The part of the tolerance by which a recall goes below a share: less than all of it, so that it is not fed back.
const DIP: f64 = 0.9;

/// The work that a turn has done.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Turn {
    /// Grants that were made.
    pub(super) told: usize,
    /// Holders that were looked at.
    pub(super) tries: usize,
}

/// A holder that could give something back.
#[derive(Clone, Copy, Debug)]
struct Giver {
    slot: Slot,
    holds: Amount,
    /// The least that it is to keep.
    keeps: Amount,
}

// === impl Giver ===

impl Giver {
    fn yields(&self) -> Amount {
        self.holds.saturating_sub(self.keeps)
    }
}

// === impl Resource ===

impl Resource {
    /// Notes whether the holder at `slot`, which has just been heard, is short of its share. Where nobody listens nothing can
    /// be recalled for it.
    pub(super) fn note_shortage(&mut self, now: Time, slot: Slot) {
        if self.pusher.has_listeners() {
            let missing = self.missing(now, slot, self.tolerance());
            self.pusher.hear_missing(now, slot, missing);
        }
    }

    /// The same of one that has just been granted something.
    pub(super) fn look_for_shortage(&mut self, now: Time, slot: Slot) {
        let missing = self.missing(now, slot, self.tolerance());
        self.pusher.set_missing(slot, missing);
    }

    /// The amount that the holder at `slot` misses of its share, if that is more than `tolerance` of it.
    fn missing(&self, now: Time, slot: Slot, tolerance: f64) -> Amount {
        let is_shared = !self.terms.is_whole() && self.holders.shares().policy().is_bounded();
        if !is_shared || self.is_learning(now) || self.is_frozen() {
            return Amount::ZERO;
        }
        let (holds, due) = (self.holds(slot), self.due(now, slot));
        let is_short =
            holds < due && self.differs(holds, due) && holds.as_f64() < due.as_f64() * (1.0 - tolerance);
        if is_short { due.saturating_sub(holds) } else { Amount::ZERO }
    }

    /// Grants what is free to those who are short, and recalls what they miss: no more than `most` grants.
    pub(super) fn feed_short(
        &mut self,
        now: Time,
        others: &[Slot],
        most: usize,
        cx: CallContext<'_>,
        peers: &mut Peers,
    ) -> Turn {
        let mut turn = Turn { told: 0, tries: self.find_short(now, most) };
        let line: Vec<Slot> = self.pusher.shortage().line(most);
        for slot in line {
            turn.tries += 1;
            self.look_for_shortage(now, slot);
            if !self.pusher.shortage().has(slot) {
                // Others behind it may have what is due to them too.
                self.pusher.unsettle_if(!self.pusher.shortage().is_empty());
                continue;
            }
            let (holds, target) = (self.holds(slot), self.target(now, slot));
            let reachable = self.reachable(slot, target);
            let gain = reachable.saturating_sub(holds);
            let is_enough = reachable.as_f64() >= target.as_f64() * (1.0 - self.tolerance() / 2.0)
                || gain.as_micros() >= target.as_micros() / 4
                || gain >= target.saturating_sub(reachable);
            if gain > Amount::ZERO && is_enough && self.push(now, slot, cx, peers) {
                turn.told += 1;
            }
        }
        let recalled = self.recall_missing(now, others, most - turn.told, cx, peers);
        Turn { told: turn.told + recalled.told, tries: turn.tries + recalled.tries }
    }

    /// The capacity that is free beside what others miss who are in line: nobody passes them for having just been
    /// heard. Without limit where nobody else is.
    pub(super) fn free_beside(&self, slot: Slot) -> Amount {
        match self.pusher.shortage().of_others(slot) {
            Amount::ZERO => Amount::MAX,
            others => self.ledger.free().saturating_sub(others),
        }
    }

    /// The most that the holder at `slot` may have of what is free beside the line; nothing at all: what is on its way back is
    /// gathered for it, and granted in parts that are worth it ([`Resource::feed_short`]). Without limit where nothing is on
    /// its way.
    pub(super) fn most_beside_line(&self, slot: Slot) -> Option<Amount> {
        let shortage = self.pusher.shortage();
        if shortage.is_empty() || shortage.coming() == 0 {
            return Some(Amount::MAX);
        }
        (!shortage.has(slot)).then(|| self.holds(slot).saturating_add(self.free_beside(slot)))
    }

    /// Puts those into the line who have fallen short without having said anything. Returns how many were looked at.
    fn find_short(&mut self, now: Time, most: usize) -> usize {
        let tolerance = 2.0 * self.tolerance();
        let mut found = Vec::new();
        for priority in self.pusher.listeners().priorities() {
            let level = self.level(priority).unwrap_or(f64::INFINITY) * (1.0 - tolerance);
            let below = self.pusher.listeners().below(priority, level).take(most);
            found.extend(below.filter(|&slot| !self.pusher.shortage().has(slot)));
        }
        for &slot in &found {
            let missing = self.missing(now, slot, tolerance);
            if missing > Amount::ZERO {
                self.pusher.set_missing(slot, missing);
            }
        }
        found.len()
    }

    /// Looks again at those who missed most, which may be less by now. Returns whether there may be more of them.
    fn refresh_line(&mut self, now: Time) -> bool {
        for _ in 0..SLICE {
            let Some((before, slot)) = self.pusher.shortage().greatest() else { return false };
            let missing = self.missing(now, slot, self.tolerance());
            if missing.as_micros() == before {
                return false;
            }
            self.pusher.set_missing(slot, missing);
        }
        true
    }

    /// Recalls what is missing, and neither free nor on its way.
    fn recall_missing(
        &mut self,
        now: Time,
        others: &[Slot],
        most: usize,
        cx: CallContext<'_>,
        peers: &mut Peers,
    ) -> Turn {
        if self.refresh_line(now) {
            self.pusher.unsettle();
            return Turn { told: 0, tries: SLICE };
        }
        let (free, debt) = (self.ledger.free(), self.ledger.excess());
        let need = self.pusher.shortage().sum() + u128::from(debt.as_micros());
        let there = u128::from(free.as_micros()) + self.pusher.shortage().coming();
        let need = Amount::from_micros(u64::try_from(need.saturating_sub(there)).unwrap_or(u64::MAX));
        let (allowed, most_need) = self.pusher.batch().allow(now, need);
        let (most, mut need) = (most.min(allowed), most_need);
        if most == 0 {
            return Turn::default();
        }
        let mut turn = Turn::default();
        for dip in [0.0, DIP * self.tolerance()] {
            // More than that is missing for another reason: somebody does not answer, or nobody knows who has it.
            if dip > 0.0 && need.as_f64() > self.tolerance() * self.ledger.lent() as f64 / 1e6 {
                break;
            }
            let (last, mut unranked) = (turn.tries + 2 * SLICE, None);
            while need > Amount::ZERO && turn.told < most && turn.tries < last {
                let giver = self
                    .fullest(now, dip)
                    .or_else(|| unranked.get_or_insert_with(|| self.others_by_yield(now, others, dip)).pop());
                let Some(giver) = giver else { break };
                turn.tries += 1;
                let least = Amount::from_f64(giver.holds.as_f64() * self.tolerance());
                let gives = need.max(least).min(giver.yields());
                let keeps = giver.holds.saturating_sub(gives);
                if self.push_at_most(now, giver.slot, keeps, cx, peers) {
                    turn.told += 1;
                    need = need.saturating_sub(gives);
                    self.note_recall(now, giver.slot);
                } else if !self.pusher.listeners().is_parked(giver.slot) {
                    // Nothing can be granted to it, nor to others.
                    break;
                }
            }
        }
        self.pusher.batch().recalled(turn.told, most_need.saturating_sub(need));
        turn
    }

    /// The holder at `slot` has been granted less than it is charged for: the rest is on its way back.
    pub(super) fn note_recall(&mut self, now: Time, slot: Slot) {
        let coming = self.holders.at(slot).account().charge().saturating_sub(self.holds(slot));
        if coming > Amount::ZERO {
            self.pusher.note_recall(now, slot, coming);
        }
    }

    /// Of those with a rank the one that could give most back, of the least priority first, if it is to keep `1 - dip` of
    /// its share.
    fn fullest(&self, now: Time, dip: f64) -> Option<Giver> {
        self.pusher.listeners().priorities().into_iter().rev().find_map(|priority| {
            let givers =
                self.pusher.listeners().fullest(priority).filter_map(|slot| self.giver(now, slot, dip));
            givers.max_by_key(Giver::yields)
        })
    }

    /// Those without a rank that could give something back, the fullest last.
    fn others_by_yield(&self, now: Time, others: &[Slot], dip: f64) -> Vec<Giver> {
        let listening = others.iter().filter(|slot| !self.pusher.listeners().is_parked(**slot));
        let mut givers: Vec<Giver> = listening.filter_map(|&slot| self.giver(now, slot, dip)).collect();
        givers.sort_by_key(Giver::yields);
        givers
    }

    fn giver(&self, now: Time, slot: Slot, dip: f64) -> Option<Giver> {
        let (holds, target) = (self.holds(slot), self.target(now, slot));
        let share = match self.pusher.listeners().rank_of(slot) {
            Some(rank) => {
                self.level(rank.priority).map_or(f64::INFINITY, |level| level * f64::from(rank.weight))
            }
            None => target.as_f64(),
        };
        let keeps = target.min(Amount::from_f64(share * (1.0 - dip)));
        let gives = holds.saturating_sub(keeps);
        let is_worth = gives > Amount::ZERO && gives.as_f64() >= holds.as_f64() * self.tolerance() / 2.0;
        (is_worth && self.differs(holds, keeps)).then_some(Giver { slot, holds, keeps })
    }
}
