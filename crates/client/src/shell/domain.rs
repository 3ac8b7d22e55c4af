//! The handle of a domain of an open rate.

use std::time::Duration;

use super::clock;
use super::resource::{Core, Resource};
use crate::domain::{Decision, DomainWish, Domains, NotGranted, Query, Snapshot};
use crate::limiter::Limiter;
use crate::waiting::Boot;

/// The domain of one tenant in an open rate. It costs nothing to make.
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is asked without `request` or `acquire`"]
pub struct Domain<'a> {
    core: &'a Core<Limiter>,
    name: &'a str,
}

// === impl Resource ===

impl Resource<Limiter> {
    /// The domain `name` of it. Any text is a name; where policies are configured for a part of it, up to a `/`,
    /// they count for the whole.
    ///
    /// ```no_run
    /// # async fn work(client: lessor_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let searches = client.rate("search/queries").open()?;
    /// let decision = searches.domain("tenant-42").request(10, 1);
    /// println!("{} of 10 granted, tier {}", decision.granted, decision.tier);
    /// searches.domain("tenant-42").acquire(1, 1).await?; // waits until the tenant may go on
    /// # Ok(())
    /// # }
    /// ```
    pub fn domain<'a>(&'a self, name: &'a str) -> Domain<'a> {
        Domain { core: self.core(), name }
    }

    /// All its domains: the kill switch, and what has been counted.
    #[must_use]
    pub fn domains(&self) -> &Domains {
        &self.core().domains
    }

    /// A look at its domains.
    #[must_use]
    pub fn snapshot(&self, query: &Query) -> Snapshot {
        self.domains().snapshot(query, clock::now())
    }
}

// === impl Domain ===

impl Domain<'_> {
    /// Takes as many of `copies` hits as policies and lease allow, if that is at least `min`, or none.
    pub fn request(&self, copies: u32, min: u32) -> Decision {
        let decision = self.core.domains.request(&self.core.enforcer, self.name, copies, min, clock::now());
        if self.core.domains.take_earlier() {
            self.core.call();
        }
        decision
    }

    /// The same, but before it is refused hits because of what others used, with scope `shared`, the server is asked for what
    /// is not known here yet: within a round trip to it, or a second if it does not answer.
    pub async fn confirmed(&self, copies: u32, min: u32) -> Decision {
        let wish = DomainWish { domain: self.name, copies, min, max_wait: Duration::ZERO };
        let call = || self.core.call();
        self.core.domains.confirmed_by(&self.core.enforcer, &wish, &Boot, &call).await
    }

    /// The same, and waits as long as nothing is granted: until the time that the answer names, or else longer and longer.
    ///
    /// # Errors
    /// When nothing is granted within the bound of the opening ([`super::Opening::max_wait`]), or never can be.
    pub async fn acquire(&self, copies: u32, min: u32) -> Result<Decision, NotGranted> {
        let domains = &self.core.domains;
        let wish = DomainWish { domain: self.name, copies, min, max_wait: domains.options().max_wait };
        domains.acquire_by(&self.core.enforcer, wish, &Boot, || self.core.call()).await
    }

    /// The answer that policies would give to a request. The lease is not asked, and nothing changes.
    #[must_use]
    pub fn peek(&self, copies: u32, min: u32) -> Decision {
        self.core.domains.peek(self.name, copies, min, clock::now())
    }

    /// Settles a grant that turned out to cost `actual` hits instead of `granted`: see [`Domains::settle`].
    pub fn settle(&self, granted: u32, actual: u32) {
        self.core.domains.settle(&self.core.enforcer, self.name, granted, actual, clock::now());
    }
}
