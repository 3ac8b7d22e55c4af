//! What a domain of which others are told has to tell, and what of its history was made here.

use lessor_algorithms::tiers::{Contract, Domain, MergeEntry, coarsened};

/// Hits in the same tier within so many nanoseconds are told as made with the first of them.
const GRAIN: u64 = 20_000_000;
/// With more entries than this everything is told instead.
const MOST_UNTOLD: usize = 256;
/// Of more entries than this those that lie next to each other are told as one.
const MOST_TOLD: usize = 512;

/// A domain of which others are told.
#[derive(Debug)]
pub(super) struct Telling {
    /// The hits that were made here: the history without what others did.
    own: Domain,
    untold: Vec<MergeEntry>,
    /// Hits of policy 0 in `untold`.
    hits: u32,
    /// Everything is to be told, not only what was not yet.
    is_whole: bool,
    /// Everything is to be told soon, and not only when it is worth it.
    pub(super) is_hot: bool,
    /// It stands in the list of those who have something to tell.
    pub(super) is_listed: bool,
    /// The number of other clients that use it, as long as it is hot.
    pub(super) others: u32,
}

// === impl Telling ===

impl Telling {
    /// Of a domain of which nobody knows, whose whole history was made here.
    pub(super) fn new(history: &Domain, is_hot: bool) -> Telling {
        Telling {
            own: history.clone(),
            untold: Vec::new(),
            hits: 0,
            is_whole: true,
            is_hot,
            is_listed: false,
            others: 0,
        }
    }

    /// Hits were made.
    pub(super) fn note(&mut self, contract: &Contract, entries: &[MergeEntry]) {
        for entry in entries {
            self.own.merge(contract, entry);
            if entry.policy == 0 {
                self.hits = self.hits.saturating_add(entry.hits);
            }
            if !self.is_whole {
                self.add(entry);
            }
        }
    }

    /// Hits that were made and not told.
    pub(super) fn untold(&self) -> u32 {
        self.hits
    }

    /// Whether there is something to tell.
    pub(super) fn has_news(&self) -> bool {
        self.is_whole || !self.untold.is_empty()
    }

    /// Everything is to be told again: to others than before, or because what was told is not so.
    pub(super) fn tell_all(&mut self) {
        self.is_whole = true;
        self.untold = Vec::new();
    }

    /// Tells what is to be told, and whether it is everything.
    pub(super) fn tell(&mut self, contract: &Contract, now: u64) -> (bool, Vec<MergeEntry>) {
        self.hits = 0;
        match std::mem::take(&mut self.is_whole) {
            true => (true, coarsened(self.own.export(contract, now), MOST_TOLD)),
            false => (false, std::mem::take(&mut self.untold)),
        }
    }

    /// The history as it is with `entries` of others, and all that was made here.
    pub(super) fn with_others(&self, contract: &Contract, entries: &[MergeEntry]) -> Domain {
        let mut history = self.own.clone();
        entries.iter().for_each(|entry| history.merge(contract, entry));
        history
    }

    /// Another stream has begun: everything is to be told on it, and nothing is hot there as long as that is not said.
    pub(super) fn begin(&mut self) {
        self.cool();
        self.tell_all();
    }

    /// It is not hot any more. Nothing is said of those who use it from here on, and who hears nothing of them is not out of
    /// hearing.
    pub(super) fn cool(&mut self) {
        (self.is_hot, self.others) = (false, 0);
    }

    pub(super) fn swap(&mut self, contract: &Contract, next: &Contract, now: u64) {
        self.own.swap(contract, next, now);
        self.tell_all();
    }

    /// Takes back `hits` of those that were made here, as they turned out to cost less.
    pub(super) fn refund(&mut self, contract: &Contract, now: u64, hits: u32) {
        self.own.settle(contract, now, -i64::from(hits));
        self.tell_all();
    }

    fn add(&mut self, entry: &MergeEntry) {
        let near = |told: &&mut MergeEntry| {
            (told.policy, told.tier) == (entry.policy, entry.tier) && entry.at.saturating_sub(told.at) < GRAIN
        };
        let is_full = self.untold.len() >= MOST_UNTOLD;
        let last = self.untold.iter_mut().rev().take(8).find(near);
        match last.filter(|_| !entry.is_entered) {
            Some(told) => told.hits = told.hits.saturating_add(entry.hits),
            None if is_full => self.tell_all(),
            None => self.untold.push(*entry),
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

    fn telling(contract: &Contract, entries: &[MergeEntry]) -> Telling {
        let mut telling = Telling::new(&Domain::new(), false);
        telling.note(contract, entries);
        telling
    }

    #[test]
    fn everything_is_told_first_and_then_what_is_new() {
        let contract = contract(100);
        let mut telling = telling(&contract, &[hit(0, true), hit(5, false)]);
        assert_eq!(telling.untold(), 2);
        let (all, entries) = telling.tell(&contract, 6 * MILLI);
        let hits: u32 = entries.iter().map(|entry| entry.hits).sum();
        assert_eq!((all, hits, telling.has_news()), (true, 2, false));
        telling.note(&contract, &[hit(50, false), hit(60, false), hit(75, false)]);
        let (all, entries) = telling.tell(&contract, 80 * MILLI);
        assert_eq!((all, entries), (false, vec![MergeEntry { hits: 2, ..hit(50, false) }, hit(75, false)]));
    }

    #[test]
    fn so_much_that_is_untold_is_told_anew() {
        let contract = contract(10_000);
        let mut telling = telling(&contract, &[hit(0, true)]);
        telling.tell(&contract, MILLI);
        (1..=1_000).for_each(|n| telling.note(&contract, &[hit(n * 30, false)]));
        let (all, entries) = telling.tell(&contract, 30_000 * MILLI);
        let in_window = 10_000 / 30 + 1;
        let hits: u32 = entries.iter().map(|entry| entry.hits).sum();
        assert_eq!((all, hits), (true, in_window));
    }
}
