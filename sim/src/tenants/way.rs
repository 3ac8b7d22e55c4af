//! The ways in which clients know of each other, and the policy by which they are compared.

use std::fmt;
use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};

/// The knowledge that clients have of each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TenantsWay {
    /// Nothing: each enforces the tiers in full.
    Alone,
    /// They tell each other over streams.
    Shared(Ask),
    /// They would, but poll.
    Polling,
    /// The domain has a lease of its own, of which each has a part. The contract has to be one that can be leased.
    Strict,
}

/// The way in which a request is answered that would be refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// At once.
    AtOnce,
    /// When the server was asked.
    Confirmed,
}

// === impl TenantsWay ===

impl TenantsWay {
    /// Those that a template can choose by its scope, from the loosest to the strictest.
    pub const SCOPES: [TenantsWay; 4] = [
        TenantsWay::Alone,
        TenantsWay::Shared(Ask::AtOnce),
        TenantsWay::Shared(Ask::Confirmed),
        TenantsWay::Strict,
    ];

    /// The tiers of the protocol's own measurement: 100 in 10 s, or 200 for half a minute, or 400 for a quarter; and no more
    /// than 80 in a second. A lease does not burst and rest, so what is strict has the first of them only.
    #[must_use]
    pub fn contract(self) -> Contract {
        let tier = |limit, active, cooldown, is_skippable| Tier {
            limit,
            window: Duration::from_secs(10),
            active: Duration::from_secs(active),
            cooldown: Duration::from_secs(cooldown),
            is_skippable,
            kind: Window::Exact,
        };
        let tiers = match self {
            TenantsWay::Strict => vec![tier(100, 10, 0, false)],
            TenantsWay::Alone | TenantsWay::Shared(_) | TenantsWay::Polling => {
                vec![tier(100, 60, 0, false), tier(200, 30, 60, false), tier(400, 15, 120, true)]
            }
        };
        Contract::from(TierPolicy::new(tiers, Some(80), None).expect("a policy that holds together"))
    }
}

impl fmt::Display for TenantsWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TenantsWay::Alone => "client",
            TenantsWay::Shared(Ask::AtOnce) => "shared, at once",
            TenantsWay::Shared(Ask::Confirmed) => "shared, confirmed",
            TenantsWay::Polling => "shared, polling",
            TenantsWay::Strict => "strict",
        })
    }
}
