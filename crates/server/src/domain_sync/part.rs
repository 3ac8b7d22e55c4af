//! The part of one of those that use a domain: what it did, and what it was told of the others.
//!
//! There may be ten thousand of them, and a change of policies concerns all. So a part goes by the contract that was in force when
//! it was last looked at, and follows when it is looked at again.

use std::sync::Arc;

use lessor_algorithms::tiers::{Contract, Domain, MergeEntry};
use lessor_proto::Time;

/// The hits of one of those that use a domain.
#[derive(Clone, Debug)]
pub(super) struct UserPart {
    history: Domain,
    /// The contract by which they are in the history.
    contract: Arc<Contract>,
    /// The first round of which it was not told.
    pub(super) cursor: u64,
    /// The number of the last correction of which it was told.
    pub(super) corrected: u64,
}

// === impl UserPart ===

impl UserPart {
    /// Of one that has done nothing, and to whom nothing was said that is not so.
    pub(super) fn new(contract: &Arc<Contract>, corrected: u64) -> UserPart {
        UserPart { history: Domain::new(), contract: Arc::clone(contract), cursor: 0, corrected }
    }

    /// The history by `contract`, from here on.
    pub(super) fn history(&mut self, now: Time, contract: &Arc<Contract>) -> &mut Domain {
        if !Arc::ptr_eq(&self.contract, contract) {
            self.history.swap(&self.contract, contract, now.as_nanos());
            self.contract = Arc::clone(contract);
        }
        &mut self.history
    }

    /// Forgets what it did.
    pub(super) fn clear(&mut self, contract: &Arc<Contract>) {
        (self.history, self.contract) = (Domain::new(), Arc::clone(contract));
    }

    /// Everything of it that counts at `now` by `contract`.
    pub(super) fn export(&self, now: Time, contract: &Arc<Contract>) -> Vec<MergeEntry> {
        if Arc::ptr_eq(&self.contract, contract) {
            return self.history.export(contract, now.as_nanos());
        }
        let mut history = self.history.clone();
        history.swap(&self.contract, contract, now.as_nanos());
        history.export(contract, now.as_nanos())
    }
}
