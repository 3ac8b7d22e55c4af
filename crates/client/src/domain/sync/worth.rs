//! Which deltas are worth sending, and which are urgent: by the part of a limit that they have used up.

use lessor_algorithms::tiers::{Contract, MergeEntry, TierPolicy};

/// Whether `hits` are so much that n clients with less would not have half of `limit` together.
#[must_use]
pub fn is_share(hits: u32, limit: u32, members: u32) -> bool {
    hits > 0 && u64::from(hits) * u64::from(members.max(1)) * 2 >= u64::from(limit)
}

/// The least of all limits that hits count for.
#[must_use]
pub fn least_limit(contract: &Contract) -> u32 {
    let tiers = contract.policies().iter().flat_map(TierPolicy::tiers).map(|tier| tier.limit);
    tiers.chain(contract.hard_limit()).min().unwrap_or(0)
}

/// Whether an entry may make others refuse or grant something else at once: it begins a cooldown, or a higher tier.
#[must_use]
pub fn is_marked(contract: &Contract, entry: &MergeEntry) -> bool {
    let tier = contract
        .policies()
        .get(entry.policy)
        .and_then(|policy| policy.tiers().get(entry.tier.wrapping_sub(1)));
    entry.is_entered && (entry.tier > 1 || tier.is_some_and(|tier| !tier.cooldown.is_zero()))
}
