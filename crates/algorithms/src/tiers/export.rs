//! All of a history in the words in which others are told of it.
//!
//! What one client tells of a hit when it makes it is one [`Entry`]. Who has missed that, or who tells another one that
//! knows nothing yet, says everything that still counts, and leaves the rest out.

use super::domain::Domain;
use super::merge::MergeEntry;
use super::policy::Contract;
use super::pool::NEVER;
use super::walk::View;
use super::window::{Measure, Status};

// === impl Domain ===

impl Domain {
    /// Everything that counts at `now`: tiers that are active or cool down, and hits. Who has merged it knows as much, but
    /// for hits of the last second that no tier counts any more, and debt, which is nobody else's.
    ///
    /// Hits of a bucket are told as made at `now`, as it does not know better.
    #[must_use]
    pub fn export(&self, contract: &Contract, now: u64) -> Vec<MergeEntry> {
        let now = now.max(self.last());
        let mut entries = Vec::new();
        if self.pool.is_empty() {
            return entries;
        }
        for policy in 0..contract.policies().len() {
            let moment = self.moment(contract, policy, now);
            for (rule, tier) in contract.rules(policy).iter().zip(1..) {
                let queue = contract.begin(policy) + tier;
                let since = self.pool.time(queue);
                if since != NEVER && moment.status(tier) != Status::Inactive {
                    entries.push(MergeEntry { policy, tier, at: since, hits: 0, is_entered: true });
                }
                let told = |at, hits| MergeEntry { policy, tier, at, hits, is_entered: false };
                match rule.measure {
                    Measure::Runs { span, .. } => {
                        let runs = self.pool.runs(queue).filter(|run| run.at.saturating_add(span) >= now);
                        entries.extend(runs.map(|run| told(run.at, run.count)));
                    }
                    bucket @ Measure::Bucket { .. } => match bucket.used(&self.pool, queue, now) {
                        0 => {}
                        hits => entries.push(told(now, hits)),
                    },
                }
            }
        }
        entries
    }
}

/// No more than `most` entries, if that can be: of those that lie next to each other in the same tier two become one of the
/// earlier time, again and again. So hits are forgotten too early, and never too late.
#[must_use]
pub fn coarsened(mut entries: Vec<MergeEntry>, most: usize) -> Vec<MergeEntry> {
    while entries.len() > most {
        let before = entries.len();
        entries = in_pairs(entries);
        if entries.len() == before {
            break;
        }
    }
    entries
}

fn in_pairs(entries: Vec<MergeEntry>) -> Vec<MergeEntry> {
    let mut pairs: Vec<MergeEntry> = Vec::with_capacity(entries.len() / 2 + 1);
    // Whether the last one can take another.
    let mut is_open = false;
    for entry in entries {
        let is_next = |last: &&mut MergeEntry| (last.policy, last.tier) == (entry.policy, entry.tier);
        match pairs.last_mut().filter(|_| is_open && !entry.is_entered).filter(is_next) {
            Some(last) => {
                last.hits = last.hits.saturating_add(entry.hits);
                last.at = last.at.min(entry.at);
                is_open = false;
            }
            None => {
                is_open = !entry.is_entered;
                pairs.push(entry);
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(at: u64) -> MergeEntry {
        MergeEntry { policy: 0, tier: 1, at, hits: 1, is_entered: at == 0 }
    }

    #[test]
    fn what_is_too_long_is_told_coarsely_and_too_early() {
        let entries: Vec<MergeEntry> = (0..5_000).map(hit).collect();
        let coarse = coarsened(entries, 512);
        assert!(coarse.len() <= 512, "{}", coarse.len());
        assert_eq!(coarse.iter().map(|entry| entry.hits).sum::<u32>(), 5_000);
        assert!(coarse[0].is_entered && coarse.is_sorted_by_key(|entry| entry.at));
        assert_eq!(coarsened(vec![hit(0), hit(1)], 2), [hit(0), hit(1)]);
    }

    #[test]
    fn tiers_and_their_beginnings_are_kept_apart() {
        let entered = |tier| MergeEntry { policy: 0, tier, at: 0, hits: 0, is_entered: true };
        let entries =
            vec![entered(1), entered(2), MergeEntry { tier: 2, ..hit(3) }, MergeEntry { tier: 3, ..hit(4) }];
        assert_eq!(coarsened(entries.clone(), 1), entries);
    }
}
