//! The rotation: whose turn it is to hold a unit of a gauge that cannot be divided, or a part of a rate that is leased in
//! parts. What is said of units holds for parts.
//!
//! Of a share of 2.3 two units are held for good, and a third one for three *quanta* of time in ten. A seat is kept for
//! everybody who has ever had such a fraction. At a turn the rotation says which seats have a unit more in this quantum;
//! what that takes from one holder and gives to another goes the way of every change of shares, through recalls and the
//! ledger. So a turn can only be late, never unsafe.
//!
//! Between turns the shares may change. Then seats keep their units as far as there are as many, and a unit that is free
//! goes to a seat at once: first to one whose holder has it in hand anyway, and then to the one that would have to wait
//! the shortest time.
//!
//! Who was given a unit at a turn and could not have it in time, because the one before it was still using it, keeps its
//! turn as long as it goes on asking.
//!
//! A holder that polls takes part in the quanta in which it is expected to ask ([`super::polls`]), and a turn that it gets waits for
//! its poll. Meanwhile its lag stays as it is, and what its fraction leaves goes to those who are there. If it does not come
//! its turn was none.

use std::time::Duration;

use lessor_algorithms::{Rotate, Rotation};
use lessor_proto::{Amount, Time};

use super::polls::LastPoll;
use super::reserve::{Short, UnitReserve};
use super::seats::{Seat, SeatId, Seats};
use crate::repository::Template;
use crate::resource::slab::Slot;

/// The turns of a resource; none where nothing is rotated: rates, and what is not limited in sum.
#[derive(Clone, Debug, Default)]
pub(in crate::resource) struct UnitRotation(Option<Box<RotationTurns>>);

#[derive(Clone, Debug)]
struct RotationTurns {
    rotate: Rotate,
    quantum: Duration,
    /// Knows seats by their numbers first: slots are used again.
    rotation: Rotation<SeatId>,
    seats: Seats,
    /// The number of turns that wait for polls.
    waiting: u64,
    reserve: UnitReserve,
    /// When the last turn was taken.
    began: Option<Time>,
    /// When the next one is; absent while there is nothing to take turns for.
    next: Option<Time>,
    /// Whether one was taken at the last look.
    is_new: bool,
    /// Shares have moved since the seats were last looked at.
    stale: bool,
    /// Not before then are they looked at again because of that.
    next_look: Time,
}

/// The claim of one holder, as far as units cannot be divided.
#[derive(Clone, Copy, Debug)]
pub(in crate::resource) struct UnitClaim {
    pub(in crate::resource) slot: Slot,
    pub(in crate::resource) fraction: f64,
    /// It has more than its whole units.
    pub(in crate::resource) holds: bool,
    /// It can be expected to take a unit: it has asked since the last turn, or listens.
    pub(in crate::resource) awake: bool,
    /// Its turns wait for its polls.
    pub(in crate::resource) polls: bool,
    /// It asks at this moment.
    pub(in crate::resource) asks: bool,
}

// === impl UnitRotation ===

impl UnitRotation {
    pub(in crate::resource) fn new(template: &Template) -> UnitRotation {
        let mut rotation = UnitRotation::default();
        rotation.configure(template);
        rotation
    }

    /// Takes turns as `template` says from here on.
    pub(in crate::resource) fn configure(&mut self, template: &Template) {
        let Some((rotate, quantum)) = template.turns() else {
            self.0 = None;
            return;
        };
        let turns = self.0.get_or_insert_with(|| Box::new(RotationTurns::new(rotate, quantum)));
        (turns.rotate, turns.quantum, turns.stale) = (rotate, quantum, true);
        turns.rotation.set_rotate(rotate);
    }

    /// Shares have moved.
    pub(in crate::resource) fn spoil(&mut self) {
        if let Some(turns) = &mut self.0 {
            turns.stale = true;
        }
    }

    /// The holder at `slot` is gone.
    pub(in crate::resource) fn leave(&mut self, slot: Slot) {
        self.note_served(slot);
        if let Some(turns) = &mut self.0 {
            turns.seats.remove(slot);
            turns.reserve.set(slot, None);
        }
    }

    /// The holder at `slot`, which polls, is told at `now` to come back after `told`.
    pub(in crate::resource) fn note_poll(&mut self, now: Time, slot: Slot, told: Duration) {
        if let Some(seat) = self.0.as_mut().and_then(|turns| turns.seats.get_mut(slot)) {
            seat.poll = Some(LastPoll::new(now, told, seat.poll));
        }
    }

    /// The holder at `slot` has all that is due to it.
    pub(in crate::resource) fn note_served(&mut self, slot: Slot) {
        let Some(turns) = &mut self.0 else { return };
        let waited = turns.seats.get_mut(slot).is_some_and(|seat| std::mem::take(&mut seat.waits));
        turns.waiting -= u64::from(waited);
    }

    /// The number of units that others than the holder at `slot` are to find when they ask, as their turn is older: none for
    /// one that waits like them.
    pub(in crate::resource) fn waiting_before(&self, slot: Slot) -> u64 {
        let Some(turns) = &self.0 else { return 0 };
        let waits = turns.seats.get(slot).is_some_and(|seat| seat.waits);
        if waits { 0 } else { turns.waiting }
    }

    /// When the seats or the reserve have to be looked at.
    pub(in crate::resource) fn wake(&self) -> Option<Time> {
        let turns = self.0.as_ref()?;
        let look = turns.stale.then_some(turns.next_look);
        [turns.next, look, turns.reserve.next_end()].into_iter().flatten().min()
    }

    /// The holder at `slot` is short of units that are due to it for good, which are kept free for it; absent: of none.
    pub(in crate::resource) fn keep_free(&mut self, slot: Slot, short: Option<Short>) {
        if let Some(turns) = &mut self.0 {
            turns.reserve.set(slot, short);
        }
    }

    /// The amount that is kept free for others than the holder at `slot`: those of a higher priority than `priority`, or
    /// also those of the same.
    pub(in crate::resource) fn kept_free(&self, slot: Slot, priority: i64, or_same: bool) -> Amount {
        self.0.as_ref().map_or(Amount::ZERO, |turns| turns.reserve.of_others(slot, priority, or_same))
    }

    /// Whether anything is kept free for anybody.
    pub(in crate::resource) fn keeps_free(&self) -> bool {
        self.0.as_ref().is_some_and(|turns| turns.reserve.next_end().is_some() || turns.waiting > 0)
    }

    /// Keeps nothing free for those who have not come back by `now`. Returns whether there were any.
    pub(in crate::resource) fn lapse(&mut self, now: Time) -> bool {
        self.0.as_mut().is_some_and(|turns| turns.reserve.lapse(now))
    }

    /// Whether the holder at `slot` has one unit more than its whole ones.
    pub(in crate::resource) fn has_extra(&self, slot: Slot) -> bool {
        self.0.as_ref().and_then(|turns| turns.seats.get(slot)).is_some_and(|seat| seat.extra)
    }

    /// When the next turn is taken, if there is anything to take turns for.
    pub(in crate::resource) fn next(&self) -> Option<Time> {
        self.0.as_ref()?.next
    }

    /// When the last turn was taken.
    pub(in crate::resource) fn began(&self) -> Option<Time> {
        self.0.as_ref()?.began
    }

    /// Looks at all claims, with so many units for them; not again before `next_look` because of others. Returns whether any
    /// seat has gained or lost one.
    pub(in crate::resource) fn look(
        &mut self,
        now: Time,
        claims: &[UnitClaim],
        units: usize,
        next_look: Time,
    ) -> bool {
        let Some(turns) = &mut self.0 else { return false };
        (turns.stale, turns.next_look) = (false, next_look);
        turns.look(now, claims, units)
    }

    /// Counts the units that were gained and lost by the last look, if no turn was taken at it: whoever has one for the rest
    /// of a quantum has had so much of its turns, and whoever has it no more has not had its turn.
    pub(in crate::resource) fn correct(&mut self, now: Time) {
        if let Some(turns) = &mut self.0 {
            turns.correct(now);
        }
    }

    /// Not before `time` does anybody take turns.
    pub(in crate::resource) fn suspend(&mut self, time: Time) {
        if let Some(turns) = &mut self.0 {
            (turns.stale, turns.next_look, turns.next) = (true, time, None);
        }
    }
}

// === impl RotationTurns ===

impl RotationTurns {
    fn new(rotate: Rotate, quantum: Duration) -> RotationTurns {
        RotationTurns {
            rotate,
            quantum,
            rotation: Rotation::new(rotate),
            seats: Seats::default(),
            waiting: 0,
            reserve: UnitReserve::default(),
            began: None,
            next: None,
            is_new: false,
            stale: true,
            next_look: Time::ZERO,
        }
    }

    /// Looks at all claims, with so many units for them. Returns whether any seat has gained or lost one.
    fn look(&mut self, now: Time, claims: &[UnitClaim], units: usize) -> bool {
        self.seats.begin_look();
        // Those who hold a unit come first.
        for holds in [true, false] {
            for claim in claims.iter().filter(|claim| claim.holds == holds) {
                self.seats.take(claim.slot);
            }
        }
        let is_contended = claims.len() > units && self.rotate != Rotate::None;
        let earliest = self.began.map_or(now, |began| began + self.quantum);
        self.is_new = is_contended && earliest <= now;
        if self.is_new {
            self.turn(now, claims, units);
            // As long as turns are taken in time they keep their pace.
            let on_time = self.next.is_some_and(|next| next + self.quantum > now);
            self.began = Some(if on_time { self.next.unwrap_or(now) } else { now });
        }
        self.next = is_contended.then(|| self.began.map_or(now, |began| began + self.quantum));
        self.fit(now, claims, units);
        self.seats.have_moved()
    }

    fn correct(&mut self, now: Time) {
        let Some(next) = self.next.filter(|_| !self.is_new) else { return };
        let left = (next.since(now).as_secs_f64() / self.quantum.as_secs_f64()).min(1.0);
        for (slot, seat) in self.seats.iter().filter(|(_, seat)| seat.had != seat.extra) {
            self.rotation.correct(&(seat.number, slot), if seat.extra { left } else { -left });
        }
    }

    /// Begins a quantum.
    fn turn(&mut self, now: Time, claims: &[UnitClaim], units: usize) {
        // A claim of nothing: who has none at the moment is remembered, and who keeps its turn takes no other.
        let mut fractions = vec![0.0; self.seats.by_slot.len()];
        let (mut late, mut present, mut are_all) = (0, 0.0, true);
        for claim in claims {
            let is_expected = self.comes(now, claim) == Some(Time::ZERO);
            let seat = self.seats.at_mut(claim.slot);
            let waits = claim.awake || claim.polls && seat.poll.is_some_and(|poll| poll.is_awaited(now));
            if seat.extra && !claim.holds && !waits && claim.polls {
                // It was not there: that was no turn.
                self.rotation.correct(&(seat.number, claim.slot), -1.0);
            }
            seat.extra &= !claim.holds && waits && late < units;
            seat.waits = seat.extra && claim.polls;
            late += usize::from(seat.extra);
            if !seat.extra && is_expected {
                fractions[claim.slot as usize] = claim.fraction;
                present += claim.fraction;
            }
            are_all &= is_expected;
        }
        let units = units - late;
        if !are_all && present > 0.0 {
            let more = (units as f64 / present).max(1.0);
            fractions.iter_mut().for_each(|fraction| *fraction = (*fraction * more).min(1.0));
        }
        let all = self.seats.iter().map(|(slot, seat)| ((seat.number, slot), fractions[slot as usize]));
        for (_, slot) in self.rotation.turn(all, units as u64) {
            self.seats.at_mut(slot).extra = true;
        }
    }

    /// When the holder of a claim is to be expected: zero if in this quantum; absent if it is not.
    fn comes(&self, now: Time, claim: &UnitClaim) -> Option<Time> {
        let is_there = !claim.polls || claim.asks || self.rotate == Rotate::None;
        match self.seats.get(claim.slot).and_then(|seat| seat.poll).filter(|_| !is_there) {
            Some(poll) if !poll.is_awaited(now) => None,
            Some(poll) if !poll.is_expected(now, self.quantum) => Some(poll.next()),
            // It never polled, as one that listened until its stream broke: it is waited for when it has come back.
            None if !is_there && !claim.awake => None,
            _ => Some(Time::ZERO),
        }
    }

    /// Lets exactly as many seats have a unit more as there are units, or all that have a claim.
    fn fit(&mut self, now: Time, claims: &[UnitClaim], units: usize) {
        let is_right = |extra: usize| extra == units.min(claims.len());
        let mut having: Vec<Slot> =
            claims.iter().map(|claim| claim.slot).filter(|&slot| self.seats.has_extra(slot)).collect();
        if !is_right(having.len()) {
            having = self.first(now, claims, units);
        }
        self.seats.iter_mut().for_each(|seat| seat.extra = false);
        for slot in having {
            self.seats.at_mut(slot).extra = true;
        }
        self.seats.iter_mut().for_each(|seat| seat.waits &= seat.extra);
        self.waiting = self.seats.iter().filter(|(_, seat)| seat.waits).count() as u64;
    }

    /// The slots of those who are to have the units that there are: who has one, and then who is there soonest, and would
    /// wait least.
    fn first(&self, now: Time, claims: &[UnitClaim], units: usize) -> Vec<Slot> {
        let key = |claim: &UnitClaim| {
            let Seat { number, extra, .. } = *self.seats.get(claim.slot).expect("every claim has a seat");
            let wait = match self.rotate {
                Rotate::None => ((1.0 - claim.fraction) * f64::from(u32::MAX)) as u64,
                _ => self.rotation.turns_until(&(number, claim.slot), claim.fraction).unwrap_or(u64::MAX),
            };
            let comes = self.comes(now, claim).unwrap_or(Time::MAX);
            ((!extra, !claim.holds, comes, wait, number), claim.slot)
        };
        let mut order: Vec<_> = claims.iter().map(key).collect();
        if units < order.len() {
            order.select_nth_unstable(units);
            order.truncate(units);
        }
        order.into_iter().map(|(_, slot)| slot).collect()
    }
}
