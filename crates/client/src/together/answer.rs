//! The answer to a request of several resources.

use std::fmt;
use std::time::Duration;

use lessor_proto::Time;

use crate::decision::Decision;
use crate::denied::{Denied, DomainDenial, round_up};
use crate::gauge;

/// The permit for what was granted. The units of gauges come back when this is dropped; what was taken of rates
/// is spent.
#[derive(Debug)]
#[must_use = "units of gauges come back when the permit is dropped"]
pub struct TogetherPermit {
    pub(super) copies: u32,
    pub(super) bound_by: Option<usize>,
    pub(crate) answers: Vec<TogetherAnswer>,
    pub(super) held: Vec<gauge::Permit>,
}

/// The answer of one part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TogetherAnswer {
    /// This number of units is taken, of a gauge or a rate.
    Taken(u32),
    /// The decision on the domain: what it was granted, or why it was refused.
    Domain(Decision),
    /// The gauge, or the rate, refuses.
    Denied(Denied),
    /// It would have been granted; nothing is taken, as another part refuses.
    Agreed,
}

/// Why nothing was granted, and nothing has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The answers of the parts, in the order in which they were named.
    pub answers: Vec<TogetherAnswer>,
    /// When to try again: the latest of the times that parts name. `None` where none names one.
    pub retry_at: Option<Time>,
    /// The time until then, when it was answered.
    pub retry_after: Option<Duration>,
}

/// Why there is no permit. Parts are counted from 0, in the order in which they were named.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TogetherDenied {
    /// Two parts are of the same gauge, or of the same lease.
    #[error("parts {first} and {second} are of the same resource; wanted each once")]
    Twice {
        /// One of them.
        first: usize,
        /// The other.
        second: usize,
    },
    /// The least that is of use costs more than can be counted.
    #[error("part {part} costs {each} for each of {min} copies; wanted at most {most} in all", most = u32::MAX)]
    TooMuch {
        /// Which part.
        part: usize,
        /// Its price.
        each: u32,
        /// Copies that are wanted at the least.
        min: u32,
    },
    /// At least one part refuses.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nothing was granted in time.
    #[error("nothing is granted within {max_wait:?}: {refusal}")]
    TooLate {
        /// The last answer.
        refusal: Refusal,
        /// The bound.
        max_wait: Duration,
    },
    /// There is no lease for a part, and will be none: the client is closed, or the server refuses the resource.
    #[error("part {part} cannot be had: {denied}")]
    Part {
        /// Which part.
        part: usize,
        /// Its answer.
        denied: Denied,
    },
    /// As many wait for a gauge as may.
    #[error("{max_waiters} are waiting for part {part} already, which is as many as may")]
    TooManyWaiters {
        /// Which part.
        part: usize,
        /// The bound.
        max_waiters: usize,
    },
}

// === impl TogetherPermit ===

impl TogetherPermit {
    /// The number of copies that were granted.
    #[must_use]
    pub fn copies(&self) -> u32 {
        self.copies
    }

    /// Which part allowed no more copies than that, if more were asked for; the first of several.
    #[must_use]
    pub fn bound_by(&self) -> Option<usize> {
        self.bound_by
    }

    /// The answers of the parts, in the order in which they were named.
    #[must_use]
    pub fn answers(&self) -> &[TogetherAnswer] {
        &self.answers
    }

    /// When the first of the leases behind its gauges ends, as far as is known: see [`gauge::Permit::deadline`]. `None`
    /// without gauges that are leased.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.held.iter().filter_map(gauge::Permit::deadline).min()
    }

    /// Whether the units of one of its gauges have ended: see [`gauge::Permit::is_expired`].
    #[cfg(feature = "shell")]
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.is_expired_at(crate::shell::clock::now())
    }

    /// Whether the units of one of its gauges have ended by `now`: see [`gauge::Permit::is_expired_at`].
    #[must_use]
    pub fn is_expired_at(&self, now: Time) -> bool {
        self.held.iter().any(|permit| permit.is_expired_at(now))
    }
}

// === impl TogetherAnswer ===

impl TogetherAnswer {
    /// Whether this part refuses.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        match self {
            TogetherAnswer::Taken(_) | TogetherAnswer::Agreed => false,
            TogetherAnswer::Domain(decision) => !decision.is_granted(),
            TogetherAnswer::Denied(_) => true,
        }
    }

    /// When a part that refuses may grant, as an answer of `now`.
    pub(super) fn retry_at(&self, now: Time) -> Option<Time> {
        match self {
            TogetherAnswer::Domain(decision) => decision.retry_at,
            TogetherAnswer::Denied(denied) => denied.exact_retry_after().map(|after| now + after),
            TogetherAnswer::Taken(_) | TogetherAnswer::Agreed => None,
        }
    }
}

impl fmt::Display for TogetherAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TogetherAnswer::Taken(units) => write!(f, "{units} units are taken"),
            TogetherAnswer::Domain(decision) if decision.is_granted() => {
                write!(f, "{} hits are granted", decision.granted)
            }
            TogetherAnswer::Domain(decision) => write!(f, "bound by {}", decision.bound_in_words()),
            TogetherAnswer::Denied(denied) => denied.fmt(f),
            TogetherAnswer::Agreed => f.write_str("agrees"),
        }
    }
}

// === impl Refusal ===

impl Refusal {
    /// The part that is to blame: see [`TogetherDenied::denial`].
    fn denial(&self) -> Option<(usize, Denied)> {
        // The moment of the answer, by the latest of the times that parts name.
        let asked = self.retry_at.zip(self.retry_after);
        let after =
            |at: Time| asked.map_or(Duration::ZERO, |(latest, after)| after.saturating_sub(latest.since(at)));
        let denials = self.answers.iter().enumerate().filter_map(|(part, answer)| match answer {
            TogetherAnswer::Denied(denied) => Some((part, denied.clone())),
            TogetherAnswer::Domain(decision) if !decision.is_granted() => {
                let retry_after = decision.retry_at.map(after);
                Some((part, Denied::Domain(Box::new(DomainDenial { decision: *decision, retry_after }))))
            }
            TogetherAnswer::Domain(_) | TogetherAnswer::Taken(_) | TogetherAnswer::Agreed => None,
        });
        denials.max_by_key(|(_, denied)| (!denied.is_over_limit(), denied.exact_retry_after()))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refusing = self.answers.iter().enumerate().filter(|(_, answer)| answer.is_refusal());
        for (place, (part, answer)) in refusing.enumerate() {
            let separator = if place == 0 { "" } else { "; " };
            write!(f, "{separator}part {part} refuses: {answer}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}

// === impl TogetherDenied ===

impl TogetherDenied {
    /// The time after which it makes sense to ask again, as [`Denied::retry_after`] gives it: until the latest of the times
    /// that parts name.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.refusal()?.retry_after.map(round_up)
    }

    /// The refusal with the answers of the parts, if they were asked.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            TogetherDenied::Refused(refusal) | TogetherDenied::TooLate { refusal, .. } => Some(refusal),
            TogetherDenied::Twice { .. }
            | TogetherDenied::TooMuch { .. }
            | TogetherDenied::Part { .. }
            | TogetherDenied::TooManyWaiters { .. } => None,
        }
    }

    /// The part that is to blame, and its denial: one without a lease, or else the one that names the latest time. `None` where
    /// the request cannot be.
    #[must_use]
    pub fn denial(&self) -> Option<(usize, Denied)> {
        match self {
            TogetherDenied::Part { part, denied } => Some((*part, denied.clone())),
            TogetherDenied::TooManyWaiters { part, max_waiters } => {
                Some((*part, Denied::TooManyWaiters { max_waiters: *max_waiters }))
            }
            TogetherDenied::Refused(refusal) | TogetherDenied::TooLate { refusal, .. } => refusal.denial(),
            TogetherDenied::Twice { .. } | TogetherDenied::TooMuch { .. } => None,
        }
    }

    /// The answers of the parts, if they were asked.
    #[cfg(feature = "shell")]
    pub(crate) fn answers_mut(&mut self) -> &mut [TogetherAnswer] {
        match self {
            TogetherDenied::Refused(refusal) | TogetherDenied::TooLate { refusal, .. } => {
                &mut refusal.answers
            }
            TogetherDenied::Twice { .. }
            | TogetherDenied::TooMuch { .. }
            | TogetherDenied::Part { .. }
            | TogetherDenied::TooManyWaiters { .. } => &mut [],
        }
    }
}
