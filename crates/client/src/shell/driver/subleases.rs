//! Leases of domains: what the driver holds for resources whose domains have leases of their own. The program does not hear of
//! them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Wake, Waker};

use lessor_proto::{ResourceId, Time};
use tokio::sync::mpsc;
use tracing::{debug, warn};

use super::{Command, Driver};
use crate::allowance::Allowance;
use crate::demand::Estimator;
use crate::domain::{News, Sublease};
use crate::holding::{Fallback, HoldingConfig, Kind};
use crate::session::{Change, Session};

/// What is held for domains, by its own name.
#[derive(Debug, Default)]
pub(super) struct Held(BTreeMap<ResourceId, Sub>);

#[derive(Debug)]
struct Sub {
    /// The resource whose domain it is.
    of: ResourceId,
    lease: Arc<Sublease>,
    demand: Estimator,
}

/// Tells the driver that domains have news for it. It does not keep the driver alive, which keeps the domains.
#[derive(Debug)]
pub(in crate::shell) struct Bell {
    pub(in crate::shell) commands: mpsc::WeakUnboundedSender<Command>,
    pub(in crate::shell) resource: ResourceId,
    pub(in crate::shell) generation: u64,
}

// === impl Bell ===

impl Bell {
    pub(in crate::shell) fn waker(self) -> Waker {
        Waker::from(Arc::new(self))
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(commands) = self.commands.upgrade() {
            let (resource, generation) = (self.resource.clone(), self.generation);
            // A closed client asks for nothing.
            let _ = commands.send(Command::Subleases { resource, generation });
        }
    }
}

// === impl Held ===

impl Held {
    /// What a server allows of a lease, if it is one of these.
    pub(super) fn apply(&self, now: Time, change: &Change) {
        if let Some(sub) = self.0.get(&change.resource) {
            let (resource, rung) = (&change.resource, change.rung.name());
            match &change.fault {
                Some(fault) => warn!(%resource, rung, %fault, "lease of a domain not renewed"),
                None => debug!(%resource, rung, "allowance of a domain changed"),
            }
            sub.lease.allow(now, change.allowance);
        }
    }

    /// Looks at what is wanted.
    pub(super) fn observe(&mut self, now: Time, session: &mut Session) {
        for (resource, Sub { lease, demand, .. }) in &mut self.0 {
            session.set_wants(now, resource, lease.observe(now, demand).as_f64());
        }
    }

    /// The program holds `resource` itself from here on.
    pub(super) fn yield_to_program(&mut self, now: Time, resource: &ResourceId) {
        if let Some(sub) = self.0.remove(resource) {
            sub.lease.bar();
            sub.lease.allow(now, Allowance::NOTHING);
        }
    }

    /// Gives back all leases of domains of `resource`.
    pub(super) fn leave(&mut self, now: Time, resource: &ResourceId, session: &mut Session) {
        let of = |sub: &Sub| sub.of == *resource;
        let left: Vec<_> = self.0.iter().filter(|(_, sub)| of(sub)).map(|(id, _)| id.clone()).collect();
        left.iter().for_each(|id| self.give_back(now, id, session));
    }

    fn give_back(&mut self, now: Time, resource: &ResourceId, session: &mut Session) {
        if let Some(sub) = self.0.remove(resource) {
            debug!(%resource, "lease of a domain given back");
            sub.lease.allow(now, Allowance::NOTHING);
            session.remove(now, resource);
        }
    }

    fn ask(
        &mut self,
        now: Time,
        of: &ResourceId,
        lease: Arc<Sublease>,
        priority: i64,
        session: &mut Session,
    ) {
        let resource = lease.resource().clone();
        debug!(%resource, "lease of a domain asked for");
        let mut demand = lease.estimator();
        let wants = lease.observe(now, &mut demand).as_f64();
        let config = HoldingConfig {
            fallback: Fallback::Pessimistic,
            ..HoldingConfig::new(Kind::Rate, wants, priority)
        };
        // The one before it is over before this one begins.
        if let Some(before) = self.0.remove(&resource) {
            before.lease.allow(now, Allowance::NOTHING);
        }
        session.add(now, resource.clone(), config);
        lease.allow(now, session.allowance(now, &resource));
        self.0.insert(resource, Sub { of: of.clone(), lease, demand });
    }
}

// === impl Driver ===

impl Driver {
    /// Asks for the leases that domains of `resource` are to have, and gives back those that they are not to have any more.
    pub(super) fn hear_of_domains(&mut self, now: Time, resource: &ResourceId) {
        let Some(held) = self.open.get(resource).filter(|held| !held.leaving) else { return };
        let news = held.opening.domains.subleases().take_news();
        let priority = held.opening.config.bands.first().map_or(0, |band| band.priority);
        for news in news {
            match news {
                News::Ask(lease) if self.open.contains_key(lease.resource()) => lease.bar(),
                News::Ask(lease) => self.subleases.ask(now, resource, lease, priority, &mut self.session),
                News::Leave(id) => self.subleases.give_back(now, &id, &mut self.session),
            }
        }
        self.next_tick = self.next_tick.min(now + super::RATE_TICK);
    }
}
