//! The outgoing delta of a domain that is replicated, and what of its history was made here.

use lessor_algorithms::tiers::{Contract, Domain, MergeEntry, coarsened};

/// Hits in the same tier within so many nanoseconds are sent as made with the first of them.
const GRAIN: u64 = 20_000_000;
/// With more entries than this all state is sent instead.
const MOST_UNSENT: usize = 256;
/// Of more entries than this those that lie next to each other are sent as one.
const MOST_SENT: usize = 512;

/// The state of a domain that is replicated.
#[derive(Debug)]
pub(in crate::domain) struct Outgoing {
    /// The hits that were made here: the history without what others did.
    own: Domain,
    /// The delta: entries that were not sent.
    unsent: Vec<MergeEntry>,
    /// Hits of policy 0 in `unsent`.
    hits: u32,
    /// All state is to be sent, not the delta.
    is_whole: bool,
    /// Each delta is to be sent soon, and not only when it is worth it.
    pub(in crate::domain) is_hot: bool,
    /// It stands in the queue of the synchronisation.
    pub(in crate::domain) is_queued: bool,
    /// The number of other clients that use the domain, as long as it is hot.
    pub(in crate::domain) others: u32,
}

// === impl Outgoing ===

impl Outgoing {
    /// Of a domain of which nobody knows, whose whole history was made here.
    pub(in crate::domain) fn new(history: &Domain, is_hot: bool) -> Outgoing {
        Outgoing {
            own: history.clone(),
            unsent: Vec::new(),
            hits: 0,
            is_whole: true,
            is_hot,
            is_queued: false,
            others: 0,
        }
    }

    /// Adds hits that were made here.
    pub(in crate::domain) fn add(&mut self, contract: &Contract, entries: &[MergeEntry]) {
        for entry in entries {
            self.own.merge(contract, entry);
            if entry.policy == 0 {
                self.hits = self.hits.saturating_add(entry.hits);
            }
            if !self.is_whole {
                self.push(entry);
            }
        }
    }

    /// Hits that were made and not sent.
    pub(in crate::domain) fn unsent(&self) -> u32 {
        self.hits
    }

    /// Whether there is nothing to send.
    pub(in crate::domain) fn is_empty(&self) -> bool {
        !self.is_whole && self.unsent.is_empty()
    }

    /// Has all state sent again: to others than before, or because what was sent is not so.
    pub(in crate::domain) fn resend(&mut self) {
        self.is_whole = true;
        self.unsent = Vec::new();
    }

    /// Takes what is to be sent, and says whether it is all state.
    pub(in crate::domain) fn take(&mut self, contract: &Contract, now: u64) -> (bool, Vec<MergeEntry>) {
        self.hits = 0;
        match std::mem::take(&mut self.is_whole) {
            true => (true, coarsened(self.own.export(contract, now), MOST_SENT)),
            false => (false, std::mem::take(&mut self.unsent)),
        }
    }

    /// The history as it is with `entries` of others, and all that was made here.
    pub(in crate::domain) fn with_others(&self, contract: &Contract, entries: &[MergeEntry]) -> Domain {
        let mut history = self.own.clone();
        entries.iter().for_each(|entry| history.merge(contract, entry));
        history
    }

    /// Another stream has begun: all state is to be sent on it, and nothing is hot there as long as that is not said.
    pub(in crate::domain) fn begin(&mut self) {
        self.cool();
        self.resend();
    }

    /// It is not hot any more. No updates of those who use it come from here on, and who receives none has not lost them.
    pub(in crate::domain) fn cool(&mut self) {
        (self.is_hot, self.others) = (false, 0);
    }

    pub(in crate::domain) fn swap(&mut self, contract: &Contract, next: &Contract, now: u64) {
        self.own.swap(contract, next, now);
        self.resend();
    }

    /// Takes back `hits` of those that were made here, as they turned out to cost less.
    pub(in crate::domain) fn refund(&mut self, contract: &Contract, now: u64, hits: u32) {
        self.own.settle(contract, now, -i64::from(hits));
        self.resend();
    }

    fn push(&mut self, entry: &MergeEntry) {
        let near = |known: &&mut MergeEntry| {
            (known.policy, known.tier) == (entry.policy, entry.tier)
                && entry.at.saturating_sub(known.at) < GRAIN
        };
        let is_full = self.unsent.len() >= MOST_UNSENT;
        let last = self.unsent.iter_mut().rev().take(8).find(near);
        match last.filter(|_| !entry.is_entered) {
            Some(known) => known.hits = known.hits.saturating_add(entry.hits),
            None if is_full => self.resend(),
            None => self.unsent.push(*entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lessor_algorithms::tiers::{Tier, TierPolicy, Window};

    use super::*;

    const MILLI: u64 = 1_000_000;

    fn contract(limit: u32) -> Contract {
        let (window, active, cooldown) = (Duration::from_secs(10), Duration::from_secs(60), Duration::ZERO);
        let tier = Tier { limit, window, active, cooldown, is_skippable: false, kind: Window::Exact };
        Contract::from(TierPolicy::new(vec![tier], None, None).unwrap())
    }

    fn hit(millis: u64, is_entered: bool) -> MergeEntry {
        MergeEntry { policy: 0, tier: 1, at: millis * MILLI, hits: 1, is_entered }
    }

    fn outgoing(contract: &Contract, entries: &[MergeEntry]) -> Outgoing {
        let mut delta = Outgoing::new(&Domain::new(), false);
        delta.add(contract, entries);
        delta
    }

    #[test]
    fn all_state_is_sent_first_and_then_deltas() {
        let contract = contract(100);
        let mut delta = outgoing(&contract, &[hit(0, true), hit(5, false)]);
        assert_eq!(delta.unsent(), 2);
        let (all, entries) = delta.take(&contract, 6 * MILLI);
        let hits: u32 = entries.iter().map(|entry| entry.hits).sum();
        assert_eq!((all, hits, delta.is_empty()), (true, 2, true));
        delta.add(&contract, &[hit(50, false), hit(60, false), hit(75, false)]);
        let (all, entries) = delta.take(&contract, 80 * MILLI);
        assert_eq!((all, entries), (false, vec![MergeEntry { hits: 2, ..hit(50, false) }, hit(75, false)]));
    }

    #[test]
    fn instead_of_too_large_a_delta_all_state_is_sent() {
        let contract = contract(10_000);
        let mut delta = outgoing(&contract, &[hit(0, true)]);
        delta.take(&contract, MILLI);
        (1..=1_000).for_each(|n| delta.add(&contract, &[hit(n * 30, false)]));
        let (all, entries) = delta.take(&contract, 30_000 * MILLI);
        let in_window = 10_000 / 30 + 1;
        let hits: u32 = entries.iter().map(|entry| entry.hits).sum();
        assert_eq!((all, hits), (true, in_window));
    }
}
