//! A policy is replaced by another one, and the history stays.

use super::domain::Domain;
use super::policy::Contract;
use super::tier::{Tier, Window};

/// A tier and where it stands.
type Placed<'a> = ((usize, usize), &'a Tier);

/// The likeness of an earlier and a later tier at which the later one has the hits of the earlier.
#[derive(Clone, Copy)]
enum Likeness {
    /// Nothing has changed.
    Same,
    /// Tiers or policies were inserted or taken out before it.
    Moved,
    /// Hits are counted in the same way, but what is allowed has changed.
    Altered,
}

// === impl Domain ===

impl Domain {
    /// Takes `next` for the contract from now on.
    ///
    /// A tier that did not change keeps its hits and its active time, even if it has another index. So does one of the
    /// same index that still counts in the same way. The hits of all other tiers are forgotten. Debt stays.
    pub fn swap(&mut self, contract: &Contract, next: &Contract, now: u64) {
        self.pass(contract, now);
        if self.pool.is_empty() {
            return;
        }
        let queues = |(before, after): ((usize, usize), (usize, usize))| {
            (contract.begin(before.0) + before.1, next.begin(after.0) + after.1)
        };
        let kept: Vec<_> = kept(contract, next).into_iter().map(queues).chain([(0, 0)]).collect();
        self.pool = self.pool.with_queues(next.queues(), kept.iter().copied());
    }
}

/// The tiers that stay, each as policy and index, before and after.
fn kept(contract: &Contract, next: &Contract) -> Vec<((usize, usize), (usize, usize))> {
    let mut kept: Vec<((usize, usize), (usize, usize))> = Vec::new();
    for likeness in [Likeness::Same, Likeness::Moved, Likeness::Altered] {
        for after in placed(next) {
            let is_free = |before: &Placed| kept.iter().all(|pair| pair.0 != before.0);
            let before = placed(contract).find(|before| likeness.holds(before, &after) && is_free(before));
            if let Some((before, _)) = before
                && kept.iter().all(|pair| pair.1 != after.0)
            {
                kept.push((before, after.0));
            }
        }
    }
    kept
}

/// The tiers of all policies.
fn placed(contract: &Contract) -> impl Iterator<Item = Placed<'_>> {
    let policies = contract.policies().iter().enumerate();
    policies
        .flat_map(|(policy, of)| of.tiers().iter().zip(1..).map(move |(tier, index)| ((policy, index), tier)))
}

// === impl Likeness ===

impl Likeness {
    fn holds(self, &(before, tier): &Placed, &(after, next): &Placed) -> bool {
        match self {
            Likeness::Same => before == after && tier == next,
            Likeness::Moved => tier == next,
            Likeness::Altered => {
                let is_level = tier.kind == Window::Bucket;
                let counts_alike = (tier.window, tier.kind) == (next.window, next.kind);
                before == after && counts_alike && (!is_level || tier.limit == next.limit)
            }
        }
    }
}
