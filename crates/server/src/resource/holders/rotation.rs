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

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lessor_algorithms::{Rotate, Rotation};
use lessor_proto::{Amount, Time};

use super::reserve::{Short, UnitReserve};
use crate::repository::Template;
use crate::resource::slab::Slot;

/// The turns of a resource; none where nothing is rotated: rates, and what is not limited in sum.
#[derive(Clone, Debug, Default)]
pub(in crate::resource) struct UnitRotation(Option<Box<RotationTurns>>);

#[derive(Clone, Debug)]
struct RotationTurns {
    rotate: Rotate,
    quantum: Duration,
    /// Knows seats by their numbers: slots are used again.
    rotation: Rotation<u64>,
    seats: BTreeMap<Slot, Seat>,
    reserve: UnitReserve,
    /// The number of the last seat.
    last: u64,
    /// When the last turn was taken.
    began: Option<Time>,
    /// When the next one is; absent while there is nothing to take turns for.
    next: Option<Time>,
    /// Shares have moved since the seats were last looked at.
    stale: bool,
    /// Not before then are they looked at again because of that.
    next_look: Time,
}

/// The place of a holder with a fraction.
#[derive(Clone, Copy, Debug)]
struct Seat {
    number: u64,
    /// Whether it has one unit more than its whole ones in this quantum.
    extra: bool,
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
        if let Some(turns) = &mut self.0 {
            turns.seats.remove(&slot);
            turns.reserve.set(slot, None);
        }
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
        self.0.as_ref().is_some_and(|turns| turns.reserve.next_end().is_some())
    }

    /// Keeps nothing free for those who have not come back by `now`. Returns whether there were any.
    pub(in crate::resource) fn lapse(&mut self, now: Time) -> bool {
        self.0.as_mut().is_some_and(|turns| turns.reserve.lapse(now))
    }

    /// Whether the holder at `slot` has one unit more than its whole ones.
    pub(in crate::resource) fn has_extra(&self, slot: Slot) -> bool {
        self.0.as_ref().and_then(|turns| turns.seats.get(&slot)).is_some_and(|seat| seat.extra)
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
        claims: Vec<UnitClaim>,
        units: usize,
        next_look: Time,
    ) -> bool {
        let Some(turns) = &mut self.0 else { return false };
        (turns.stale, turns.next_look) = (false, next_look);
        turns.look(now, claims, units)
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
            seats: BTreeMap::new(),
            reserve: UnitReserve::default(),
            last: 0,
            began: None,
            next: None,
            stale: true,
            next_look: Time::ZERO,
        }
    }

    /// Looks at all claims, with so many units for them. Returns whether any seat has gained or lost one.
    fn look(&mut self, now: Time, mut claims: Vec<UnitClaim>, units: usize) -> bool {
        let before = self.extras();
        claims.sort_by_key(|claim| (!claim.holds, claim.slot));
        for claim in &claims {
            self.seats.entry(claim.slot).or_insert_with(|| {
                self.last += 1;
                Seat { number: self.last, extra: false }
            });
        }
        let is_contended = claims.len() > units && self.rotate != Rotate::None;
        let earliest = self.began.map_or(now, |began| began + self.quantum);
        if is_contended && earliest <= now {
            self.turn(&claims, units);
            // As long as turns are taken in time they keep their pace.
            let on_time = self.next.is_some_and(|next| next + self.quantum > now);
            self.began = Some(if on_time { self.next.unwrap_or(now) } else { now });
        }
        self.next = is_contended.then(|| self.began.map_or(now, |began| began + self.quantum));
        self.fit(&claims, units);
        before != self.extras()
    }

    /// Begins a quantum.
    fn turn(&mut self, claims: &[UnitClaim], units: usize) {
        // A claim of nothing: who has none at the moment is remembered, and who keeps its turn takes no other.
        let mut fractions: BTreeMap<u64, f64> = self.seats.values().map(|seat| (seat.number, 0.0)).collect();
        let mut late = 0;
        for claim in claims {
            let seat = self.seats.get_mut(&claim.slot).expect("every claim has a seat");
            seat.extra &= !claim.holds && claim.awake && late < units;
            late += usize::from(seat.extra);
            if !seat.extra {
                fractions.insert(seat.number, claim.fraction);
            }
        }
        let chosen: BTreeSet<u64> =
            self.rotation.turn(fractions, (units - late) as u64).into_iter().collect();
        for seat in self.seats.values_mut() {
            seat.extra |= chosen.contains(&seat.number);
        }
    }

    /// Lets exactly as many seats have a unit more as there are units, or all that have a claim.
    fn fit(&mut self, claims: &[UnitClaim], units: usize) {
        let mut order: Vec<_> = claims
            .iter()
            .map(|claim| {
                let Seat { number, extra, .. } = self.seats[&claim.slot];
                let wait = match self.rotate {
                    Rotate::None => ((1.0 - claim.fraction) * f64::from(u32::MAX)) as u64,
                    _ => self.rotation.turns_until(&number, claim.fraction).unwrap_or(u64::MAX),
                };
                ((!extra, !claim.holds, wait, number), claim.slot)
            })
            .collect();
        order.sort_unstable();
        for seat in self.seats.values_mut() {
            seat.extra = false;
        }
        for (_, slot) in order.into_iter().take(units) {
            self.seats.get_mut(&slot).expect("every claim has a seat").extra = true;
        }
    }

    fn extras(&self) -> BTreeSet<Slot> {
        self.seats.iter().filter(|(_, seat)| seat.extra).map(|(&slot, _)| slot).collect()
    }
}
