//! Rules of the minds that are taken out one at a time, to show that the oracle notices.

pub use lessor_client::internals::mutation::{HolderRule, HolderRules};
pub use lessor_server::election::mutation::{ElectionRule, ElectionRules};
pub use lessor_server::follower::mutation::{FollowerRule, FollowerRules};
pub use lessor_server::mutation::{Rule as GrantorRule, Rules};

/// A rule that is taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// Of all holders: clients, and nodes towards those above.
    Holder(HolderRule),
    /// Of all grantors.
    Grantor(GrantorRule),
    /// Of all who stand for election.
    Election(ElectionRule),
    /// Of all who follow templates.
    Follower(FollowerRule),
    /// Of what stands between the session of a client and its enforcers, and between a server's streams and its node.
    Driver(DriverRule),
}

/// A rule of the driver of a client, or of a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DriverRule {
    /// The driver says what is in use after it has put a change into force.
    UseSaidAfter,
    /// A limiter or a gauge hears of less at once.
    LessTold,
    /// The lease of a domain hears of less at once.
    DomainTold,
    /// Time that a clock did not show is looked for, by clients, leaders and candidates alike.
    PausesSeen,
    /// A holder that opens a stream again is held against the rules of access again.
    RightsHeld,
    /// The stream ends of a holder that loses a right, where the node cannot recall what it has at that moment.
    RevokedOrEnded,
}

/// Rules of holders and grantors for which a mind has asked. Whatever never asks for a rule goes on without it as it does with it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AskedRules {
    holder: u64,
    grantor: u128,
}

// === impl AskedRules ===

impl AskedRules {
    /// Those that minds of this thread have asked for since this was last called.
    #[must_use]
    pub fn take() -> AskedRules {
        AskedRules {
            holder: lessor_client::internals::mutation::take_asked(),
            grantor: lessor_server::mutation::take_asked(),
        }
    }

    /// These and the others.
    #[must_use]
    pub fn and(self, other: AskedRules) -> AskedRules {
        AskedRules { holder: self.holder | other.holder, grantor: self.grantor | other.grantor }
    }

    /// Whether that one is among them. Of those of elections, of followers and of drivers nothing is known.
    #[must_use]
    pub fn has(self, mutation: Mutation) -> bool {
        match mutation {
            Mutation::Holder(rule) => self.holder & 1 << rule as u32 != 0,
            Mutation::Grantor(rule) => self.grantor & 1 << rule as u32 != 0,
            Mutation::Election(_) | Mutation::Follower(_) | Mutation::Driver(_) => true,
        }
    }
}

// === impl DriverRule ===

impl DriverRule {
    /// All of them.
    pub const ALL: [DriverRule; 6] = [
        DriverRule::UseSaidAfter,
        DriverRule::LessTold,
        DriverRule::DomainTold,
        DriverRule::PausesSeen,
        DriverRule::RightsHeld,
        DriverRule::RevokedOrEnded,
    ];
}

// === impl Mutation ===

impl Mutation {
    /// The rules that clients go by.
    #[must_use]
    pub fn client(self) -> HolderRules {
        match self {
            Mutation::Holder(rule) => HolderRules::without(rule),
            _ => HolderRules::default(),
        }
    }

    /// The rules that nodes go by.
    #[must_use]
    pub fn node(self) -> Rules {
        match self {
            Mutation::Holder(_) => Rules::with_holder(self.client()),
            Mutation::Grantor(rule) => Rules::without(rule),
            _ => Rules::default(),
        }
    }

    /// The rules that candidates go by.
    #[must_use]
    pub fn election(self) -> ElectionRules {
        match self {
            Mutation::Election(rule) => ElectionRules::without(rule),
            _ => ElectionRules::default(),
        }
    }

    /// The rules that followers of templates go by.
    #[must_use]
    pub fn follower(self) -> FollowerRules {
        match self {
            Mutation::Follower(rule) => FollowerRules::without(rule),
            _ => FollowerRules::default(),
        }
    }
}
