//! The schedule of the writes of marks: which marks are to be raised or lowered, and when something is written.

use std::collections::BTreeSet;
use std::time::Duration;

use lessor_proto::{ResourceId, Time};

/// The schedule of writes.
#[derive(Clone, Debug)]
pub(super) struct WriteSchedule {
    /// Whose mark is to be raised.
    due: BTreeSet<ResourceId>,
    /// When what is due is written.
    due_at: Time,
    /// Nothing is written before then.
    not_before: Time,
    /// Whose mark is to be lowered, and when.
    falling: BTreeSet<(Time, ResourceId)>,
    /// When it is looked at again what is left from before; absent: never.
    looks_at: Option<Time>,
}

/// The time after the first due mark at which all that is due is written.
const WINDOW: Duration = Duration::from_millis(2);

// === impl WriteSchedule ===

impl WriteSchedule {
    /// One in which a first write is due at `since`, those marks are to be lowered, and what is left from before is looked at then.
    pub(super) fn new(
        since: Time,
        falling: BTreeSet<(Time, ResourceId)>,
        looks_at: Option<Time>,
    ) -> WriteSchedule {
        WriteSchedule { due: BTreeSet::new(), due_at: since, not_before: since, falling, looks_at }
    }

    /// Something is to be written soon.
    pub(super) fn hurry(&mut self, now: Time) {
        self.due_at = self.due_at.min(now + WINDOW);
    }

    /// Something is to be written at once.
    pub(super) fn hurry_to(&mut self, now: Time) {
        self.due_at = now;
    }

    /// Nothing is written before `at`.
    pub(super) fn hold_until(&mut self, at: Time) {
        self.not_before = at;
    }

    /// The mark of `id` is to be raised. Returns whether that is news.
    pub(super) fn raise(&mut self, id: &ResourceId) -> bool {
        !self.due.contains(id) && self.due.insert(id.clone())
    }

    /// Whether some mark is to be raised.
    pub(super) fn is_any_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Those whose marks are to be raised, if it is time for that.
    pub(super) fn take_due(&mut self, now: Time) -> Option<BTreeSet<ResourceId>> {
        (self.due_at <= now).then(|| {
            self.due_at = Time::MAX;
            std::mem::take(&mut self.due)
        })
    }

    /// The mark of `id`, which was to be lowered at `before`, is to be at `at`.
    pub(super) fn lower(&mut self, id: &ResourceId, before: Option<Time>, at: Option<Time>) {
        if let Some(before) = before {
            self.falling.remove(&(before, id.clone()));
        }
        if let Some(at) = at {
            self.falling.insert((at, id.clone()));
        }
    }

    /// The next one whose mark is to be lowered by now, which it is not any more then.
    pub(super) fn pop_falling(&mut self, now: Time) -> Option<ResourceId> {
        self.falling.first().filter(|(at, _)| *at <= now)?;
        self.falling.pop_first().map(|(_, id)| id)
    }

    /// The time is brought forward at which what is left from before is looked at.
    pub(super) fn look_by(&mut self, at: Time) {
        self.looks_at = self.looks_at.into_iter().chain([at]).min();
    }

    /// Sets the time at which what is left from before is looked at; absent: never.
    pub(super) fn look_at(&mut self, at: Option<Time>) {
        self.looks_at = at;
    }

    /// Whether it is time to look at it, which is so once.
    pub(super) fn take_look(&mut self, now: Time) -> bool {
        self.looks_at.take_if(|at| *at <= now).is_some()
    }

    /// When something is to be written, of these and of `others`.
    pub(super) fn next_deadline(&self, others: [Option<Time>; 2]) -> Option<Time> {
        let falling = self.falling.first().map(|&(at, _)| at);
        let changes = others.into_iter().chain([falling, self.looks_at]).flatten();
        let at = changes.fold(self.due_at, Time::min);
        (at < Time::MAX).then(|| at.max(self.not_before))
    }
}
