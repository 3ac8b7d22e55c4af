//! A master of Doorman's: what it knows of those that ask it, and how it answers.

use std::collections::BTreeMap;

use super::lease::{DoormanLease, LENGTH_SECONDS};

/// The id of one that asks: a client, or a task of the level below. A job whose master changes asks under
/// another id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum ChildId {
    Client(usize),
    DoormanTask(usize),
}

/// The state of a task while it is master. Nothing of it is kept afterwards.
#[derive(Clone, Debug)]
pub(super) struct DoormanServer {
    level: usize,
    elected_seconds: u64,
    /// The lease that it has itself.
    pub(super) lease: Option<DoormanLease>,
    children: BTreeMap<ChildId, Child>,
    cleaned_seconds: Option<u64>,
}

/// The record that a master keeps of one that asks it.
#[derive(Clone, Copy, Debug)]
struct Child {
    wants: f64,
    /// The lease that it was last given, or else said it has.
    lease: Option<DoormanLease>,
    asked_seconds: u64,
}

/// Through this many seconds after its election a master gives back what it is told, and nothing more.
const LEARNING_SECONDS: u64 = LENGTH_SECONDS;
/// The least time between two requests, in seconds. One that comes sooner is not answered.
const SPACING_SECONDS: u64 = 2;

// === impl DoormanServer ===

impl DoormanServer {
    /// A master elected at `now`, which knows nothing.
    pub(super) fn elected(now: u64, level: usize) -> DoormanServer {
        DoormanServer {
            level,
            elected_seconds: now,
            lease: None,
            children: BTreeMap::new(),
            cleaned_seconds: None,
        }
    }

    /// Answers a child that wants so much and has this lease; not at all if it asked just before.
    pub(super) fn ask(
        &mut self,
        now: u64,
        id: ChildId,
        wants: f64,
        has: Option<DoormanLease>,
    ) -> Option<DoormanLease> {
        if self.children.get(&id).is_some_and(|child| now < child.asked_seconds + SPACING_SECONDS) {
            return None;
        }
        self.clean(now);
        self.children.insert(id, Child { wants, lease: has, asked_seconds: now });
        let capacity = match self.learns(now) {
            true => has.map_or(0.0, |lease| lease.capacity),
            false => self.share(now, id, wants),
        };
        let own_end = self.lease.map(|lease| lease.expires_seconds);
        let lease = DoormanLease::grant(now, capacity, self.level, own_end);
        self.children.insert(id, Child { wants, lease: Some(lease), asked_seconds: now });
        Some(lease)
    }

    /// The sum of what all children on record want; none if there are none.
    pub(super) fn wants(&self) -> Option<f64> {
        (!self.children.is_empty()).then(|| self.children.values().map(|child| child.wants).sum())
    }

    /// The sum of what all children on record have at `now`.
    pub(super) fn leased(&self, now: u64) -> f64 {
        self.children.values().filter_map(|child| child.lease).map(|lease| lease.worth(now)).sum()
    }

    /// The capacity that it has itself at `now`.
    pub(super) fn capacity(&self, now: u64) -> f64 {
        self.lease.map_or(0.0, |lease| lease.worth(now))
    }

    fn learns(&self, now: u64) -> bool {
        now <= self.elected_seconds + LEARNING_SECONDS
    }

    /// Forgets, once a second, what has run out.
    fn clean(&mut self, now: u64) {
        if self.cleaned_seconds.replace(now) == Some(now) {
            return;
        }
        let ended = |lease: &DoormanLease| lease.expires_seconds <= now;
        if self.lease.as_ref().is_some_and(ended) {
            self.lease = None;
        }
        if !self.learns(now) {
            self.children.retain(|_, child| !child.lease.as_ref().is_some_and(ended));
        }
    }

    /// Doorman's proportional share, as it is simulated: of one child, out of what nobody else has on record.
    fn share(&self, now: u64, id: ChildId, wants: f64) -> f64 {
        let capacity = self.capacity(now);
        let sum: f64 = self.children.values().map(|child| child.wants).sum();
        let others = self.children.iter().filter(|(other, _)| **other != id);
        let leased: f64 = others.filter_map(|(_, child)| child.lease).map(|lease| lease.capacity).sum();
        let free = (capacity - leased).max(0.0);
        if sum < capacity { wants.min(free) } else { (wants * capacity / sum).min(free) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: ChildId = ChildId::Client(0);
    const SECOND: ChildId = ChildId::Client(1);

    /// A root that holds 100 and has learned, at 100 s.
    fn root() -> DoormanServer {
        let mut server = DoormanServer::elected(0, 0);
        server.lease = Some(DoormanLease::of_root(100, 100.0));
        server
    }

    fn capacity(
        server: &mut DoormanServer,
        now: u64,
        id: ChildId,
        wants: f64,
        has: Option<DoormanLease>,
    ) -> f64 {
        server.ask(now, id, wants, has).unwrap().capacity
    }

    fn near(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 1e-9, "{found}, wanted {wanted}");
    }

    #[test]
    fn who_learns_gives_back_what_it_is_told() {
        let mut server = DoormanServer::elected(100, 0);
        let has = DoormanLease::grant(100, 33.0, 0, None);
        near(capacity(&mut server, 110, FIRST, 50.0, Some(has)), 33.0);
        near(capacity(&mut server, 160, FIRST, 50.0, Some(has)), 33.0);
        near(capacity(&mut server, 160, SECOND, 50.0, None), 0.0);
        near(capacity(&mut server, 162, SECOND, 50.0, None), 0.0);
    }

    #[test]
    fn a_share_is_proportional_but_comes_out_of_what_is_free() {
        let mut server = root();
        near(capacity(&mut server, 100, FIRST, 80.0, None), 80.0);
        // Half of the capacity would be fair; only a fifth of it is free.
        near(capacity(&mut server, 101, SECOND, 80.0, None), 20.0);
        let had = DoormanLease::grant(100, 80.0, 0, None);
        near(capacity(&mut server, 108, FIRST, 80.0, Some(had)), 50.0);
        assert_eq!(server.wants(), Some(160.0));
        near(server.leased(108), 70.0);
    }

    #[test]
    fn who_asks_too_soon_is_not_answered() {
        let mut server = root();
        assert!(server.ask(100, FIRST, 1.0, None).is_some());
        assert!(server.ask(101, FIRST, 1.0, None).is_none());
        assert!(server.ask(102, FIRST, 1.0, None).is_some());
    }

    #[test]
    fn a_child_is_forgotten_when_its_lease_ends() {
        let mut server = root();
        assert!(server.ask(100, FIRST, 80.0, None).is_some());
        server.lease = Some(DoormanLease::of_root(150, 100.0));
        assert!(server.ask(159, SECOND, 10.0, None).is_some());
        assert_eq!(server.wants(), Some(90.0));
        assert!(server.ask(161, SECOND, 10.0, None).is_some());
        assert_eq!(server.wants(), Some(10.0));
    }

    #[test]
    fn a_server_whose_lease_has_ended_has_nothing_to_give() {
        let mut server = root();
        near(capacity(&mut server, 160, FIRST, 80.0, None), 0.0);
    }
}
