//! The rules for the domains of a resource, as they are configured.

use lessor_algorithms::tiers::Contract;
use lessor_proto::Glob;

use super::share::NotStrict;

/// The most overrides that there may be.
pub const MOST_OVERRIDES: usize = 1_000;

/// Whose hits count when a domain's requests reach several clients.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Scope {
    /// Each client's by themselves: a domain may use as many times as much as there are clients that it reaches.
    Client,
    /// All that are known: clients tell each other, over the streams to their server. Without a stream as `Client`.
    #[default]
    Shared,
    /// A domain has a lease of its own, of which each client has a part.
    Strict,
}

/// The configuration for the domains of a resource.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Rules {
    /// Whose hits count.
    pub scope: Scope,
    /// Of [`Scope::Shared`]: what others use is not to be known, so whatever this client knows to be too much is refused.
    /// Otherwise the least that is asked for is granted.
    pub refuses_unheard: bool,
    /// Whether what they refuse is granted, and counted: rules that are tried.
    pub unenforced: bool,
    /// The contract of the domains that no override is for; absent: they are refused.
    pub default: Option<Contract>,
    /// In the order in which their globs are tried.
    pub overrides: Vec<Override>,
    /// Domains whose names begin with one of these are granted although nothing is configured for them.
    pub allow_unconfigured: Vec<String>,
    /// Domains whose names begin with one of these are granted whatever is configured for them.
    pub ignore_configured: Vec<String>,
}

/// The contract of some domains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Override {
    /// Which ones.
    pub glob: Glob,
    /// The contract that they follow.
    pub contract: Contract,
}

/// Why rules cannot be taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadPolicies {
    /// Two overrides are for the same domains.
    #[error("the domain {0:?} stands twice; wanted each once")]
    Twice(String),
    /// Domains are to have leases of their own, and that cannot be leased.
    #[error("{which}: {why}")]
    NotStrict {
        /// The contract concerned: `default`, or the glob of an override.
        which: String,
        /// Why not.
        why: NotStrict,
    },
    /// Too many overrides.
    #[error("{0} overrides; wanted at most {MOST_OVERRIDES}")]
    Many(usize),
    /// Something that came over the wire cannot be.
    #[error("{field} {found}")]
    Malformed {
        /// The field concerned: `override[2].glob`.
        field: String,
        /// The fault that was found in it.
        found: String,
    },
}
