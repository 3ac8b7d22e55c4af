//! Units on request, between limiters and the session.

use lessor_proto::{ResourceId, Time};

use super::Driver;

// === impl Driver ===

impl Driver {
    /// Asks for what the limiter of `resource` is missing.
    pub(super) fn ask_for_units(&mut self, now: Time, resource: &ResourceId) {
        let wish = self.open.get(resource).filter(|held| !held.leaving);
        if let Some(wish) = wish.and_then(|held| held.opening.enforcer.wish(now)) {
            self.session.wish(resource, wish);
        }
    }

    /// Hands on the units that were sent.
    pub(super) fn bring_units(&mut self, now: Time) {
        while let Some((resource, units)) = self.session.next_units() {
            if let Some(held) = self.open.get(&resource).filter(|held| !held.leaving) {
                held.opening.enforcer.bring(units, now);
            }
        }
    }
}
