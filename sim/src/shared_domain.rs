//! The domain that clients share, as each of them serves it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::domain::{Domains, Policies};
use lessor_client::internals::limiter::Limiter;
use lessor_client::{DomainOptions, Ground};
use lessor_proto::{Amount, Time};

use crate::plan::SharedDomainPlan;
use crate::rng::Rng;

/// The name of the domain.
pub(crate) const DOMAIN: &str = "tenant";
/// A lease that refuses nothing.
const PLENTY: u64 = 1_000_000;

/// The domain, those who serve it, and who judges them.
#[derive(Debug)]
pub(crate) struct SharedDomain {
    pub(crate) plan: SharedDomainPlan,
    /// By the limits of the plan.
    pub(crate) policies: Vec<Arc<Policies>>,
    pub(crate) rng: Rng,
    /// The clients that serve it, while they live.
    pub(crate) users: BTreeMap<u32, DomainUser>,
    /// The end of the requests.
    pub(crate) asks_until: Time,
}

/// The state of a client that serves the domain.
#[derive(Debug)]
pub(crate) struct DomainUser {
    pub(crate) domains: Domains,
    pub(crate) lease: Limiter,
    /// When as many hits as are allowed counted last, as far as the client knew; really.
    pub(crate) full_at: Option<Time>,
}

// === impl SharedDomain ===

impl SharedDomain {
    pub(crate) fn new(seed: u64, plan: &SharedDomainPlan, asks_until: Time) -> SharedDomain {
        SharedDomain {
            policies: plan.policies(),
            rng: Rng::new(seed ^ 0x00d0_3a17_a5c5),
            users: BTreeMap::new(),
            asks_until,
            plan: plan.clone(),
        }
    }

    /// The policies that are in force at the beginning.
    pub(crate) fn first(&self) -> Arc<Policies> {
        Arc::clone(&self.policies[0])
    }

    /// The limit that a client goes by, if it has been told of any.
    pub(crate) fn limit_of(&self, user: &DomainUser) -> Option<u32> {
        let version = user.domains.policies()?.version();
        let found = self.policies.iter().position(|policies| policies.version() == version)?;
        Some(self.plan.limits[found])
    }
}

// === impl DomainUser ===

impl DomainUser {
    pub(crate) fn new(now: Time) -> DomainUser {
        let lease = Limiter::new(Duration::from_secs(1));
        lease.allow(now, Allowance::forever(Amount::from_units(PLENTY)));
        DomainUser { domains: Domains::new(DomainOptions::default()), lease, full_at: None }
    }

    /// The hits that count as far as the client knows; absent where that is as many as are allowed, or nothing is known.
    pub(crate) fn known(&self, now: Time) -> Option<u32> {
        let decision = self.domains.peek(DOMAIN, 1, 1, now);
        (decision.is_granted() && decision.ground == Ground::Policies)
            .then(|| decision.hits_in_tier.saturating_sub(1))
    }
}
