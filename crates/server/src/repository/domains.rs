//! The domains of a template: their policies, and what was made of them when they were read.

use std::fmt;
use std::sync::Arc;

use lessor_algorithms::tiers::Normalisation;
use lessor_client::internals::domain::Policies;

/// The part of a template about domains: clients enforce it, as the scope of the policies says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Domains {
    /// The policies that are delivered to clients.
    pub policies: Arc<Policies>,
    /// In what it differs from what is written.
    pub changes: Vec<Change>,
}

/// Something that was made of a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Which policy: `default`, or `"trial-*", policy 2`.
    pub policy: String,
    /// The change that was made to it.
    pub what: Normalisation,
}

// === impl Change ===

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "domains: {}: {}", self.policy, self.what)
    }
}
