//! The domain that the clients of a simulation share: how much it may do, and how often it asks.

use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window, Windows};
use lessor_client::internals::domain::{Policies, Rules, Scope};

/// A domain of scope `shared` that all clients serve that stream for the first resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedDomainPlan {
    /// The limits among which operators choose; the first one is in force at the beginning.
    pub limits: Vec<u32>,
    /// The window in which hits count.
    pub window: Duration,
    /// The time for which the tier is active once it is entered.
    pub active: Duration,
    /// Whether earlier hits count when the tier is entered again.
    pub windows: Windows,
    /// The hits that there may be in any second, if they are limited.
    pub hard_limit: Option<u32>,
    /// The time from one request of a client to the next, on average.
    pub pause: Duration,
}

// === impl SharedDomainPlan ===

impl SharedDomainPlan {
    /// The policies of each limit.
    pub(crate) fn policies(&self) -> Vec<Arc<Policies>> {
        self.limits.iter().map(|&limit| Arc::new(self.policies_of(limit))).collect()
    }

    fn policies_of(&self, limit: u32) -> Policies {
        let (window, active) = (self.window, self.active);
        let tier = Tier {
            limit,
            window,
            active,
            cooldown: Duration::ZERO,
            is_skippable: false,
            kind: Window::Exact,
        };
        let policy = TierPolicy::new(vec![tier], self.hard_limit, None);
        let policy = policy.expect("a policy that holds together").with_windows(self.windows);
        let contract = Contract::from(policy);
        let rules = Rules { scope: Scope::Shared, default: Some(contract), ..Rules::default() };
        Policies::new(rules).expect("nothing stands twice")
    }
}
