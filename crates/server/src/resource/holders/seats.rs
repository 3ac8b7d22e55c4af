//! The seats of those who take turns: a place for each holder that has ever had a fraction of a unit.

use super::polls::LastPoll;
use crate::resource::slab::Slot;

/// The number of a seat, and the slot of its holder.
pub(super) type SeatId = (u64, Slot);

/// The place of a holder with a fraction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub(super) number: u64,
    /// Whether it has one unit more than its whole ones in this quantum.
    pub(super) extra: bool,
    /// Whether it had when the seats began to be looked at.
    pub(super) had: bool,
    /// Its turn began with an earlier quantum, and waits for a poll of its holder.
    pub(super) waits: bool,
    /// The last poll of its holder.
    pub(super) poll: Option<LastPoll>,
}

/// The seats, by the slots of their holders, and in the order of their numbers.
#[derive(Clone, Default, Debug)]
pub(super) struct Seats {
    pub(super) by_slot: Vec<Option<Seat>>,
    /// Those whose holders are gone are among them until the next look.
    by_number: Vec<SeatId>,
    /// The number of the last seat.
    last: u64,
}

// === impl Seats ===

impl Seats {
    pub(super) fn get(&self, slot: Slot) -> Option<&Seat> {
        self.by_slot.get(slot as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut Seat> {
        self.by_slot.get_mut(slot as usize)?.as_mut()
    }

    pub(super) fn has_extra(&self, slot: Slot) -> bool {
        self.get(slot).is_some_and(|seat| seat.extra)
    }

    /// The seat of a holder that has a claim.
    pub(super) fn at_mut(&mut self, slot: Slot) -> &mut Seat {
        self.by_slot[slot as usize].as_mut().expect("every claim has a seat")
    }

    /// Keeps a seat for the holder at `slot`, if there is none.
    pub(super) fn take(&mut self, slot: Slot) {
        if self.by_slot.len() <= slot as usize {
            self.by_slot.resize(slot as usize + 1, None);
        }
        self.by_slot[slot as usize].get_or_insert_with(|| {
            self.last += 1;
            self.by_number.push((self.last, slot));
            Seat { number: self.last, extra: false, had: false, waits: false, poll: None }
        });
    }

    /// The holder at `slot` is gone.
    pub(super) fn remove(&mut self, slot: Slot) {
        if let Some(seat) = self.by_slot.get_mut(slot as usize) {
            *seat = None;
        }
        while self.by_slot.last().is_some_and(Option::is_none) {
            self.by_slot.pop();
        }
    }

    /// All of them, in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &Seat)> {
        let seat = |&(number, slot)| Some((slot, self.get(slot).filter(|seat| seat.number == number)?));
        self.by_number.iter().filter_map(seat)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Seat> {
        self.by_slot.iter_mut().flatten()
    }

    /// Remembers who has a unit more.
    pub(super) fn begin_look(&mut self) {
        let by_slot = &self.by_slot;
        let is_there = |&(number, slot): &SeatId| {
            by_slot.get(slot as usize).and_then(Option::as_ref).is_some_and(|seat| seat.number == number)
        };
        self.by_number.retain(is_there);
        self.iter_mut().for_each(|seat| seat.had = seat.extra);
    }

    /// Whether others have one than when the look began.
    pub(super) fn have_moved(&self) -> bool {
        self.by_slot.iter().flatten().any(|seat| seat.had != seat.extra)
    }
}
