//! Several resources in one request: all that is wanted of each of them, or nothing of any.
//!
//! A job needs a worker, calls of an API and queries of a database: to hold the worker and then be refused a query would waste
//! both. Here one request names all of them. It is granted if each part is, and if not, nothing has changed: no unit of a
//! gauge is out, no hit of a domain is made, no token of a lease is spent.
//!
//! ```
//! use lessor_client::internals::{allowance::Allowance, gauge::Semaphore, limiter::Limiter, together::Combination};
//! use lessor_client::{Price, TogetherDenied};
//! use lessor_proto::{Amount, Time};
//! use std::time::Duration;
//!
//! let allow = |units| Allowance::forever(Amount::from_units(units));
//! let (workers, queries) = (Semaphore::default(), Limiter::new(Duration::from_secs(1)));
//! workers.allow(Time::ZERO, allow(3));
//! queries.allow(Time::ZERO, allow(10));
//!
//! // A worker for as many jobs as possible, up to four, at three queries each.
//! let jobs = Combination::between(1, 4).gauge(&workers, Price::Once(1)).rate(&queries, Price::Each(3));
//! let second = Time::from_nanos(1_000_000_000);
//! let permit = jobs.try_acquire(|| second)?;
//! assert_eq!((permit.copies(), permit.bound_by(), workers.in_use()), (3, Some(1), 1));
//!
//! let refused = jobs.try_acquire(|| second).unwrap_err();
//! assert_eq!(refused.to_string(), "part 1 refuses: the rate is used up for another 200ms");
//! assert_eq!(workers.in_use(), 1, "the second worker is not kept");
//! drop(permit);
//! assert_eq!(workers.in_use(), 0);
//! # Ok::<(), TogetherDenied>(())
//! ```
//!
//! # One number for all parts
//!
//! A request is for a number of *copies* of the same thing, with a least number that is of use, as in Charon's cookbook. Of
//! each part it takes either the same for all copies, or so much for each ([`Price`]), and what is granted is the largest
//! number of copies that all parts allow. To grant each part a number of its own would take from one what cannot be used for
//! lack of another.
//!
//! A resource stands in a request once: two parts of the same gauge, of the same key of windows, or of the same lease, are refused as
//! [`TogetherDenied::Twice`], as what they cost together is for the caller to say.
//!
//! # How it is done
//!
//! Gauges come first, in one fixed order, and what they give can be given back as it was. Then windows are locked, and the clock
//! is read, as a use is dated under the lock; policies of all domains say what they allow, and leases what they have, each under
//! its lock, and all these locks are held until the answer; so what is seen can be taken, and what is spent never has to be
//! given back. Nobody waits for a lock while he holds one that comes
//! later in the order, and nobody waits for anything else while he holds one. When a later part refuses, a unit of a gauge
//! was out for that moment: another may have been refused it.
//!
//! A part answers as it would alone: the kill switch, domains that are not remembered, [`Degraded`](crate::domain::Degraded)
//! are what they are there. A domain that owes hits and is refused for it pays what it can, though nothing is granted, or
//! else it would owe them for ever.

mod answer;
mod attempt;
#[cfg(test)]
mod tests;
mod wait;

use lessor_proto::Time;

pub use self::answer::{Refusal, TogetherAnswer, TogetherDenied, TogetherPermit};
use crate::domain::{Domains, Held};
use crate::gauge::Semaphore;
use crate::limiter::Limiter;
use crate::window::WindowKeys;

/// A request of several resources. It can be made any number of times.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked without `try_acquire` or `acquire_by`"]
pub struct Combination<'a> {
    min: u32,
    copies: u32,
    parts: Vec<Part<'a>>,
}

/// The amount that is taken of one part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Price {
    /// This number of units or hits, whatever the number of copies: a worker that does them all.
    Once(u32),
    /// This number for each copy.
    Each(u32),
}

/// One of the resources.
#[derive(Clone, Copy, Debug)]
struct Part<'a> {
    of: Of<'a>,
    price: Price,
}

#[derive(Clone, Copy, Debug)]
enum Of<'a> {
    Gauge(&'a Semaphore),
    Domain { domains: &'a Domains, lease: &'a Limiter, name: &'a str },
    Rate(&'a Limiter),
    Window { keys: &'a WindowKeys, key: &'a str },
}

// === impl Combination ===

impl<'a> Combination<'a> {
    /// One copy of everything that is named after this.
    pub fn once() -> Combination<'a> {
        Combination::between(1, 1)
    }

    /// As many copies as possible, up to `copies`, and no fewer than `min`, which is taken for `copies` if it is more, and
    /// for 1 if it is 0. Of no copies nothing is taken.
    pub fn between(min: u32, copies: u32) -> Combination<'a> {
        Combination { min: min.max(1).min(copies), copies, parts: Vec::new() }
    }

    /// Units of a gauge as well.
    pub fn gauge(self, gauge: &'a Semaphore, price: Price) -> Combination<'a> {
        self.with(Of::Gauge(gauge), price)
    }

    /// Hits of a domain, and as much of the lease, as well.
    pub fn domain(
        self,
        domains: &'a Domains,
        lease: &'a Limiter,
        name: &'a str,
        price: Price,
    ) -> Combination<'a> {
        self.with(Of::Domain { domains, lease, name }, price)
    }

    /// Units of a rate as well.
    pub fn rate(self, rate: &'a Limiter, price: Price) -> Combination<'a> {
        self.with(Of::Rate(rate), price)
    }

    /// Uses of a key of windows as well.
    pub fn window(self, keys: &'a WindowKeys, key: &'a str, price: Price) -> Combination<'a> {
        self.with(Of::Window { keys, key }, price)
    }

    /// Takes what can be had of all parts, or nothing. The clock is read once, and with windows once more under their locks.
    ///
    /// # Errors
    /// [`TogetherDenied::Refused`] if a part refuses, [`TogetherDenied::Twice`] and [`TogetherDenied::TooMuch`] if the request cannot be.
    pub fn try_acquire(&self, clock: impl Fn() -> Time) -> Result<TogetherPermit, TogetherDenied> {
        self.check()?;
        Ok(self.attempt(Held::Nothing, &clock)?)
    }

    fn with(mut self, of: Of<'a>, price: Price) -> Combination<'a> {
        self.parts.push(Part { of, price });
        self
    }

    /// Whether the request can be made at all.
    fn check(&self) -> Result<(), TogetherDenied> {
        for (second, part) in self.parts.iter().enumerate() {
            if let Some(first) = self.parts[..second].iter().position(|other| other.of.is(&part.of)) {
                return Err(TogetherDenied::Twice { first, second });
            }
            if let Price::Each(each) = part.price
                && self.min > part.price.copies(u32::MAX)
            {
                return Err(TogetherDenied::TooMuch { part: second, each, min: self.min });
            }
        }
        Ok(())
    }
}

// === impl Of ===

impl Of<'_> {
    /// Whether both are of the same resource.
    fn is(&self, other: &Of<'_>) -> bool {
        match (self, other) {
            (Of::Gauge(one), Of::Gauge(other)) => one.address() == other.address(),
            (Of::Domain { domains: one, .. }, Of::Domain { domains: other, .. })
                if one.address() == other.address() =>
            {
                true
            }
            (Of::Window { keys: one, key }, Of::Window { keys: other, key: name }) => {
                one.address() == other.address() && key == name
            }
            _ => {
                matches!((self.lease(), other.lease()), (Some(one), Some(other)) if one.address() == other.address())
            }
        }
    }

    fn lease(&self) -> Option<&Limiter> {
        match self {
            Of::Gauge(_) | Of::Window { .. } => None,
            Of::Domain { lease, .. } => Some(lease),
            Of::Rate(rate) => Some(rate),
        }
    }
}

// === impl Price ===

impl Price {
    /// The number of units that `copies` copies cost.
    #[must_use]
    pub fn units(self, copies: u32) -> u32 {
        match self {
            Price::Once(units) => units,
            Price::Each(units) => units.saturating_mul(copies),
        }
    }

    /// The number of copies that there can be for `units` units.
    fn copies(self, units: u32) -> u32 {
        match self {
            Price::Once(price) if units < price => 0,
            Price::Once(_) | Price::Each(0) => u32::MAX,
            Price::Each(price) => units / price,
        }
    }
}
