//! The remainder of hits that were told as one: those of all without those of one of them.

use lessor_algorithms::tiers::MergeEntry;

/// The same in the order in which one is taken from the other.
pub(super) fn sorted(mut entries: Vec<MergeEntry>) -> Vec<MergeEntry> {
    entries.sort_by_key(|entry| (entry.policy, entry.tier, entry.at, !entry.is_entered));
    entries
}

/// The remainder of `entries`, which has as many hits fewer as `own` has: each is taken from those of its tier that were made
/// with it or before, the latest first, and what is left of it from the others.
pub(super) fn without(mut entries: Vec<MergeEntry>, own: &[MergeEntry]) -> Vec<MergeEntry> {
    for hit in own.iter().rev().filter(|hit| hit.hits > 0) {
        let tier = (hit.policy, hit.tier);
        let begin = entries.partition_point(|entry| (entry.policy, entry.tier) < tier);
        let end = entries.partition_point(|entry| (entry.policy, entry.tier) <= tier);
        let after = begin + entries[begin..end].partition_point(|entry| entry.at <= hit.at);
        let mut left = hit.hits;
        let (before, later) = entries[begin..end].split_at_mut(after - begin);
        for entry in before.iter_mut().rev().chain(later.iter_mut().rev()) {
            let taken = entry.hits.min(left);
            (entry.hits, left) = (entry.hits - taken, left - taken);
            if left == 0 {
                break;
            }
        }
    }
    entries.retain(|entry| entry.hits > 0 || entry.is_entered);
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(at: u64, hits: u32) -> MergeEntry {
        MergeEntry { policy: 0, tier: 1, at, hits, is_entered: false }
    }

    #[test]
    fn own_hits_are_taken_out_exactly_where_they_are_and_in_number_anyhow() {
        let entered = MergeEntry { is_entered: true, ..hits(0, 0) };
        let other = MergeEntry { tier: 2, ..hits(4, 9) };
        let all = vec![entered, hits(1, 2), hits(5, 3), hits(9, 1), other];
        assert_eq!(without(all.clone(), &[hits(5, 2)]), [entered, hits(1, 2), hits(5, 1), hits(9, 1), other]);
        assert_eq!(without(all.clone(), &[hits(7, 4)]), [entered, hits(1, 1), hits(9, 1), other]);
        assert_eq!(without(all.clone(), &[hits(1, 4)]), [entered, hits(5, 2), other]);
        assert_eq!(without(all, &[hits(1, 1), hits(5, 99)]), [entered, other]);
    }
}
