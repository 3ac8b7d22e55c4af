//! The sum of all that use a domain: added to with each hit, and added up again where what one of them had said was replaced.
//!
//! Histories lie side by side in time, and to put a hit between others takes as long as there are later ones. So hits are gathered
//! first, those of a grain as made with the first of them, and then added in their order.
//!
//! A hit that has been added cannot be taken out again, as a tier that was entered may not have been without it. The sum of few is
//! made again when it is next asked for. Of many that is left to the walk that ends a round, in slices, and until it is
//! through the sum of before is gone by: whoever is told everything of it is told again afterwards.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use lessor_algorithms::tiers::{Contract, Domain, MergeEntry};
use lessor_proto::Time;

use super::origin::DeltaOrigin;
use super::part::UserPart;

/// The most that are added up in one go.
const AT_ONCE: usize = 64;
/// Hits of one tier within so many nanoseconds are added as made with the first of them.
const GRAIN: u64 = 20_000_000;

/// The hits of all that use a domain.
#[derive(Clone, Debug, Default)]
pub(super) struct DomainSum {
    total: Domain,
    /// A part was replaced, and is in the total as it was before.
    is_stale: bool,
    /// The walk that adds all of them up.
    adding: Option<Adding>,
}

/// A sum that is being made.
#[derive(Clone, Debug, Default)]
struct Adding {
    gathered: Gathered,
    /// The last that is in it.
    after: Option<DeltaOrigin>,
}

/// The hits of several, by grain, policy and tier; in each first that it was entered.
#[derive(Clone, Debug, Default)]
struct Gathered(BTreeMap<(u64, usize, usize, bool), MergeEntry>);

// === impl Gathered ===

impl Gathered {
    fn add(&mut self, entry: &MergeEntry) {
        let place = (entry.at / GRAIN, entry.policy, entry.tier, !entry.is_entered);
        let sum = self.0.entry(place).or_insert(MergeEntry { hits: 0, ..*entry });
        (sum.at, sum.hits) = (sum.at.min(entry.at), sum.hits.saturating_add(entry.hits));
    }

    fn total(&self, contract: &Contract) -> Domain {
        let mut total = Domain::new();
        self.0.values().for_each(|entry| total.merge(contract, entry));
        total
    }
}

// === impl DomainSum ===

impl DomainSum {
    pub(super) fn total(&self) -> &Domain {
        &self.total
    }

    /// Whether it is not the sum of what was said last.
    pub(super) fn is_stale(&self) -> bool {
        self.is_stale || self.adding.is_some()
    }

    /// Whether it is, and that there are so many that it is left to the walk to add them up.
    pub(super) fn is_left_to_walk(&self, parts: &BTreeMap<DeltaOrigin, UserPart>) -> bool {
        self.is_stale() && parts.len() > AT_ONCE
    }

    /// Whether it is, and that there are so few that they are added up at once.
    fn is_due(&self, parts: &BTreeMap<DeltaOrigin, UserPart>) -> bool {
        self.is_stale() && parts.len() <= AT_ONCE
    }

    /// `origin` has made another hit.
    pub(super) fn add(&mut self, contract: &Contract, origin: &DeltaOrigin, entry: &MergeEntry) {
        self.total.merge(contract, entry);
        if let Some(adding) = self.adding.as_mut().filter(|adding| adding.after.as_ref() >= Some(origin)) {
            adding.gathered.add(entry);
        }
    }

    /// A part was replaced, or has gone.
    pub(super) fn spoil(&mut self) {
        self.is_stale = true;
    }

    /// From here on they count by another contract.
    pub(super) fn swap(&mut self, before: &Contract, next: &Contract, now: Time) {
        self.total.swap(before, next, now.as_nanos());
        // What was gathered is of tiers that may not be there any more.
        self.is_stale |= self.adding.take().is_some();
    }

    /// Adds all of them up again, if that is needed and they are few. Returns whether it was done.
    pub(super) fn refresh(
        &mut self,
        now: Time,
        contract: &Arc<Contract>,
        parts: &BTreeMap<DeltaOrigin, UserPart>,
    ) -> bool {
        let is_due = self.is_due(parts);
        if is_due {
            let total = DomainSum::of(now, contract, parts);
            *self = DomainSum { total, ..DomainSum::default() };
        }
        is_due
    }

    /// The sum as of `now`, as far as that does not take long.
    pub(super) fn look(
        &self,
        now: Time,
        contract: &Arc<Contract>,
        parts: &BTreeMap<DeltaOrigin, UserPart>,
    ) -> Domain {
        match self.is_due(parts) {
            true => DomainSum::of(now, contract, parts),
            false => self.total.clone(),
        }
    }

    /// Adds the next up, at most `left`, which is lowered by as many. Returns whether all are added up.
    pub(super) fn walk(
        &mut self,
        now: Time,
        contract: &Arc<Contract>,
        parts: &mut BTreeMap<DeltaOrigin, UserPart>,
        left: &mut usize,
    ) -> bool {
        if self.refresh(now, contract, parts) || !self.is_stale() {
            return true;
        }
        // What is replaced while the walk goes on may be in it as it was before: then another one follows.
        let mut adding = self.adding.take().unwrap_or_else(|| {
            self.is_stale = false;
            Adding::default()
        });
        let from = adding.after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let (mut looked_at, mut last) = (0, None);
        for (origin, part) in parts.range_mut((from, Bound::Unbounded)).take(*left) {
            (looked_at, last) = (looked_at + 1, Some(origin));
            part.history(now, contract);
            part.export(now, contract).iter().for_each(|entry| adding.gathered.add(entry));
        }
        let is_over = looked_at < *left;
        *left -= looked_at;
        if is_over {
            self.total = adding.gathered.total(contract);
            return true;
        }
        adding.after = last.cloned();
        self.adding = Some(adding);
        false
    }

    pub(super) fn rest(&mut self, contract: &Contract, now: Time) {
        self.total.rest(contract, now.as_nanos());
    }

    fn of(now: Time, contract: &Arc<Contract>, parts: &BTreeMap<DeltaOrigin, UserPart>) -> Domain {
        let mut gathered = Gathered::default();
        parts.values().flat_map(|part| part.export(now, contract)).for_each(|entry| gathered.add(&entry));
        gathered.total(contract)
    }
}
