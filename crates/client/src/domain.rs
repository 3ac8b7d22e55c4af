//! Domains: what each tenant or user may use of the lease of its client.
//!
//! Templates name policies for domains, servers deliver them with the lease, and each client enforces them for itself, on
//! what it grants itself and on what it was told that others did ([`Scope`]). Policies are those of
//! [`lessor_algorithms::tiers`].
//!
//! Who asks for a domain is granted the largest number that all limits allow: the tiers of all its policies, the hard and
//! the global limit, and the lease. If that is less than is of use nothing is granted, and nothing has changed.
//!
//! ```
//! use lessor_client::domain::{Bound, Domains, Options, Override, Policies, Rules};
//! use lessor_client::limiter::{Allowance, Limiter};
//! use lessor_algorithms::tiers::{Contract, Policy, Tier, Window};
//! use lessor_proto::{Amount, Time};
//! use std::{sync::Arc, time::Duration};
//!
//! // Five a second.
//! let (window, active, cooldown) = (Duration::from_secs(1), Duration::from_secs(1), Duration::ZERO);
//! let tier = Tier { limit: 5, window, active, cooldown, is_skippable: false, kind: Window::Exact };
//! let default = Some(Contract::from(Policy::new(vec![tier], None, None)?));
//! let domains = Domains::new(Options::default());
//! domains.follow(Some(Arc::new(Policies::new(Rules { default, ..Rules::default() })?)));
//!
//! let lease = Limiter::new(Duration::from_secs(1));
//! lease.allow(Time::ZERO, Allowance::forever(Amount::from_units(7)));
//! let second = Time::from_nanos(1_000_000_000);
//! let decision = domains.request(&lease, "tenant-42", 100, 1, second);
//! assert_eq!((decision.granted, decision.bound), (5, Some(Bound::Tiers)));
//! let decision = domains.request(&lease, "tenant-43", 100, 1, second);
//! assert_eq!((decision.granted, decision.bound), (2, Some(Bound::Lease)));
//! let decision = domains.request(&lease, "tenant-42", 1, 1, second);
//! assert_eq!((decision.granted, decision.bound), (0, Some(Bound::Tiers)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Memory
//!
//! A domain is remembered from its first hit that a policy counts until none counts any more; [`Domains::sweep`] forgets
//! those. Beyond [`Options::most`] domains no more are remembered: they are granted whatever the lease allows, and counted;
//! where domains have leases of their own, they are refused.
//!
//! # Who tells whom
//!
//! With the scope `shared` whoever drives this has to [attend](Domains::attend) a stream, to [tell](Domains::tell) the server at
//! the times that are [named](Domains::tell_at) and to let it [learn](Domains::learn) what comes back. Without that each client
//! counts for itself. With the scope `strict` it has to see to the [leases of domains](Subleases).
//!
//! # Deliberately absent
//!
//! Chance, and clocks.

mod clocks;
mod counts;
mod deciding;
mod decision;
mod exchange;
mod name;
mod policies;
mod second;
mod shard;
mod sharing;
mod snapshot;
mod store;
mod strict;
mod table;
mod telling;
#[cfg(test)]
mod tests;
mod turn;
mod wait;
mod wire;

pub use self::clocks::{Clocks, Unconfirmed};
pub use self::counts::DomainCounts;
pub use self::decision::{Bound, Decision, Ground};
pub use self::exchange::{CADENCE, HEARING};
pub use self::policies::{BadPolicies, MOST_OVERRIDES, Override, Policies, Rule, Rules, Scope};
pub use self::sharing::{is_marked, is_share, least_limit};
pub use self::snapshot::{Filter, Order, Query, Rest, Row, Snapshot};
pub use self::store::{Degraded, DomainOptions, Domains};
pub use self::strict::{Lender, MOST_LEASES, News, NotStrict, Share, Sublease, Subleases, Sublessee};
pub(crate) use self::turn::{Cut, Seat, Turn};
pub use self::wait::{DomainWish, NotGranted};
pub(crate) use self::wait::{LEAST, back_off, text};
pub use self::wire::{entry_at, none, told_at};
