//! The leases of domains in a session: asked for, measured, given back. For whoever drives the session; the program does not
//! hear of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use lessor_proto::{ResourceId, Time};

use crate::allowance::Allowance;
use crate::demand::Estimator;
use crate::domain::{News, Sublease, Subleases};
use crate::holding::{Fallback, HoldingConfig, Kind, Surplus};
use crate::session::{Change, Session};

/// The leases that a session holds for domains, of any number of resources.
#[derive(Debug, Default)]
pub struct Sublessee(BTreeMap<ResourceId, HeldSublease>);

#[derive(Debug)]
struct HeldSublease {
    /// The resource whose domain it is.
    of: ResourceId,
    lease: Arc<Sublease>,
    demand: Estimator,
}

// === impl Sublessee ===

impl Sublessee {
    /// Takes up the news of the domains of the resource `of`: asks for what they are to have, with the priority of that resource,
    /// and gives back what they are not to have any more. What `is_own` holds for the program has opened itself, and has no
    /// domain. To be called when the waker of the [`Lender`](crate::domain::Lender) was woken, and after policies have changed.
    pub fn hear(
        &mut self,
        now: Time,
        (of, priority): (&ResourceId, i64),
        news: &Subleases,
        is_own: impl Fn(&ResourceId) -> bool,
        session: &mut Session,
    ) {
        for news in news.take_news() {
            match news {
                News::Ask(lease) if is_own(lease.resource()) => lease.bar(),
                News::Ask(lease) => self.ask(now, (of, priority), lease, session),
                News::Leave(resource) => self.give_back(now, &resource, session),
            }
        }
    }

    /// Lets a domain use what a server allows. Returns whether the change is about one of these leases.
    pub fn apply(&self, now: Time, change: &Change) -> bool {
        let held = self.0.get(&change.resource);
        if let Some(held) = held {
            held.lease.allow(now, change.allowance);
        }
        held.is_some()
    }

    /// Looks at what is wanted. To be called about once a second.
    pub fn observe(&mut self, now: Time, session: &mut Session) {
        for (resource, HeldSublease { lease, demand, .. }) in &mut self.0 {
            session.set_wants(now, resource, lease.observe(now, demand).as_f64());
        }
    }

    /// The program holds `resource` itself from here on.
    pub fn yield_to_program(&mut self, now: Time, resource: &ResourceId) {
        if let Some(held) = self.0.remove(resource) {
            held.lease.bar();
            held.lease.allow(now, Allowance::NOTHING);
        }
    }

    /// Gives back all leases of domains of `resource`.
    pub fn leave(&mut self, now: Time, resource: &ResourceId, session: &mut Session) {
        let of = |held: &HeldSublease| held.of == *resource;
        let left: Vec<_> = self.0.iter().filter(|(_, held)| of(held)).map(|(id, _)| id.clone()).collect();
        left.iter().for_each(|id| self.give_back(now, id, session));
    }

    fn ask(
        &mut self,
        now: Time,
        (of, priority): (&ResourceId, i64),
        lease: Arc<Sublease>,
        session: &mut Session,
    ) {
        let resource = lease.resource().clone();
        let mut demand = lease.estimator();
        let wants = lease.observe(now, &mut demand).as_f64();
        let config = HoldingConfig {
            fallback: Fallback::Pessimistic,
            surplus: Surplus::ReturnParts(lease.share().part()),
            ..HoldingConfig::new(Kind::Rate, wants, priority)
        };
        // The one before it is over before this one begins.
        if let Some(before) = self.0.remove(&resource) {
            before.lease.allow(now, Allowance::NOTHING);
        }
        session.add(now, resource.clone(), config);
        lease.allow(now, session.allowance(now, &resource));
        self.0.insert(resource, HeldSublease { of: of.clone(), lease, demand });
    }

    fn give_back(&mut self, now: Time, resource: &ResourceId, session: &mut Session) {
        if let Some(held) = self.0.remove(resource) {
            held.lease.allow(now, Allowance::NOTHING);
            session.remove(now, resource);
        }
    }
}
