//! One domain, and what each of those that serve it did.

use std::sync::Arc;

use lessor_algorithms::tiers::{Contract, Domain, Entry, Status, TierState, coarsened};
use lessor_client::domain::{entry_at, told_at};
use lessor_proto::Time;
use lessor_proto::message::{DomainEntry, DomainHits};

use super::shared::Origin;
use super::subscriber::Pending;

/// The most entries about one domain.
const MOST_ENTRIES: usize = 512;

/// What is known of one domain.
#[derive(Clone, Debug)]
pub(super) struct DomainState {
    pub(super) contract: Arc<Contract>,
    /// Those that serve it, or did as long as that counts.
    pub(super) parts: Vec<Part>,
    /// What all of them did.
    pub(super) total: Domain,
}

#[derive(Clone, Debug)]
pub(super) struct Part {
    origin: Origin,
    history: Domain,
}

/// What has come of a report.
#[derive(Debug)]
pub(super) struct Taken {
    /// What is to be passed on.
    pub(super) entries: Vec<DomainEntry>,
    /// They take the place of what was passed on before.
    pub(super) is_replaced: bool,
    /// A tier is entered with them: others cannot wait for that.
    pub(super) is_entered: bool,
    /// Nothing was known of whoever reported them.
    pub(super) is_new: bool,
}

// === impl DomainState ===

impl DomainState {
    pub(super) fn new(contract: Arc<Contract>) -> DomainState {
        DomainState { contract, parts: Vec::new(), total: Domain::new() }
    }

    pub(super) fn follow(&mut self, now: Time, contract: &Arc<Contract>) {
        for part in &mut self.parts {
            part.history.swap(&self.contract, contract, now.as_nanos());
        }
        self.total.swap(&self.contract, contract, now.as_nanos());
        self.contract = Arc::clone(contract);
    }

    /// `origin` says what it did, or all that it did. What is said to have been later than now was now.
    pub(super) fn take(&mut self, now: Time, origin: &Origin, all: bool, entries: &[DomainEntry]) -> Taken {
        let known: Vec<DomainEntry> =
            entries.iter().map(|entry| DomainEntry { at: entry.at.min(now), ..*entry }).collect();
        let is_entered = known.iter().any(|entry| entry.is_entered);
        let found = self.parts.iter().position(|part| part.origin == *origin);
        let place = found.unwrap_or_else(|| {
            self.parts.push(Part { origin: origin.clone(), history: Domain::new() });
            self.parts.len() - 1
        });
        let is_replaced = all && found.is_some();
        if all {
            self.parts[place].history = Domain::new();
        }
        for entry in known.iter().filter_map(|known| entry_at(known, known.at)) {
            self.parts[place].history.merge(&self.contract, &entry);
            if !is_replaced {
                self.total.merge(&self.contract, &entry);
            }
        }
        if is_replaced {
            self.add_up(now);
        }
        Taken { entries: known, is_replaced, is_entered, is_new: found.is_none() }
    }

    pub(super) fn origins(&self) -> impl Iterator<Item = &Origin> {
        self.parts.iter().map(|part| &part.origin)
    }

    /// Whether half of some limit is used up, or a tier was entered that matters to others.
    pub(super) fn is_warm(&self, now: Time) -> bool {
        self.uses(now, 2)
    }

    /// Whether less than a quarter of each limit is used up, and no tier was entered that matters to others.
    pub(super) fn is_calm(&self, now: Time) -> bool {
        !self.uses(now, 4)
    }

    /// Forgets what does not count, and those who have not used it for long enough and are not to be kept.
    pub(super) fn rest(&mut self, now: Time, is_kept: impl Fn(&Origin) -> bool) {
        let (contract, nanos) = (&self.contract, now.as_nanos());
        self.parts.retain_mut(|part| {
            part.history.rest(contract, nanos);
            !part.history.is_idle(contract, nanos) || is_kept(&part.origin)
        });
        self.total.rest(contract, nanos);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.parts.is_empty()
    }

    /// What `origin` is to be told.
    pub(super) fn hits_for(
        &self,
        now: Time,
        name: Arc<str>,
        origin: &Origin,
        pending: Pending,
    ) -> DomainHits {
        let others = self.origins().filter(|&other| other != origin).count();
        let (all, entries) = match pending {
            Pending::All => (true, self.all_but(now, origin)),
            Pending::Some(entries) => (false, entries),
        };
        DomainHits { domain: name, all, others: u32::try_from(others).unwrap_or(u32::MAX), entries }
    }

    /// Everything that counts of what others than `origin` did.
    fn all_but(&self, now: Time, origin: &Origin) -> Vec<DomainEntry> {
        let others = self.parts.iter().filter(|part| part.origin != *origin);
        let mut entries: Vec<Entry> =
            others.flat_map(|part| part.history.export(&self.contract, now.as_nanos())).collect();
        entries.sort_by_key(|entry| (entry.policy, entry.tier, entry.at, !entry.is_entered));
        let told = |entry: &Entry| told_at(entry, Time::from_nanos(entry.at));
        coarsened(entries, MOST_ENTRIES).iter().filter_map(told).collect()
    }

    /// Whether one part in so many of some limit is used up, or a tier was entered that matters to others.
    fn uses(&self, now: Time, part: u64) -> bool {
        let uses = |hits: u32, limit: u32| hits > 0 && u64::from(hits) * part >= u64::from(limit);
        let nanos = now.as_nanos();
        let hard = self.contract.hard_limit();
        hard.is_some_and(|hard| uses(self.total.hits_in_second(&self.contract, nanos), hard))
            || self
                .total
                .tiers(&self.contract, nanos)
                .any(|tier| uses(tier.hits, tier.limit) || self.is_entered(&tier))
    }

    /// Whether a tier was entered that others have to know of.
    fn is_entered(&self, tier: &TierState) -> bool {
        let rests = || !self.contract.policies()[tier.policy].tiers()[tier.tier - 1].cooldown.is_zero();
        tier.status != Status::Inactive && (tier.tier > 1 || self.parts.len() > 1 && rests())
    }

    fn add_up(&mut self, now: Time) {
        self.total = Domain::new();
        for part in &self.parts {
            for entry in part.history.export(&self.contract, now.as_nanos()) {
                self.total.merge(&self.contract, &entry);
            }
        }
    }
}
