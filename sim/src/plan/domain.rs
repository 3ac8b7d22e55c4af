//! The domain of a resource: a tenant with a lease of its own, which all clients share that hold the resource.

use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::internals::domain::{Override, Policies, Rules, Scope, Share};
use lessor_proto::{Amount, Glob};
use lessor_server::repository::Domains;

use super::ResourcePlan;

/// A domain of a resource, of the scope `strict`: what all clients together may do of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DomainPlan {
    /// The index of the resource whose domain it is: a rate.
    pub of: u16,
    /// Hits in any window.
    pub limit: u32,
    /// The length of the window.
    pub window: Duration,
}

// === impl DomainPlan ===

impl DomainPlan {
    /// The lease of the domain: how many parts, and how much each is.
    ///
    /// # Panics
    /// When the limit is so low that nothing can be leased of it.
    pub(crate) fn share(self) -> Share {
        Share::of(&self.contract()).ok().flatten().expect("a limit that can be leased")
    }

    fn contract(self) -> Contract {
        let (limit, window, active) = (self.limit, self.window, self.window);
        let cooldown = Duration::ZERO;
        let tier = Tier { limit, window, active, cooldown, is_skippable: false, kind: Window::Exact };
        Contract::from(TierPolicy::new(vec![tier], None, None).expect("a policy that holds together"))
    }
}

/// The part of a template about these domains, each with its name; absent where there are none.
pub(crate) fn policies<'a>(domains: impl Iterator<Item = (&'a str, DomainPlan)>) -> Option<Domains> {
    let override_of = |(name, domain): (&str, DomainPlan)| Override {
        glob: Glob::new(name).expect("a name without signs"),
        contract: domain.contract(),
    };
    let overrides: Vec<Override> = domains.map(override_of).collect();
    if overrides.is_empty() {
        return None;
    }
    let rules = Rules { scope: Scope::Strict, overrides, ..Rules::default() };
    let policies = Arc::new(Policies::new(rules).expect("limits that can be leased"));
    Some(Domains { policies, changes: Vec::new() })
}

// === impl ResourcePlan ===

impl ResourcePlan {
    /// The lease of the domain `name` of the resource `of`, which is called so. Its capacity follows from its limit.
    #[must_use]
    pub fn domain(of: &str, name: &str, domain: DomainPlan) -> ResourcePlan {
        let capacity: Amount = domain.share().capacity();
        ResourcePlan { capacity, domain: Some(domain), ..ResourcePlan::rate(format!("{of}|d:{name}"), 0.0) }
    }
}
