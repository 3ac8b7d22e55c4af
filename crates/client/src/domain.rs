//! Domains: what each tenant or user may use of the lease of its client.
//!
//! Templates name policies for domains, and servers deliver them with the lease. Policies are those of
//! [`lessor_algorithms::tiers`].

mod policies;
mod wire;

pub use self::policies::{BadPolicies, MOST_OVERRIDES, Override, Policies, Rule, Rules};
pub use self::wire::none;
