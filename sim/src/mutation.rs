//! Rules of the minds that are taken out one at a time, to show that the oracle notices.

pub use lessor_client::mutation::Mutation as HolderMutation;
pub use lessor_server::mutation::{Mutation as GrantorMutation, Rules};

/// A rule that is taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// Of all holders: clients, and nodes towards those above.
    Holder(HolderMutation),
    /// Of all grantors.
    Grantor(GrantorMutation),
}

// === impl Mutation ===

impl Mutation {
    /// What clients lack.
    #[must_use]
    pub fn client(self) -> Option<HolderMutation> {
        match self {
            Mutation::Holder(mutation) => Some(mutation),
            Mutation::Grantor(_) => None,
        }
    }

    /// What nodes go by.
    #[must_use]
    pub fn node(self) -> Rules {
        match self {
            Mutation::Holder(mutation) => Rules::holder_without(mutation),
            Mutation::Grantor(mutation) => Rules::without(mutation),
        }
    }
}
