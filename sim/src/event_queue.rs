//! The queue of events to come, in the order in which they will happen.
//!
//! Events at one moment happen in the order in which they were put down. The near future is a wheel of short ticks, each
//! with the events that fall into it in no order; a tick is ordered when it begins. So a large simulation pays for the few
//! events that fall into one tick, and not for the hundreds of thousands that lie ahead. A small simulation has no wheel.
//!
//! A tick is a list of its events, read from one end to the other, as memory that lies scattered is what a large simulation
//! waits for most. It is given back when the tick is over, so that one in which many happened keeps nothing.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use lessor_proto::Time;

/// Events to come.
#[derive(Debug)]
pub struct EventQueue<E> {
    /// The events of the current tick that were put down before it began: the last is the next.
    current: Vec<Due<E>>,
    /// Everything else up to the end of the current tick.
    near: BinaryHeap<Due<E>>,
    /// The ticks after it, each at its number modulo their count.
    wheel: Vec<Vec<Due<E>>>,
    /// The number of events in the wheel.
    in_wheel: usize,
    /// The events beyond the wheel.
    far: BinaryHeap<Due<E>>,
    tick: u64,
    numbered: u64,
}

/// An event, and when it happens. The greatest is the one that happens first.
#[derive(Debug)]
struct Due<E> {
    at: Time,
    number: u64,
    event: E,
}

/// A tick has 2^20 ns, about a millisecond.
const TICK_BITS: u32 = 20;
/// Ticks in the wheel of a large simulation: 69 seconds.
const TICKS: usize = 1 << 16;

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
            current: Vec::new(),
            near: BinaryHeap::new(),
            wheel: std::iter::repeat_with(Vec::new).take(ticks).collect(),
            in_wheel: 0,
            far: BinaryHeap::new(),
            tick: 0,
            numbered: 0,
        }
    }

    /// The number of events to come.
    #[must_use]
    pub fn len(&self) -> usize {
        self.current.len() + self.near.len() + self.in_wheel + self.far.len()
    }

    /// Whether nothing will happen any more.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts down an event.
    pub fn put(&mut self, at: Time, event: E) {
        self.numbered += 1;
        self.file(Due { at, number: self.numbered, event });
    }

    /// Takes the next event that happens at `limit` or before.
    pub fn pop(&mut self, limit: Time) -> Option<(Time, E)> {
        while self.current.is_empty() && self.near.is_empty() && (self.in_wheel > 0 || !self.far.is_empty()) {
            self.turn();
        }
        let (current, near) = (self.current.last(), self.near.peek());
        if current.max(near)?.at > limit {
            return None;
        }
        let next = if current > near { self.current.pop() } else { self.near.pop() };
        next.map(|due| (due.at, due.event))
    }

    /// The events of the current tick that were put down before it began and are still to come, the next first.
    pub fn current(&self) -> impl Iterator<Item = &E> {
        self.current.iter().rev().map(|due| &due.event)
    }

    fn file(&mut self, due: Due<E>) {
        let tick = due.at.as_nanos() >> TICK_BITS;
        if self.wheel.is_empty() || tick <= self.tick {
            self.near.push(due);
        } else if tick - self.tick < self.wheel.len() as u64 {
            let place = self.place(tick);
            self.wheel[place].push(due);
            self.in_wheel += 1;
        } else {
            self.far.push(due);
        }
    }

    /// To the next tick; over all that are empty at once if nothing is in the wheel.
    fn turn(&mut self) {
        self.tick += 1;
        if self.in_wheel == 0
            && let Some(first) = self.far.peek()
        {
            self.tick = self.tick.max(first.at.as_nanos() >> TICK_BITS);
        }
        let place = self.place(self.tick);
        self.current = std::mem::take(&mut self.wheel[place]);
        self.current.sort_unstable();
        self.in_wheel -= self.current.len();
        let reach = self.tick + self.wheel.len() as u64;
        while let Some(first) = self.far.peek()
            && first.at.as_nanos() >> TICK_BITS < reach
            && let Some(due) = self.far.pop()
        {
            self.file(due);
        }
    }

    /// Where a tick stands in the wheel.
    fn place(&self, tick: u64) -> usize {
        (tick % self.wheel.len() as u64) as usize
    }
}

// === impl Due ===

impl<E> Ord for Due<E> {
    fn cmp(&self, other: &Due<E>) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<E> PartialOrd for Due<E> {
    fn partial_cmp(&self, other: &Due<E>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Due<E> {
    fn eq(&self, other: &Due<E>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Due<E> {}

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
