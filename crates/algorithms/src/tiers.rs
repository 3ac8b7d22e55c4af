//! Burst tiers: what one domain may use of a resource, so that a burst is allowed and has its price.
//!
//! A *domain* is whatever has a history of its own, a tenant or a user. A *hit* is one use. A [`Tier`] allows a number of
//! hits in a window; the next tier allows another number, for some time, and then must rest. The rules are Charon's (its
//! paper, section 2.1, and "Charon Simulator", eric-fritz.com, 2017):
//!
//! - A tier is inactive until its first hit, active for its active time from that hit, then in cooldown, then inactive again.
//!   Times include their first nanosecond and not their last.
//! - The current tier is the active one with the greatest index. With none active it is the fake tier 0, which never has room.
//! - In the current tier a hit is granted if fewer hits than the limit lie in the window: the next one as soon as more than
//!   the window has passed since the oldest of them. Hits of a tier count whenever they were made, also in an earlier
//!   active time; in the paper they do not, which is [`Windows::Reset`].
//! - If there is no room the request bursts into the tier above, which begins its active time. If that one cools down or is
//!   full the request is refused, or the tier is passed over if it is skippable. A tier without active time is passed over.
//! - A request for many hits is so many requests at the same time.
//!
//! Beside that there may be a hard limit, hits in any second by one domain, and a global limit, by all of them. Several
//! [policies](TierPolicy) on one domain are a [`Contract`]: each has its tiers, and all must hold.
//!
//! ```
//! use std::time::Duration;
//! use lessor_algorithms::tiers::{Ask, Contract, Domain, Global, TierPolicy, Tier, Window};
//!
//! let tier = |limit, window, active, cooldown| Tier {
//!     limit,
//!     window: Duration::from_secs(window),
//!     active: Duration::from_secs(active),
//!     cooldown: Duration::from_secs(cooldown),
//!     is_skippable: false,
//!     kind: Window::Exact,
//! };
//! // Five a second; or fifty in five seconds, and then not again for fifteen.
//! let contract = Contract::from(TierPolicy::new(vec![tier(5, 1, 1, 0), tier(50, 5, 5, 15)], None, None)?);
//! let (mut tenant, mut all) = (Domain::new(), Global::default());
//!
//! let decision = tenant.request(&contract, &mut all, 0, Ask::up_to(100));
//! assert_eq!((decision.granted, decision.tier), (55, 2));
//! let decision = tenant.request(&contract, &mut all, 1, Ask::ONE);
//! assert_eq!((decision.granted, decision.retry_at), (0, Some(5_000_000_000)));
//! # Ok::<(), lessor_algorithms::tiers::Invalid>(())
//! ```
//!
//! # Deliberately absent
//!
//! - A clock. Times are nanoseconds on any clock, given with each call, and never go backwards.
//! - A map of domains, and locks. A domain that [is idle](Domain::is_idle) can be thrown away; who keeps many decides when.
//! - Chance. Whether others did something that is not known here is for the caller to find out before it refuses.

mod decision;
mod domain;
mod export;
mod forecast;
mod global;
mod key;
mod merge;
mod normalise;
mod policy;
mod pool;
mod settle;
mod state;
mod swap;
mod tier;
mod walk;
mod window;

pub use decision::{Ask, Bound, Decision, Plan};
pub use domain::Domain;
pub use export::coarsened;
pub use global::Global;
pub use key::configured;
pub use merge::MergeEntry;
pub use normalise::{Normalisation, normalise};
pub use policy::{Contract, Invalid, MOST_POLICIES, MOST_TIERS, TierPolicy};
pub use state::{Standing, TierState};
pub use tier::{Tier, Window, Windows};
pub use window::Status;
