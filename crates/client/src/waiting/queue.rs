//! The queue of those who wait: in which order, and for how many units.

use std::collections::VecDeque;
use std::task::Waker;

/// A place in a [`Queue`]; later places have greater numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Ticket(u64);

/// Places in the order in which they were taken.
#[derive(Default, Debug)]
pub(crate) struct Queue {
    places: VecDeque<QueuePlace>,
    next: u64,
    units: u64,
}

#[derive(Debug)]
struct QueuePlace {
    ticket: Ticket,
    units: u32,
    waker: Option<Waker>,
}

// === impl Queue ===

impl Queue {
    pub(crate) const fn new() -> Queue {
        Queue { places: VecDeque::new(), next: 0, units: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Units that are waited for in all.
    pub(crate) fn units(&self) -> u64 {
        self.units
    }

    /// Takes the last place.
    pub(crate) fn join(&mut self, units: u32) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.units += u64::from(units);
        self.places.push_back(QueuePlace { ticket, units, waker: None });
        ticket
    }

    /// The number of units that the head waits for.
    pub(crate) fn head_units(&self) -> Option<u32> {
        self.places.front().map(|place| place.units)
    }

    /// The number of units that `ticket` waits for, if it is at the head.
    pub(crate) fn units_at_head(&self, ticket: Ticket) -> Option<u32> {
        self.places.front().filter(|place| place.ticket == ticket).map(|place| place.units)
    }

    /// Remembers whom to wake for `ticket`.
    pub(crate) fn park(&mut self, ticket: Ticket, waker: &Waker) {
        if let Some(index) = self.find(ticket) {
            match &mut self.places[index].waker {
                Some(known) => known.clone_from(waker),
                none => *none = Some(waker.clone()),
            }
        }
    }

    /// Gives up a place, and says what it waited for.
    pub(crate) fn leave(&mut self, ticket: Ticket) -> Option<u32> {
        let place = self.places.remove(self.find(ticket)?)?;
        self.units -= u64::from(place.units);
        Some(place.units)
    }

    /// The waker to wake when something changed for the head; outside every lock, since waking runs foreign code.
    pub(crate) fn head_waker(&mut self) -> Option<Waker> {
        self.places.front_mut().and_then(|place| place.waker.take())
    }

    fn find(&self, ticket: Ticket) -> Option<usize> {
        self.places.binary_search_by_key(&ticket, |place| place.ticket).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_is_at_the_head() {
        let mut queue = Queue::new();
        let (first, second) = (queue.join(1), queue.join(2));
        assert_eq!((queue.units_at_head(first), queue.units_at_head(second)), (Some(1), None));
        assert_eq!(queue.leave(first), Some(1));
        assert_eq!(queue.units_at_head(second), Some(2));
    }

    #[test]
    fn leaving_from_the_middle_keeps_the_order() {
        let mut queue = Queue::new();
        let tickets = [queue.join(1), queue.join(2), queue.join(3)];
        assert_eq!(queue.leave(tickets[1]), Some(2));
        assert_eq!(queue.leave(tickets[1]), None);
        assert_eq!((queue.len(), queue.units()), (2, 4));
        assert_eq!(queue.leave(tickets[0]), Some(1));
        assert_eq!(queue.head_units(), Some(3));
        assert_eq!(queue.units_at_head(tickets[2]), Some(3));
    }
}
