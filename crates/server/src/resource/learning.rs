//! Learning: until when what is out from before is not known, here or at the node above.

use lessor_proto::Time;

/// The state of learning of one resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learning {
    until: Time,
    /// That is over, and those who listen have been told.
    is_told: bool,
    /// Its capacity was granted by a node above that does not know what is out.
    is_above: bool,
}

// === impl Learning ===

impl Learning {
    /// The state of a resource of which it is not known until `until` what is out from before `since`.
    pub(super) fn new(since: Time, until: Time) -> Learning {
        Learning { until, is_told: until <= since, is_above: false }
    }

    /// Until when what is out from before may still be in use, as far as is known.
    pub(super) fn until(&self) -> Time {
        self.until
    }

    /// Something that is out from before lasts until then at the least.
    pub(super) fn extend(&mut self, until: Time) {
        self.until = self.until.max(until);
    }

    /// The same, and those who listen are to be told again when that is over.
    pub(super) fn begin_anew(&mut self, until: Time) {
        self.extend(until);
        self.is_told = false;
    }

    /// The time from which it is known what is out from before is `at`.
    pub(super) fn end_at(&mut self, at: Time) {
        self.until = at;
    }

    /// When those who listen are to be told that it is over, if they have not been.
    pub(super) fn untold(&self) -> Option<Time> {
        (!self.is_told).then_some(self.until)
    }

    /// Those who listen are told that it is over. Returns whether they were not before.
    pub(super) fn tell_over(&mut self) -> bool {
        !std::mem::replace(&mut self.is_told, true)
    }

    /// Whether the node above does not know what is out.
    pub(super) fn is_above(&self) -> bool {
        self.is_above
    }

    /// The node above does not know what is out, or it does. Returns whether it has come to know it.
    pub(super) fn set_above(&mut self, learns: bool) -> bool {
        std::mem::replace(&mut self.is_above, learns) && !learns
    }
}
