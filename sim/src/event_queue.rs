//! The queue of events to come, in the order in which they will happen.
//!
//! Events at one moment happen in the order in which they were put down. The near future is a wheel of short ticks, each
//! with the events that fall into it in no order; a tick is ordered when it begins. So a large simulation pays for the few
//! events that fall into one tick, and not for the hundreds of thousands that lie ahead. A small simulation has no wheel.
//!
//! The events of a tick are a chain through the slots in which the events lie, so that a tick in which many happened keeps no
//! memory when it is over.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lessor_proto::Time;

/// Events to come.
#[derive(Debug)]
pub struct EventQueue<E> {
    /// Everything up to the end of the current tick.
    near: BinaryHeap<Reverse<Due>>,
    /// The ticks after it, each at its number modulo their count: the first slot of a chain.
    wheel: Vec<u32>,
    /// The number of events in the wheel.
    in_wheel: usize,
    /// The events beyond the wheel.
    far: BinaryHeap<Reverse<Due>>,
    tick: u64,
    slots: Vec<Slot<E>>,
    /// The first of the slots that are free, which are a chain as well.
    free: u32,
    len: usize,
    numbered: u64,
}

/// An event, or a place for one.
#[derive(Debug)]
struct Slot<E> {
    at: Time,
    number: u64,
    event: Option<E>,
    /// The next of its chain.
    next: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Due {
    at: Time,
    number: u64,
    slot: u32,
}

/// A tick has 2^20 ns, about a millisecond.
const TICK_BITS: u32 = 20;
/// Ticks in the wheel of a large simulation: 69 seconds.
const TICKS: usize = 1 << 16;
/// The end of a chain.
const END: u32 = u32::MAX;

// === impl EventQueue ===

impl<E> EventQueue<E> {
    /// For a small simulation.
    #[must_use]
    pub fn small() -> EventQueue<E> {
        EventQueue::with_ticks(0)
    }

    /// For a simulation with many thousands of events ahead.
    #[must_use]
    pub fn large() -> EventQueue<E> {
        EventQueue::with_ticks(TICKS)
    }

    fn with_ticks(ticks: usize) -> EventQueue<E> {
        EventQueue {
            near: BinaryHeap::new(),
            wheel: vec![END; ticks],
            in_wheel: 0,
            far: BinaryHeap::new(),
            tick: 0,
            slots: Vec::new(),
            free: END,
            len: 0,
            numbered: 0,
        }
    }

    /// The number of events to come.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing will happen any more.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts down an event.
    pub fn put(&mut self, at: Time, event: E) {
        self.numbered += 1;
        self.len += 1;
        let number = self.numbered;
        let filled = Slot { at, number, event: Some(event), next: END };
        let slot = self.free;
        let slot = match self.slots.get_mut(slot as usize) {
            Some(place) => {
                self.free = std::mem::replace(place, filled).next;
                slot
            }
            None => {
                self.slots.push(filled);
                u32::try_from(self.slots.len() - 1).expect("fewer events than a u32 counts")
            }
        };
        self.file(Due { at, number, slot });
    }

    /// Takes the next event that happens at `limit` or before.
    pub fn pop(&mut self, limit: Time) -> Option<(Time, E)> {
        while self.near.is_empty() && (self.in_wheel > 0 || !self.far.is_empty()) {
            self.turn();
        }
        if self.near.peek()?.0.at > limit {
            return None;
        }
        let Reverse(due) = self.near.pop()?;
        let place = &mut self.slots[due.slot as usize];
        let event = place.event.take().expect("an event happens once");
        place.next = std::mem::replace(&mut self.free, due.slot);
        self.len -= 1;
        Some((due.at, event))
    }

    fn file(&mut self, due: Due) {
        let tick = due.at.as_nanos() >> TICK_BITS;
        if self.wheel.is_empty() || tick <= self.tick {
            self.near.push(Reverse(due));
        } else if tick - self.tick < self.wheel.len() as u64 {
            let first = self.spoke(tick);
            self.slots[due.slot as usize].next = std::mem::replace(&mut self.wheel[first], due.slot);
            self.in_wheel += 1;
        } else {
            self.far.push(Reverse(due));
        }
    }

    /// To the next tick; over all that are empty at once if nothing is in the wheel.
    fn turn(&mut self) {
        self.tick += 1;
        if self.in_wheel == 0
            && let Some(Reverse(first)) = self.far.peek()
        {
            self.tick = self.tick.max(first.at.as_nanos() >> TICK_BITS);
        }
        let first = self.spoke(self.tick);
        let mut slot = std::mem::replace(&mut self.wheel[first], END);
        while let Some(place) = self.slots.get_mut(slot as usize) {
            self.near.push(Reverse(Due { at: place.at, number: place.number, slot }));
            self.in_wheel -= 1;
            slot = std::mem::replace(&mut place.next, END);
        }
        let reach = self.tick + self.wheel.len() as u64;
        while let Some(Reverse(first)) = self.far.peek()
            && first.at.as_nanos() >> TICK_BITS < reach
            && let Some(Reverse(due)) = self.far.pop()
        {
            self.file(due);
        }
    }

    /// Where the chain of a tick begins.
    fn spoke(&self, tick: u64) -> usize {
        (tick % self.wheel.len() as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn wheel_and_heap_agree() {
        let mut rng = Rng::new(1);
        let (mut small, mut large) = (EventQueue::small(), EventQueue::large());
        let mut now = Time::ZERO;
        for number in 0..20_000_u32 {
            let reach = [1, 1_000_000, 3_000_000_000, 200_000_000_000][rng.below(4) as usize];
            let at = Time::from_nanos(now.as_nanos() + rng.below(reach));
            small.put(at, number);
            large.put(at, number);
            if rng.below(3) == 0 {
                let limit = Time::from_nanos(now.as_nanos() + 100_000_000);
                let next = small.pop(limit);
                assert_eq!(next, large.pop(limit));
                now = next.map_or(now, |(at, _)| at);
            }
        }
        while let Some(next) = small.pop(Time::MAX) {
            assert_eq!(Some(next), large.pop(Time::MAX));
        }
        assert!(large.is_empty());
    }

    #[test]
    fn events_of_one_moment_keep_their_order() {
        let mut queue = EventQueue::large();
        (0..100).for_each(|number| queue.put(Time::from_nanos(5_000_000_000), number));
        assert_eq!(queue.pop(Time::from_nanos(4_999_999_999)), None);
        assert!((0..100).all(|number| queue.pop(Time::MAX).is_some_and(|(_, found)| found == number)));
    }
}
