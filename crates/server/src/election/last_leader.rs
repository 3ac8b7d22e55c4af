//! The last leader that a candidate has seen, and the last whose clock it knows.

/// Both, by the revisions at which their keys were made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastLeader {
    /// That of the key that was last seen, whoever made it.
    seen: Option<u64>,
    /// That of the last leader whose clock is known.
    heard: Option<u64>,
}

// === impl LastLeader ===

impl LastLeader {
    /// Somebody leads by the key of that revision.
    pub(super) fn see(&mut self, revision: u64) {
        self.seen = Some(revision);
    }

    /// The one that was seen last has said what its clock shows.
    pub(super) fn hear(&mut self) {
        self.heard = self.seen;
    }

    /// Whether its clock is known, or none was seen.
    pub(super) fn is_known(self) -> bool {
        self.seen.is_none() || self.seen == self.heard
    }
}
