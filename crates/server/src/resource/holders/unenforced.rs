//! The units of a resource that were asked for while everything was let pass, as its holders have said them; and those holders
//! that are to let everything pass and have never said that they count.

use std::collections::BTreeMap;

use lessor_proto::message::Unenforced;

use super::super::slab::Slot;

/// The tally of such units. There is one as soon as there is something to be tallied.
#[derive(Clone, Default, Debug)]
pub(crate) struct UnenforcedTally {
    /// The units that were said.
    units: Unenforced,
    /// The holders that have said that they count, a bit each by their slots: there may be millions.
    counting: Vec<u64>,
    /// The clients that are silent.
    silent: usize,
    /// The number of those below a node, of nodes that have some.
    below: BTreeMap<Slot, u32>,
    /// The sum of that.
    silent_below: u64,
}

// === impl UnenforcedTally ===

impl UnenforcedTally {
    /// The units, and the number of all that are silent, here and below.
    pub(crate) fn sums(&self) -> Unenforced {
        let silent = self.silent_below.saturating_add(self.silent as u64);
        Unenforced { silent: u32::try_from(silent).unwrap_or(u32::MAX), ..self.units }
    }

    /// A holder has said so many units more.
    pub(crate) fn add(&mut self, said: Unenforced) {
        self.units = self.units.with(said);
    }

    /// Whether the holder at `slot` has said that it counts, if only that there was nothing.
    pub(crate) fn counts(&self, slot: Slot) -> bool {
        let (word, bit) = place(slot);
        self.counting.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// Whether it has from here on.
    pub(crate) fn set_counting(&mut self, slot: Slot, counts: bool) {
        let (word, bit) = place(slot);
        if counts && self.counting.len() <= word {
            self.counting.resize(word + 1, 0);
        }
        if let Some(bits) = self.counting.get_mut(word) {
            *bits = if counts { *bits | bit } else { *bits & !bit };
        }
    }

    /// One more client is silent, or one less.
    pub(crate) fn note_silent(&mut self, is_silent: bool) {
        self.silent = if is_silent { self.silent + 1 } else { self.silent.saturating_sub(1) };
    }

    /// The number of clients that are silent, as they were counted.
    pub(crate) fn set_silent(&mut self, silent: usize) {
        self.silent = silent;
    }

    /// The number of those below the node at `slot`.
    pub(crate) fn set_below(&mut self, slot: Slot, silent: u32) {
        let before = match silent {
            0 => self.below.remove(&slot),
            silent => self.below.insert(slot, silent),
        };
        self.silent_below = self.silent_below + u64::from(silent) - u64::from(before.unwrap_or(0));
    }
}

/// Where the bit of a slot is.
fn place(slot: Slot) -> (usize, u64) {
    ((slot / u64::BITS) as usize, 1 << (slot % u64::BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_counts_is_known_by_its_slot() {
        let mut tally = UnenforcedTally::default();
        tally.set_counting(700, false);
        [3, 64, 700].into_iter().for_each(|slot| tally.set_counting(slot, true));
        tally.set_counting(64, false);
        let counting: Vec<Slot> = (0..1_000).filter(|&slot| tally.counts(slot)).collect();
        assert_eq!(counting, [3, 700]);
    }

    #[test]
    fn silent_holders_are_counted_here_and_below() {
        let mut tally = UnenforcedTally::default();
        [true, true, false].into_iter().for_each(|is_silent| tally.note_silent(is_silent));
        for (slot, silent) in [(3, 5), (4, 2), (3, 1), (4, 0), (9, 0)] {
            tally.set_below(slot, silent);
        }
        tally.add(Unenforced { asked: 7, passed: 3, silent: 99 });
        tally.add(Unenforced { asked: u64::MAX, passed: 1, silent: 0 });
        assert_eq!(tally.sums(), Unenforced { asked: u64::MAX, passed: 4, silent: 2 });
    }
}
