//! The decision that a request of a domain is answered with.

use std::fmt;
use std::time::Duration;

use lessor_algorithms::tiers;
use lessor_proto::Time;

/// The answer to a request of a domain. Limits and hits of a second in hits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// Hits that are granted: 0, or between the least and the most that were asked for.
    pub granted: u32,
    /// By what right.
    pub ground: Ground,
    /// The hard limit: hits in any second, by one domain.
    pub hard_limit: Option<u32>,
    /// The global limit: hits in any second, by all domains of this client. The lease limits them as well.
    pub global_limit: Option<u32>,
    /// The current tier after the grant, of the policy that allows the least, counted from 1; 0 is the fake tier.
    pub tier: usize,
    /// Of that tier; 0 of the fake one.
    pub tier_limit: u32,
    /// The window in which that many hits may be made; zero of the fake one.
    pub tier_window: Duration,
    /// Those that count in that tier, the granted ones among them.
    pub hits_in_tier: u32,
    /// Hits of the domain in the last second, the granted ones among them. Exact where there is a hard limit, or else
    /// forgotten up to a sixteenth of a second too early.
    pub hits_in_second: u32,
    /// The same of all domains of this client that follow policies.
    pub hits_in_second_by_all: u32,
    /// Whether a tier was entered by this request.
    pub burst: bool,
    /// The bound that kept it from being granted in full.
    pub bound: Option<Bound>,
    /// If nothing is granted that was asked for: when to try again. `None` also if that is not known, or never.
    pub retry_at: Option<Time>,
    /// Hits that are owed after this.
    pub debt: u32,
    /// With scope `shared`: how many other clients use the domain too, as far as is known here; 0 as long as it is far from its
    /// limits.
    pub others: u32,
}

/// By what right something is granted. The lease is needed for all but the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ground {
    /// The policies that the domain follows allow it, or refuse it.
    Policies,
    /// The resource has no policies for domains, or none have arrived.
    NoPolicies,
    /// Nothing is configured for the domain, which is allowed.
    Unconfigured,
    /// The configuration of the domain is ignored.
    Ignored,
    /// There are so many domains that this one is not remembered: nobody is refused for that.
    Untracked,
    /// The policies refuse it, or a part of it, and are switched off.
    KillSwitch,
    /// The policies refuse it, as far as is known here; other clients use it too, and they are out of hearing: the
    /// least is granted.
    Unheard,
    /// There is no lease, nor a rung of the ladder below it: the least is granted, as was chosen.
    Degraded,
}

/// The bound on a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// Hits that were made and could not be counted yet.
    Debt,
    /// The tiers.
    Tiers,
    /// The hard limit.
    Hard,
    /// The global limit.
    Global,
    /// The lease of the client: it is used up, or there is none.
    Lease,
    /// The lease of the client: it never holds as much at once as is wanted at the least.
    Burst {
        /// The greatest number that can be had of it at once.
        most: u64,
    },
    /// Nothing is configured for the domain, and that is not allowed.
    Unconfigured,
    /// The lease that the domain has for itself, with the scope `strict`: it is used up, or less than would be of use.
    Sublease,
    /// The lease that the domain is to have for itself is being asked for, and nothing of it has been granted yet.
    Asking,
    /// Too many domains have leases for themselves for a further one to be asked for.
    Crowded,
    /// The domain is to have a lease for itself and can have none: its name and that of the resource are too long for the
    /// name of a resource, or have a control character; or the program has opened that resource itself.
    Unleasable,
}

// === impl Decision ===

impl Decision {
    /// Without policies.
    pub(crate) fn free(ground: Ground) -> Decision {
        Decision {
            granted: 0,
            ground,
            hard_limit: None,
            global_limit: None,
            tier: 0,
            tier_limit: 0,
            tier_window: Duration::ZERO,
            hits_in_tier: 0,
            hits_in_second: 0,
            hits_in_second_by_all: 0,
            burst: false,
            bound: None,
            retry_at: None,
            debt: 0,
            others: 0,
        }
    }

    /// Of a domain that may do nothing, as nothing is configured for it.
    pub(crate) fn unconfigured() -> Decision {
        Decision { bound: Some(Bound::Unconfigured), ..Decision::free(Ground::Policies) }
    }

    /// Of a domain that cannot be remembered, and so can have no lease.
    pub(crate) fn crowded() -> Decision {
        Decision { bound: Some(Bound::Crowded), ..Decision::free(Ground::Policies) }
    }

    #[inline]
    pub(crate) fn of(decision: &tiers::Decision) -> Decision {
        Decision {
            granted: decision.granted,
            ground: Ground::Policies,
            hard_limit: decision.hard_limit,
            global_limit: decision.global_limit,
            tier: decision.tier,
            tier_limit: decision.tier_limit,
            tier_window: Duration::from_nanos(decision.tier_window),
            hits_in_tier: decision.hits_in_tier,
            hits_in_second: decision.hits_in_second,
            hits_in_second_by_all: decision.hits_in_second_by_all,
            burst: decision.burst,
            bound: decision.bound.map(Bound::from),
            retry_at: decision.retry_at.map(Time::from_nanos),
            debt: decision.debt,
            others: 0,
        }
    }

    /// Whether it may be that only what others did, and is not known here, would change the answer.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        let by_hits = matches!(self.bound, Some(Bound::Tiers | Bound::Hard));
        !self.is_granted() && self.others > 0 && by_hits
    }

    /// The bound in words.
    pub(crate) fn bound_in_words(&self) -> String {
        self.bound.map_or_else(|| "nothing".to_owned(), |bound| bound.to_string())
    }

    /// Whether something was granted.
    #[must_use]
    pub fn is_granted(&self) -> bool {
        self.granted > 0
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bound {
            None if !self.is_granted() => write!(f, "nothing granted")?,
            None => write!(f, "{} granted, {}", self.granted, self.ground)?,
            Some(bound) if !self.is_granted() => write!(f, "nothing granted, bound by {bound}")?,
            Some(bound) => write!(f, "{} granted, {}, bound by {bound}", self.granted, self.ground)?,
        }
        if self.tier > 0 {
            let Decision { tier, tier_limit, tier_window, hits_in_tier, .. } = self;
            write!(f, "; tier {tier} has {hits_in_tier} of {tier_limit} in {tier_window:?}")?;
        }
        match self.debt {
            0 => Ok(()),
            debt => write!(f, "; {debt} owed"),
        }
    }
}

// === impl Ground ===

impl fmt::Display for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Ground::Policies => "by its policies",
            Ground::NoPolicies => "as there are no policies",
            Ground::Unconfigured => "as domains without a policy may have it",
            Ground::Ignored => "as its policy is ignored",
            Ground::Untracked => "as there are too many domains to remember it",
            Ground::KillSwitch => "as its policies are switched off",
            Ground::Unheard => "as other clients are out of hearing",
            Ground::Degraded => "without a lease, as was chosen",
        })
    }
}

// === impl Bound ===

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bound::Burst { most } => return write!(f, "the burst of the lease, {most} at once"),
            Bound::Debt => "what it owes",
            Bound::Tiers => "its tiers",
            Bound::Hard => "its hard limit",
            Bound::Global => "the limit of all domains",
            Bound::Lease => "the lease",
            Bound::Unconfigured => "there being no policy for it",
            Bound::Sublease => "the lease of the domain",
            Bound::Asking => "the lease of the domain, which has not been granted yet",
            Bound::Crowded => "there being too many leases of domains",
            Bound::Unleasable => "there being no lease for a domain of that name",
        })
    }
}

impl From<tiers::Bound> for Bound {
    fn from(bound: tiers::Bound) -> Bound {
        match bound {
            tiers::Bound::Debt => Bound::Debt,
            tiers::Bound::Tiers => Bound::Tiers,
            tiers::Bound::Hard => Bound::Hard,
            tiers::Bound::Global => Bound::Global,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_said_in_words() {
        let said = |decision: Decision| decision.to_string();
        let free = Decision::free(Ground::NoPolicies);
        assert_eq!(said(free), "nothing granted");
        assert_eq!(said(Decision { granted: 3, ..free }), "3 granted, as there are no policies");
        assert_eq!(said(Decision::unconfigured()), "nothing granted, bound by there being no policy for it");
        let tier = Decision {
            granted: 2,
            ground: Ground::Policies,
            bound: Some(Bound::Tiers),
            tier: 2,
            tier_limit: 400,
            tier_window: Duration::from_secs(10),
            hits_in_tier: 400,
            debt: 1,
            ..free
        };
        assert_eq!(
            said(tier),
            "2 granted, by its policies, bound by its tiers; tier 2 has 400 of 400 in 10s; 1 owed"
        );
    }
}
