//! Domains: what each tenant or user may use of the lease of its client.
//!
//! Templates name policies for domains, servers deliver them with the lease, and each client enforces them for itself, on
//! what it grants itself and on what it was told that others did ([`Scope`]). Policies are those of
//! [`lessor_algorithms::tiers`].
//!
//! A request of a domain is granted the largest number that all limits allow: the tiers of all its policies, the hard
//! and the global limit, and the lease. If that is less than is of use nothing is granted, and nothing has changed.
//!
//! ```
//! use lessor_client::internals::allowance::Allowance;
//! use lessor_client::internals::domain::{Domains, Override, Policies, Rules};
//! use lessor_client::internals::limiter::Limiter;
//! use lessor_client::{Bound, DomainOptions};
//! use lessor_algorithms::tiers::{Contract, TierPolicy, Tier, Window};
//! use lessor_proto::{Amount, Time};
//! use std::{sync::Arc, time::Duration};
//!
//! // Five a second.
//! let (window, active, cooldown) = (Duration::from_secs(1), Duration::from_secs(1), Duration::ZERO);
//! let tier = Tier { limit: 5, window, active, cooldown, is_skippable: false, kind: Window::Exact };
//! let default = Some(Contract::from(TierPolicy::new(vec![tier], None, None)?));
//! let domains = Domains::new(DomainOptions::default());
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
//! those. Beyond [`DomainOptions::most`] domains no more are remembered: they are granted whatever the lease allows, and counted;
//! where domains have leases of their own, they are refused.
//!
//! # Replication
//!
//! With the scope `shared` whoever drives this has to [attend](Domains::attend) a stream, to send the
//! [next message](Domains::next_message) on it at the [next deadline](Domains::next_deadline), and to hand in each
//! [update](Domains::on_update) that comes back. Without that each client counts for itself. With the scope `strict` it has to
//! see to the [leases of domains](Subleases).
//!
//! # Deliberately absent
//!
//! Chance, and clocks.

mod counts;
mod lookup;
mod name;
mod policies;
mod record;
mod replication;
mod request;
mod reservation;
mod retry;
mod rules;
mod second;
mod shard;
mod share;
mod snapshot;
mod store;
mod strict;
mod sync;
#[cfg(test)]
mod tests;
mod wait;
mod wire;

pub use self::counts::DomainCounts;
pub use self::policies::{Policies, Rule};
pub(crate) use self::reservation::{Cut, Grant, LockedDomain, Reservation};
pub(crate) use self::retry::{End, Held, Next, Request, until_granted};
pub use self::rules::{BadPolicies, MOST_OVERRIDES, Override, Rules, Scope};
pub use self::share::{NotStrict, Share};
pub use self::snapshot::{Filter, Order, Query, Rest, Row, Snapshot};
pub use self::store::{Degraded, DomainOptions, Domains};
pub use self::strict::{Lender, MOST_LEASES, News, Sublease, Subleases};
pub use self::sync::{CADENCE, Clocks, DeltaStream, UNREACHABLE_AFTER};
pub use self::sync::{entry_at, is_marked, is_share, least_limit, message_at};
pub use self::wait::DomainWish;
pub use self::wire::none;
pub(crate) use crate::decision::Bound;
