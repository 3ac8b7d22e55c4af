//! Costs: what a request takes of a rate before its answer, and what it turns out to have cost.

use http::Request;
use http::response::Parts;

/// The cost of a request, before it is answered. It may be a closure: `|request: &Request<B>| 5`.
pub trait Cost<B> {
    /// The units that it costs; 0 is free.
    fn cost(&self, request: &Request<B>) -> u32;
}

/// The cost of a request as its answer shows it. It may be a closure: `|answer: &Parts| 5`.
///
/// More than it was granted for is a debt, which later requests of the same domain pay first; less comes back to the tiers of
/// the domain. A request whose answer never comes stays at what it was granted for.
pub trait Settle {
    /// Whether there is anything to settle.
    const IS_NEEDED: bool = true;

    /// The units that it cost; `granted` is what was taken.
    fn actual(&self, answer: &Parts, granted: u32) -> u32;
}

/// The cost of one unit for each request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct One;

/// The settlement that leaves the cost at what was taken.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Keep;

/// Whether the owner of granted units has to be known when they are settled.
pub(crate) trait Settling {
    /// Whether anything is settled.
    const IS_NEEDED: bool;
}

// === impl Cost ===

impl<B> Cost<B> for One {
    fn cost(&self, _: &Request<B>) -> u32 {
        1
    }
}

impl<B, F: Fn(&Request<B>) -> u32> Cost<B> for F {
    fn cost(&self, request: &Request<B>) -> u32 {
        self(request)
    }
}

// === impl Settle ===

impl Settle for Keep {
    const IS_NEEDED: bool = false;

    fn actual(&self, _: &Parts, granted: u32) -> u32 {
        granted
    }
}

impl<T: Settle> Settling for T {
    const IS_NEEDED: bool = T::IS_NEEDED;
}

impl<F: Fn(&Parts) -> u32> Settle for F {
    fn actual(&self, answer: &Parts, _: u32) -> u32 {
        self(answer)
    }
}
