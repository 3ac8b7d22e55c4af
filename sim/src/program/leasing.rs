//! Domains of a rate that have leases of their own, as the driver of a client keeps them beside the limiter of the rate.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use lessor_client::internals::domain::{Domains, Lender, Policies};
use lessor_client::internals::limiter::Limiter;
use lessor_client::internals::session::{Change, Session};
use lessor_client::internals::sublessee::Sublessee;
use lessor_client::{Decision, DomainOptions};
use lessor_proto::{ResourceId, Time};

/// The interval at which a driver looks at what domains want.
const LOOK: Duration = Duration::from_secs(1);

/// The domains of one resource, and their leases.
#[derive(Debug)]
pub(crate) struct Leasing {
    resource: ResourceId,
    domains: Domains,
    sublessee: Sublessee,
    next_look: Time,
}

// === impl Leasing ===

impl Leasing {
    pub(crate) fn new(resource: ResourceId) -> Leasing {
        let lender = Lender { resource: resource.clone(), notifier: Waker::noop().clone() };
        Leasing {
            resource,
            domains: Domains::new(DomainOptions::default()).with_lender(lender),
            sublessee: Sublessee::default(),
            next_look: Time::ZERO,
        }
    }

    /// The policies that came with a grant of the resource.
    pub(crate) fn follow(&self, policies: Option<Arc<Policies>>) {
        self.domains.follow(policies);
    }

    /// Lets a domain use what a server allows.
    pub(crate) fn apply(&self, now: Time, change: &Change) {
        self.sublessee.apply(now, change);
    }

    /// Asks for the leases that domains are to have, with the priority of the resource, gives back those that nobody has used
    /// in a while, and says once in a while how much of each is wanted.
    pub(crate) fn drive(&mut self, now: Time, priority: i64, session: &mut Session) {
        let subleases = self.domains.subleases();
        let looks = now >= self.next_look && !subleases.is_empty();
        if looks {
            self.next_look = now + LOOK;
            self.domains.sweep(now);
            subleases.retire(now);
        }
        self.sublessee.hear(now, (&self.resource, priority), subleases, |_| false, session);
        if looks {
            self.sublessee.observe(now, session);
        }
    }

    /// When it is to be driven again, if nothing else happens.
    pub(crate) fn next_look(&self) -> Time {
        if self.domains.subleases().is_empty() { Time::MAX } else { self.next_look }
    }

    /// Gives all leases back: the program has let go of the resource, and what it opens later knows nothing of them.
    pub(crate) fn leave(&mut self, now: Time, session: &mut Session) {
        self.sublessee.leave(now, &self.resource, session);
        *self = Leasing::new(self.resource.clone());
    }

    /// Asks for one hit of a domain, which is taken of its lease and of that of the resource.
    pub(crate) fn request(&self, lease: &Limiter, domain: &str, now: Time) -> Decision {
        self.domains.request(lease, domain, 1, 1, now)
    }
}
