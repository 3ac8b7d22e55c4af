//! Counts of the requests of domains, and of what became of them.

use crate::decision::{Bound, Decision, Ground};

/// Requests and hits of domains, counted since the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DomainCounts {
    /// Hits granted.
    pub granted: u64,
    /// Requests that were granted nothing.
    pub refused: u64,
    /// Of these, those that the lease was too little for.
    pub refused_by_lease: u64,
    /// Requests that policies would have refused, or granted less, and that were granted as policies are switched off: by the
    /// program, or by the grantor.
    pub overruled: u64,
    /// Requests granted without a lease.
    pub degraded: u64,
    /// Requests that policies would have refused, and that were granted because other clients are out of hearing.
    pub unheard: u64,
    /// Requests granted although their domain could not be remembered.
    pub untracked: u64,
}

// === impl DomainCounts ===

impl DomainCounts {
    #[inline]
    pub(super) fn count(&mut self, decision: &Decision) {
        self.granted += u64::from(decision.granted);
        if decision.granted == 0 {
            self.refused += 1;
            self.refused_by_lease +=
                u64::from(matches!(decision.bound, Some(Bound::Lease | Bound::Burst { .. })));
            return;
        }
        self.overruled += u64::from(decision.ground == Ground::KillSwitch);
        self.degraded += u64::from(decision.ground == Ground::Degraded);
        self.unheard += u64::from(decision.ground == Ground::Unheard);
        self.untracked += u64::from(decision.ground == Ground::Untracked);
    }

    pub(super) fn plus(self, other: DomainCounts) -> DomainCounts {
        DomainCounts {
            granted: self.granted + other.granted,
            refused: self.refused + other.refused,
            refused_by_lease: self.refused_by_lease + other.refused_by_lease,
            overruled: self.overruled + other.overruled,
            degraded: self.degraded + other.degraded,
            unheard: self.unheard + other.unheard,
            untracked: self.untracked + other.untracked,
        }
    }
}
