//! The outbox of a follower: what is to be done and what is to be told, in order, and the numbers of calls.

use std::collections::VecDeque;

use super::{FollowerAction, FollowerEvent};

/// The output of a follower that waits.
#[derive(Clone, Debug, Default)]
pub(super) struct FollowerOutbox {
    numbered: u64,
    actions: VecDeque<FollowerAction>,
    events: VecDeque<FollowerEvent>,
}

// === impl FollowerOutbox ===

impl FollowerOutbox {
    /// The number of another call, watch or check.
    pub(super) fn next_id(&mut self) -> u64 {
        self.numbered += 1;
        self.numbered
    }

    /// This is to be done, after all before.
    pub(super) fn act(&mut self, action: FollowerAction) {
        self.actions.push_back(action);
    }

    /// This is to be told, after all before.
    pub(super) fn tell(&mut self, event: FollowerEvent) {
        self.events.push_back(event);
    }

    /// Whether something is to be done.
    pub(super) fn is_any_action(&self) -> bool {
        !self.actions.is_empty()
    }

    pub(super) fn next_action(&mut self) -> Option<FollowerAction> {
        self.actions.pop_front()
    }

    pub(super) fn next_event(&mut self) -> Option<FollowerEvent> {
        self.events.pop_front()
    }
}
