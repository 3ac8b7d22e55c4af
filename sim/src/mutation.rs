//! Rules of the minds that are taken out one at a time, to show that the oracle notices.

pub use lessor_client::internals::mutation::Mutation as HolderMutation;
pub use lessor_server::election::mutation::{ElectionRule, ElectionRules};
pub use lessor_server::mutation::{Rule as GrantorRule, Rules};

/// A rule that is taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// Of all holders: clients, and nodes towards those above.
    Holder(HolderMutation),
    /// Of all grantors.
    Grantor(GrantorRule),
    /// Of all who stand for election.
    Election(ElectionRule),
    /// Of what stands between the session of a client and its enforcers.
    Driver(DriverMutation),
}

/// A rule of the driver of a client, taken out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DriverMutation {
    /// The driver says what is in use before it puts a change into force, and not after.
    UseSaidBefore,
    /// A limiter or a gauge hears of less only when more is allowed again.
    LessIsNotTold,
    /// The lease of a domain hears of less only when more is allowed again.
    DomainIsNotTold,
    /// Time that a clock did not show is not looked for: clients, leaders and candidates alike.
    PausesUnseen,
}

// === impl DriverMutation ===

impl DriverMutation {
    /// All of them.
    pub const ALL: [DriverMutation; 4] = [
        DriverMutation::UseSaidBefore,
        DriverMutation::LessIsNotTold,
        DriverMutation::DomainIsNotTold,
        DriverMutation::PausesUnseen,
    ];
}

// === impl Mutation ===

impl Mutation {
    /// The rule that clients lack, if it is one of theirs.
    #[must_use]
    pub fn client(self) -> Option<HolderMutation> {
        match self {
            Mutation::Holder(mutation) => Some(mutation),
            Mutation::Grantor(_) | Mutation::Election(_) | Mutation::Driver(_) => None,
        }
    }

    /// The rules that nodes go by.
    #[must_use]
    pub fn node(self) -> Rules {
        match self {
            Mutation::Holder(mutation) => Rules::holder_without(mutation),
            Mutation::Grantor(mutation) => Rules::without(mutation),
            Mutation::Election(_) | Mutation::Driver(_) => Rules::default(),
        }
    }

    /// The rules that candidates go by.
    #[must_use]
    pub fn election(self) -> ElectionRules {
        match self {
            Mutation::Election(mutation) => ElectionRules::without(mutation),
            Mutation::Holder(_) | Mutation::Grantor(_) | Mutation::Driver(_) => ElectionRules::default(),
        }
    }
}
