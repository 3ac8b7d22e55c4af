//! The one way to say no: what a rate, a gauge and a domain answer when they grant nothing.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::Time;
use lessor_proto::name::BadName;

use crate::decision::Decision;
use crate::fault::{Failure, Fault};

/// The denial of a request, and its reason. Nothing was taken.
///
/// A limit says no in [`Denied::Spent`], [`Denied::Full`], [`Denied::Domain`] and the like; where there is nothing that could
/// be limited ([`Denied::is_over_limit`] is false) it is not the caller who asks for too much.
///
/// ```
/// # #[cfg(feature = "shell")]
/// # async fn work(queries: lessor_client::Rate) {
/// if let Err(denied) = queries.acquire(1).await {
///     let status = if denied.is_over_limit() { 429 } else { 503 };
///     println!("{status}, try again after {:?}: {denied}", denied.retry_after());
/// }
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Denied {
    /// There is no lease, or one of less than a unit, or it has ended. A lease that ends while a rate is used up may first be
    /// seen as [`Denied::Spent`].
    #[error("nothing is leased")]
    NothingLeased,
    /// There is no lease, and this is why: in the server's own words where it refuses the name or the kind of the resource.
    #[error("nothing is leased: {0}")]
    Unserved(Arc<Fault>),
    /// There is no lease, as the server has begun a while ago and does not know what is out: it leases nothing new meanwhile.
    #[error("nothing is leased: the server is learning what is out{}", for_another(*.retry_after))]
    Learning {
        /// The time for which it goes on, as far as the server knows.
        retry_after: Option<Duration>,
    },
    /// The rate is used up, or others wait already.
    #[error("the rate is used up for another {:?}", round_up(*.retry_after))]
    Spent {
        /// The time after which it makes sense to ask again, if the rate stays and nobody else takes the tokens.
        retry_after: Duration,
    },
    /// More at once than ever come together; waiting for it works with a rate, and not with a domain.
    #[error("{n} at once is above the burst of {burst}")]
    AboveBurst {
        /// The number of units asked for.
        n: u32,
        /// The greatest number that can be had at once.
        burst: u64,
    },
    /// Too much of a gauge is in use.
    #[error("{in_use} of {limit} are in use")]
    Full {
        /// Units that are out.
        in_use: u32,
        /// Units that may be out.
        limit: u32,
    },
    /// Of a window, as many uses count as may.
    #[error("{uses} uses in the window count, and {leased} are leased here, for another {:?}", round_up(*.retry_after))]
    WindowFull {
        /// The uses that count here.
        uses: u32,
        /// The uses that are leased here.
        leased: u32,
        /// The time after which it makes sense to ask again: when enough of these do not count any more, or sooner where others
        /// may come from elsewhere.
        retry_after: Duration,
    },
    /// As many keys are remembered as may be, and this is none of them.
    #[error("{most} keys are in use, which is as many as may")]
    TooManyKeys {
        /// The bound.
        most: usize,
    },
    /// The key makes no name of a resource.
    #[error("{name:?} cannot be the name of a resource: it {fault}")]
    BadKey {
        /// The name that it would be.
        name: Arc<str>,
        /// The fault in it.
        fault: BadName,
    },
    /// There may be room in a gauge, but others wait for it.
    #[error("{waiting} units are waited for already")]
    OthersWait {
        /// The number of units.
        waiting: u64,
    },
    /// As many wait as may.
    #[error("{max_waiters} are waiting already, which is as many as may")]
    TooManyWaiters {
        /// The bound.
        max_waiters: usize,
    },
    /// At the present rate the permit would come after the longest wait that is allowed.
    #[error("would wait {wait:?}, and the bound is {max_wait:?}")]
    TooLong {
        /// The time that the wait would take.
        wait: Duration,
        /// The bound.
        max_wait: Duration,
    },
    /// The longest wait that is allowed passed, and no permit came.
    #[error("waited {max_wait:?}, and it was not granted")]
    TimedOut {
        /// The bound.
        max_wait: Duration,
    },
    /// A domain may not have it: see [`Denied::decision`].
    #[error("{0}")]
    Domain(Box<DomainDenial>),
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
}

/// The refusal of a domain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DomainDenial {
    /// The decision: which bound it was, and how far the domain has come.
    pub decision: Decision,
    /// The time after which it makes sense to ask again; `None` where that is not known, or never.
    pub retry_after: Option<Duration>,
}

// === impl DomainDenial ===

impl fmt::Display for DomainDenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bound by {}", self.decision.bound_in_words())?;
        f.write_str(&for_another(self.retry_after))
    }
}

// === impl Denied ===

impl Denied {
    /// The denial of a domain by a decision of `now`.
    pub(crate) fn domain(decision: Decision, now: Time) -> Denied {
        let retry_after = decision.retry_at.map(|at| at.since(now));
        Denied::Domain(Box::new(DomainDenial { decision, retry_after }))
    }

    /// The time after which it makes sense to ask again, exact.
    pub(crate) fn exact_retry_after(&self) -> Option<Duration> {
        match self {
            Denied::Spent { retry_after } | Denied::WindowFull { retry_after, .. } => Some(*retry_after),
            Denied::TooLong { wait, .. } => Some(*wait),
            Denied::Learning { retry_after } => *retry_after,
            Denied::Domain(denial) => denial.retry_after,
            _ => None,
        }
    }

    /// The time after which it makes sense to ask again, in whole milliseconds, rounded up and so never zero. `None` where time
    /// alone does not help, or nobody knows for how long.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.exact_retry_after().map(round_up)
    }

    /// The decision on a domain, if it is a domain that was denied.
    #[must_use]
    pub fn decision(&self) -> Option<&Decision> {
        match self {
            Denied::Domain(denial) => Some(&denial.decision),
            _ => None,
        }
    }

    /// Whether it is a limit that says no; false where there is no lease, or the client is closed: then a service is not asked
    /// for too much, it does not know how much it may do.
    #[must_use]
    pub fn is_over_limit(&self) -> bool {
        !matches!(
            self,
            Denied::NothingLeased
                | Denied::Unserved(_)
                | Denied::Learning { .. }
                | Denied::TooManyKeys { .. }
                | Denied::BadKey { .. }
                | Denied::Closed
        )
    }

    /// Whether the resource is refused: a name that cannot be one, or that no template matches, or one of another kind. To ask again does not
    /// help as long as the configuration is what it is.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        match self {
            Denied::Unserved(fault) => matches!(**fault, Fault::Failed(Failure::Refused(_))),
            denied => matches!(denied, Denied::BadKey { .. }),
        }
    }
}

/// Whole milliseconds, one at the least.
pub(crate) fn round_up(exact: Duration) -> Duration {
    let millis = exact.as_nanos().div_ceil(1_000_000).max(1);
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

/// That time in words, if it is known.
fn for_another(time: Option<Duration>) -> String {
    time.map_or_else(String::new, |time| format!(" for another {:?}", round_up(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_ask_again_is_rounded_up_and_never_zero() {
        let after = |nanos| Denied::Spent { retry_after: Duration::from_nanos(nanos) }.retry_after();
        assert_eq!(after(0), Some(Duration::from_millis(1)));
        assert_eq!(after(1), Some(Duration::from_millis(1)));
        assert_eq!(after(1_000_000), Some(Duration::from_millis(1)));
        assert_eq!(after(1_000_001), Some(Duration::from_millis(2)));
        assert_eq!(Denied::NothingLeased.retry_after(), None);
        assert_eq!(Denied::Full { in_use: 2, limit: 2 }.retry_after(), None);
    }

    #[test]
    fn a_service_without_a_lease_is_not_asked_for_too_much() {
        let refused =
            Denied::Unserved(Arc::new(Failure::Refused("no template matches \"db\"".into()).into()));
        let lost = Denied::Unserved(Arc::new(Failure::Unreachable("gone".into()).into()));
        assert_eq!(
            refused.to_string(),
            "nothing is leased: refused by the server: no template matches \"db\""
        );
        assert_eq!((refused.is_over_limit(), refused.is_refusal()), (false, true));
        assert_eq!((lost.is_over_limit(), lost.is_refusal()), (false, false));
        let learning = Denied::Learning { retry_after: Some(Duration::from_micros(51_199_001)) };
        assert_eq!(
            learning.to_string(),
            "nothing is leased: the server is learning what is out for another 51.2s"
        );
        assert_eq!((learning.is_over_limit(), learning.is_refusal()), (false, false));
        assert_eq!(learning.retry_after(), Some(Duration::from_millis(51_200)));
        assert!(!Denied::Closed.is_over_limit() && Denied::Full { in_use: 1, limit: 1 }.is_over_limit());
    }
}
