//! The handle of a domain of an open rate.

use std::time::Duration;

use super::clock;
use super::resource::{Core, Rate};
use crate::decision::{Decision, Ground};
use crate::denied::Denied;
use crate::domain::{DomainCounts, DomainWish, Domains, Query, Snapshot};
use crate::limiter::Limiter;
use crate::waiting::Boot;

/// The domain of one tenant in an open rate. It costs nothing to make.
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is asked without `try_acquire`, `acquire` or `request`"]
pub struct Domain<'a> {
    core: &'a Core<Limiter>,
    name: &'a str,
}

// === impl Rate ===

impl Rate {
    /// The domain `name` of it. Any text is a name; where policies are configured for a part of it, up to a `/`,
    /// they count for the whole.
    ///
    /// ```no_run
    /// # async fn work(client: lessor_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let searches = client.rate("search/queries").open()?;
    /// let tenant = searches.domain("tenant-42");
    /// match tenant.try_acquire(1) {
    ///     Ok(decision) => println!("granted, tier {}", decision.tier),
    ///     Err(denied) => println!("{denied}; try again after {:?}", denied.retry_after()),
    /// }
    /// let decision = tenant.request(10, 1)?; // as many as there are of ten
    /// println!("{} of 10 granted", decision.granted);
    /// tenant.acquire(1).await?; // waits until the tenant may go on
    /// # Ok(())
    /// # }
    /// ```
    pub fn domain<'a>(&'a self, name: &'a str) -> Domain<'a> {
        Domain { core: self.core(), name }
    }

    /// Switches the policies of all domains off, or on again: while they are off the lease alone decides, and what policies
    /// would refuse is counted.
    pub fn set_kill_switch(&self, is_killed: bool) {
        self.domains().set_kill_switch(is_killed);
    }

    /// The counts of what domains have asked for and were granted.
    #[must_use]
    pub fn domain_counts(&self) -> DomainCounts {
        self.domains().counts()
    }

    /// A look at its domains: which are the busiest, which have the least left.
    #[must_use]
    pub fn snapshot(&self, query: &Query) -> Snapshot {
        self.domains().snapshot(query, clock::now())
    }

    /// All its domains, for tests of the workspace.
    #[doc(hidden)]
    #[must_use]
    pub fn domains(&self) -> &Domains {
        &self.core().domains
    }
}

// === impl Domain ===

impl Domain<'_> {
    /// Takes `n` hits if policies and lease allow them.
    ///
    /// # Errors
    /// When they do not; [`Denied::decision`] says by which bound, and how far the domain has come. Nothing is taken then.
    pub fn try_acquire(&self, n: u32) -> Result<Decision, Denied> {
        self.request(n, n)
    }

    /// Takes as many of `copies` hits as policies and lease allow, if that is at least `min`, or none.
    ///
    /// # Errors
    /// When it is fewer than `min`, or none at all. Nothing is taken then.
    pub fn request(&self, copies: u32, min: u32) -> Result<Decision, Denied> {
        let decision = self.core.domains.request(&self.core.enforcer, self.name, copies, min, clock::now());
        if self.core.domains.take_earlier() {
            self.core.call();
        }
        self.answer(decision, copies)
    }

    /// The same as [`Domain::request`], but before it is refused hits because of what others used, with scope `shared`, the
    /// server is asked for what is not known here yet: within a round trip to it, or a second if it does not answer.
    ///
    /// # Errors
    /// As [`Domain::request`].
    pub async fn confirmed(&self, copies: u32, min: u32) -> Result<Decision, Denied> {
        let wish = DomainWish { domain: self.name, copies, min, max_wait: Duration::ZERO };
        let call = || self.core.call();
        let decision = self.core.domains.confirmed_by(&self.core.enforcer, &wish, &Boot, &call).await;
        self.answer(decision, copies)
    }

    /// Takes `n` hits, and waits as long as they are not granted: until the time that the answer names, or else longer and
    /// longer.
    ///
    /// # Errors
    /// When they are not granted within the bound of the opening ([`super::Opening::max_wait`]), or never can be; and at once
    /// when the client is closed, or the server refuses the resource.
    pub async fn acquire(&self, n: u32) -> Result<Decision, Denied> {
        self.acquire_some(n, n).await
    }

    /// Takes as many of `copies` hits as there are, and waits as long as they are fewer than `min`, or none.
    ///
    /// # Errors
    /// As [`Domain::acquire`].
    pub async fn acquire_some(&self, copies: u32, min: u32) -> Result<Decision, Denied> {
        self.acquire_within(copies, min, self.core.domains.options().max_wait).await
    }

    /// The same with another longest wait than that of the opening: [`Duration::MAX`] for as long as it takes.
    ///
    /// # Errors
    /// As [`Domain::acquire`].
    pub async fn acquire_within(
        &self,
        copies: u32,
        min: u32,
        max_wait: Duration,
    ) -> Result<Decision, Denied> {
        let domains = &self.core.domains;
        let wish = DomainWish { domain: self.name, copies, min, max_wait };
        let granted = domains.acquire_by(&self.core.enforcer, wish, &Boot, || self.core.call());
        let decision = self.core.wait_for(granted).await?;
        self.answer(decision, copies)
    }

    /// The decision that policies would give to a request. The lease is not asked, and nothing changes.
    #[must_use]
    pub fn peek(&self, copies: u32, min: u32) -> Decision {
        self.core.domains.peek(self.name, copies, min, clock::now())
    }

    /// Settles a grant that turned out to cost `actual` hits instead of `granted`. More are a debt, which later requests of the
    /// domain pay first, and are taken of the lease as well; fewer come back to the tiers, but not to the lease.
    pub fn settle(&self, granted: u32, actual: u32) {
        self.core.domains.settle(&self.core.enforcer, self.name, granted, actual, clock::now());
    }

    fn answer(&self, decision: Decision, copies: u32) -> Result<Decision, Denied> {
        match decision.is_granted() || copies == 0 {
            // A closed client has no lease, and what is chosen for that case is not meant.
            true if decision.ground == Ground::Degraded && self.core.is_closed() => Err(Denied::Closed),
            true => Ok(decision),
            false => Err(self.core.explain(Denied::domain(decision, clock::now()))),
        }
    }
}
