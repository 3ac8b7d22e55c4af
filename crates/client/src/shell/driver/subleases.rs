//! Leases of domains, as the driver hears of them.

use lessor_proto::{ResourceId, Time};
use tracing::{debug, warn};

use super::{Driver, RATE_TICK};
use crate::session::Change;

// === impl Driver ===

impl Driver {
    /// Asks for the leases that domains of `resource` are to have, and gives back those that they are not to have any more.
    pub(super) fn hear_of_domains(&mut self, now: Time, resource: &ResourceId) {
        let Some(held) = self.open.get(resource).filter(|held| !held.leaving) else { return };
        let priority = held.opening.config.bands.first().map_or(0, |band| band.priority);
        let (news, is_own) = (held.opening.domains.subleases(), |id: &ResourceId| self.open.contains_key(id));
        self.derived.subleases.hear(now, (resource, priority), news, is_own, &mut self.session);
        self.looks.tick_by(now + RATE_TICK);
    }

    /// Lets a domain use what a server allows, if the change is about the lease of one.
    pub(super) fn tell_domain(&self, now: Time, change: &Change) {
        if !self.derived.subleases.apply(now, change) {
            return;
        }
        let (resource, rung) = (&change.resource, change.rung.name());
        match &change.fault {
            Some(fault) => warn!(%resource, rung, %fault, "lease of a domain not renewed"),
            None => debug!(%resource, rung, "allowance of a domain changed"),
        }
    }
}
