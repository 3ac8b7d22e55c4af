//! The schedule of one domain: when those that use it are told, and the walk through them while that goes on.

use lessor_proto::Time;

use super::marking::Marking;
use super::origin::DeltaOrigin;

/// The times at which those that use a domain are told what others did.
#[derive(Clone, Debug)]
pub(super) struct UpdateSchedule {
    /// When they are to be told.
    due: Option<Time>,
    /// The walk through them, while it goes on.
    walk: Option<Marking>,
    /// When they are to be told of the hits that are said during the walk.
    due_after: Option<Time>,
    /// When they were told last.
    pub(super) told_at: Time,
}

// === impl UpdateSchedule ===

impl UpdateSchedule {
    /// One that begins at `now`, as if all had been told.
    pub(super) fn new(now: Time) -> UpdateSchedule {
        UpdateSchedule { due: None, walk: None, due_after: None, told_at: now }
    }

    /// Whether they are to be told something.
    pub(super) fn is_due(&self) -> bool {
        self.due.is_some()
    }

    /// They are to be told at `at`, if not before. Returns when they were to be, if that has changed, or what is said during a
    /// walk is told after it.
    pub(super) fn expect(&mut self, at: Time) -> Option<Option<Time>> {
        if self.walk.is_some() {
            self.due_after = Some(self.due_after.map_or(at, |due| due.min(at)));
            return None;
        }
        self.bring_forward(at)
    }

    /// They are to be told at `at`, if not before. Returns when they were to be, if that has changed.
    pub(super) fn bring_forward(&mut self, at: Time) -> Option<Option<Time>> {
        if self.due.is_some_and(|due| due <= at) {
            return None;
        }
        Some(self.due.replace(at))
    }

    /// All have been told. Returns when they are to be told next, if anything was said meanwhile.
    pub(super) fn end(&mut self) -> Option<Time> {
        (self.due, self.walk) = (None, None);
        self.due_after.take()
    }

    pub(super) fn is_walking(&self) -> bool {
        self.walk.is_some()
    }

    pub(super) fn walk(&self) -> Option<&Marking> {
        self.walk.as_ref()
    }

    /// The walk is another one from here on, or none.
    pub(super) fn set_walk(&mut self, walk: Option<Marking>) {
        self.walk = walk;
    }

    /// The walk has come to `after`; absent: it begins again, or is over.
    pub(super) fn walk_after(&mut self, after: Option<DeltaOrigin>) {
        if let Some(walk) = &mut self.walk {
            walk.after = after;
        }
    }
}
