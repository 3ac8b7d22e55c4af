//! The calendar of the moments at which each child needs attention: its next grant ends, or it should have been heard
//! of.
//!
//! Time is cut into ticks of 67 ms, and a child stands on the list of one tick. It is looked at when the tick has begun,
//! so never too early and at most a tick late, which errs on the side of counting a charge too long. Who is renewed stays
//! where it stands and is moved when its old time comes: a renewal costs nothing here.

use std::collections::BTreeMap;

use lessor_proto::Time;

use super::slab::Slot;

/// A stretch of 2^26 ns, counted from the zero of the clock; nine years fit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Tick(u32);

const TICK_BITS: u32 = 26;

#[derive(Clone, Debug, Default)]
pub(crate) struct Calendar {
    ticks: BTreeMap<Tick, Vec<Slot>>,
}

// === impl Tick ===

impl Tick {
    /// The first tick that begins at `time` or later.
    pub(crate) fn after(time: Time) -> Tick {
        let tick = time.as_nanos().div_ceil(1 << TICK_BITS);
        Tick(u32::try_from(tick).unwrap_or(u32::MAX))
    }

    fn begins(self) -> Time {
        Time::from_nanos(u64::from(self.0) << TICK_BITS)
    }
}

// === impl Calendar ===

impl Calendar {
    /// Puts `slot` on the list of `tick`. The caller remembers the tick: an entry of any other is out of date.
    pub(crate) fn add(&mut self, tick: Tick, slot: Slot) {
        self.ticks.entry(tick).or_default().push(slot);
    }

    /// Takes one list whose tick has begun.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Tick, Vec<Slot>)> {
        let first = self.ticks.first_entry().filter(|entry| entry.key().begins() <= now)?;
        Some(first.remove_entry())
    }

    /// When the next tick with anybody on its list begins.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.ticks.first_key_value().map(|(tick, _)| tick.begins())
    }
}

/// The earliest of some moments, as far as there are any. It is asked for with every report.
pub(crate) fn earliest<const N: usize>(moments: [Option<Time>; N]) -> Option<Time> {
    let mut first = None;
    for moment in moments {
        first = match (first, moment) {
            (Some(first), Some(moment)) => Some(Time::min(first, moment)),
            (one, other) => one.or(other),
        };
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_looked_at_too_early() {
        let mut calendar = Calendar::default();
        let due = Time::from_nanos(100_000_000);
        calendar.add(Tick::after(due), 7);
        assert_eq!(calendar.pop(due), None);
        let deadline = calendar.next_deadline().unwrap();
        assert!(deadline >= due && deadline.since(due).as_nanos() < 1 << TICK_BITS);
        assert_eq!(calendar.pop(deadline).unwrap().1, [7]);
        assert_eq!(calendar.next_deadline(), None);
    }
}
