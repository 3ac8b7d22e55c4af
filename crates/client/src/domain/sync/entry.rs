//! The entries of a history as they are sent, by the time of another clock.

use lessor_algorithms::tiers::MergeEntry;
use lessor_proto::Time;
use lessor_proto::message::DomainEntry;

/// An entry as it is sent, made `at` by the clock there; nothing of a tier that no contract has.
#[must_use]
pub fn message_at(entry: &MergeEntry, at: Time) -> Option<DomainEntry> {
    let (policy, tier) = (u32::try_from(entry.policy).ok()?, u32::try_from(entry.tier).ok()?);
    Some(DomainEntry { policy, tier, at, hits: entry.hits, is_entered: entry.is_entered })
}

/// An entry that was sent, made `at` by the clock here; nothing of a tier that no contract has.
#[must_use]
pub fn entry_at(sent: &DomainEntry, at: Time) -> Option<MergeEntry> {
    let (policy, tier) = (usize::try_from(sent.policy).ok()?, usize::try_from(sent.tier).ok()?);
    Some(MergeEntry { policy, tier, at: at.as_nanos(), hits: sent.hits, is_entered: sent.is_entered })
}
