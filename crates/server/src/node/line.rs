//! Work that waits in a line, and takes turns with all other work that is due.

use std::collections::VecDeque;

use lessor_proto::Time;

/// The things of which each has something left to be done, a slice of it in a turn.
#[derive(Clone, Debug)]
pub(super) struct WorkLine<T> {
    line: VecDeque<T>,
    /// The last turn was one of theirs, and the next is of something else.
    yields: bool,
}

// === impl WorkLine ===

impl<T> Default for WorkLine<T> {
    fn default() -> WorkLine<T> {
        WorkLine { line: VecDeque::new(), yields: false }
    }
}

impl<T> FromIterator<T> for WorkLine<T> {
    fn from_iter<I: IntoIterator<Item = T>>(things: I) -> WorkLine<T> {
        WorkLine { line: things.into_iter().collect(), yields: false }
    }
}

impl<T> WorkLine<T> {
    /// Adds one at the end.
    pub(super) fn push(&mut self, last: T) {
        self.line.push_back(last);
    }

    /// Takes the first one off.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.line.pop_front()
    }

    /// Takes the first one off of which that is true.
    pub(super) fn take(&mut self, is_it: impl FnMut(&T) -> bool) -> Option<T> {
        let place = self.line.iter().position(is_it)?;
        self.line.remove(place)
    }

    /// Whether there is one to go on with.
    pub(super) fn is_any(&self) -> bool {
        !self.line.is_empty()
    }

    /// Whether it is their turn, where something else is to be looked at if `is_else_due`.
    pub(super) fn take_turn(&mut self, is_else_due: bool) -> bool {
        if self.line.is_empty() {
            return false;
        }
        self.yields = !self.yields;
        self.yields || !is_else_due
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        (!self.line.is_empty()).then_some(Time::ZERO)
    }
}
