//! Units on request, between limiters and the session.

use std::sync::Arc;
use std::task::{Wake, Waker};

use lessor_proto::{ResourceId, Time};
use tokio::sync::mpsc;

use super::{Command, Driver};

/// Tells the driver that a limiter has units to ask for. It does not keep the driver alive.
#[derive(Debug)]
pub(in crate::shell) struct UnitsBell {
    pub(in crate::shell) commands: mpsc::WeakUnboundedSender<Command>,
    pub(in crate::shell) resource: ResourceId,
    pub(in crate::shell) generation: u64,
}

// === impl UnitsBell ===

impl UnitsBell {
    pub(in crate::shell) fn waker(self) -> Waker {
        Waker::from(Arc::new(self))
    }
}

impl Wake for UnitsBell {
    fn wake(self: Arc<Self>) {
        if let Some(commands) = self.commands.upgrade() {
            let (resource, generation) = (self.resource.clone(), self.generation);
            // A closed client asks for nothing.
            let _ = commands.send(Command::Units { resource, generation });
        }
    }
}

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
