//! The tenure of a leader: when it began, and until when nobody else has led for certain.

use std::collections::BTreeSet;

use lessor_proto::{ResourceId, Time};

/// The tenure of a node that leads.
#[derive(Clone, Debug)]
pub(super) struct Tenure {
    since: Time,
    /// Nobody had been elected in its place before then, for certain.
    confirmed: Time,
    /// Resources of which somebody is to be told more when that is later.
    untold: BTreeSet<ResourceId>,
}

// === impl Tenure ===

impl Tenure {
    /// One that begins at `now`, of which nothing is confirmed.
    pub(super) fn new(now: Time) -> Tenure {
        Tenure { since: now, confirmed: Time::ZERO, untold: BTreeSet::new() }
    }

    /// When it began.
    pub(super) fn since(&self) -> Time {
        self.since
    }

    /// When it was last known for certain that nobody else had been elected.
    pub(super) fn confirmed(&self) -> Time {
        self.confirmed
    }

    /// Somebody is to be told more of `id` when more is confirmed.
    pub(super) fn note_untold(&mut self, id: &ResourceId) {
        self.untold.insert(id.clone());
    }

    /// Nobody had been elected in its place at `at`: returns the resources of which somebody is to be told more, none if that
    /// was known.
    pub(super) fn confirm(&mut self, at: Time) -> BTreeSet<ResourceId> {
        if at <= self.confirmed {
            return BTreeSet::new();
        }
        self.confirmed = at;
        std::mem::take(&mut self.untold)
    }
}
