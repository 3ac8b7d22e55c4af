//! Attempts by the millisecond, for those who learn from them what to ask for.
//!
//! The paths that read the clock compare its millisecond (of 2^20 ns) with the one that runs, which is one load of a word
//! that changes a thousand times a second at the most. Who finds another one than runs sums up the counters, and notes what was attempted
//! in the one that is over. Paths that do not read the clock spend what one has put into their shard that does, so they are
//! late by what the rate brings in a millisecond.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use lessor_proto::Time;

use crate::demand::peak::Attempts;

/// A millisecond is 2^20 ns.
const BITS: u32 = 20;
/// Nobody learns anything yet.
const UNHEARD: u64 = u64::MAX;
/// Milliseconds that are remembered: more than there are between two looks.
const REMEMBERED: usize = 512;

#[derive(Debug)]
pub(super) struct Slots {
    /// The millisecond that runs.
    running: AtomicU64,
    noted: Mutex<Noted>,
}

#[derive(Debug)]
struct Noted {
    /// The number of units attempted before the running millisecond began.
    before: u64,
    slots: VecDeque<Attempts>,
}

// === impl Slots ===

impl Slots {
    pub(super) const fn new() -> Slots {
        Slots {
            running: AtomicU64::new(UNHEARD),
            noted: Mutex::new(Noted { before: 0, slots: VecDeque::new() }),
        }
    }

    /// Somebody learns from here on.
    pub(super) fn hear(&self, now: Time, attempted: u64) {
        self.lock().before = attempted;
        self.running.store(slot(now), Relaxed);
    }

    pub(super) fn is_heard(&self) -> bool {
        self.running.load(Relaxed) != UNHEARD
    }

    /// Whether another millisecond than the running one has begun.
    #[inline]
    pub(super) fn is_over(&self, now: Time) -> bool {
        slot(now) > self.running.load(Relaxed)
    }

    /// Another has begun, and so much was attempted before it.
    pub(super) fn roll(&self, now: Time, attempted: u64) {
        let mut noted = self.lock();
        let running = self.running.load(Relaxed);
        if running != UNHEARD && slot(now) > running {
            noted.note(running, attempted);
            self.running.store(slot(now), Relaxed);
        }
    }

    /// Takes the attempts since this was last asked, by the millisecond.
    pub(super) fn take(&self, now: Time, attempted: u64) -> Vec<Attempts> {
        let mut noted = self.lock();
        let running = self.running.load(Relaxed);
        if running != UNHEARD {
            noted.note(running, attempted);
            self.running.store(slot(now).max(running), Relaxed);
        }
        noted.slots.drain(..).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Noted ===

impl Noted {
    fn note(&mut self, running: u64, attempted: u64) {
        let units = attempted.saturating_sub(self.before);
        self.before = self.before.max(attempted);
        if units == 0 {
            return;
        }
        if self.slots.len() == REMEMBERED {
            self.slots.pop_front();
        }
        self.slots.push_back(Attempts { at: Time::from_nanos(running << BITS), units });
    }
}

fn slot(now: Time) -> u64 {
    now.as_nanos() >> BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(slot: u64) -> Time {
        Time::from_nanos(slot << BITS)
    }

    #[test]
    fn attempts_are_noted_by_the_millisecond_in_which_they_were_made() {
        let slots = Slots::new();
        assert!(!slots.is_over(at(9)), "nobody hears of it");
        slots.hear(at(10), 5);
        assert!(!slots.is_over(at(10)) && slots.is_over(at(12)));
        slots.roll(at(12), 8);
        slots.roll(at(12), 9);
        let noted = slots.take(at(12), 10);
        let counts: Vec<_> =
            noted.iter().map(|attempts| (attempts.at.as_nanos() >> BITS, attempts.units)).collect();
        assert_eq!(counts, [(10, 3), (12, 2)]);
        assert!(slots.take(at(13), 10).is_empty());
    }

    #[test]
    fn no_more_is_remembered_than_there_is_room_for() {
        let slots = Slots::new();
        slots.hear(at(0), 0);
        (1..2_000).for_each(|slot| slots.roll(at(slot), slot));
        assert_eq!(slots.take(at(2_000), 2_000).len(), REMEMBERED);
    }
}
