//! Refusals, as the driver hears of them.

use std::sync::Arc;
use std::task::{Wake, Waker};

use lessor_proto::{Amount, ResourceId, Time};
use tokio::sync::mpsc;
use tracing::debug;

use super::{Command, Driver};
use crate::demand::haste::SOON;

/// Tells the driver that a limiter has refused something. It does not keep the driver alive.
#[derive(Debug)]
pub(in crate::shell) struct KnockSender {
    pub(in crate::shell) commands: mpsc::WeakUnboundedSender<Command>,
    pub(in crate::shell) resource: ResourceId,
    pub(in crate::shell) generation: u64,
}

// === impl KnockSender ===

impl KnockSender {
    pub(in crate::shell) fn waker(self) -> Waker {
        Waker::from(Arc::new(self))
    }
}

impl Wake for KnockSender {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(commands) = self.commands.upgrade() {
            let (resource, generation) = (self.resource.clone(), self.generation);
            // A closed client asks for nothing.
            let _ = commands.send(Command::Knock { resource, generation });
        }
    }
}

// === impl Driver ===

impl Driver {
    /// A limiter has refused something: what it could have used is said at once.
    pub(super) fn knock(&mut self, now: Time, resource: &ResourceId, generation: u64) {
        let capacity = self.session.allowance(now, resource).capacity.unwrap_or(Amount::ZERO);
        let Some(held) = self.held(resource, generation).filter(|held| !held.leaving) else { return };
        let demand = &mut held.opening.demand;
        if demand.peak().is_none() {
            return;
        }
        let wants = held.opening.enforcer.knock(now, demand, capacity).as_f64();
        let peak = demand.peak().map(Amount::as_f64);
        held.opening.enforcer.set_door(demand.door(now));
        debug!(%resource, held = capacity.as_f64(), wants, peak, "refused: asking for more");
        self.next_tick = self.next_tick.min(now + SOON);
        self.session.set_peak(now, resource, peak);
        self.session.set_wants(now, resource, wants);
    }
}
