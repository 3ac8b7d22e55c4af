//! A domain that follows policies: its history, and what of that others are sent.
//!
//! A record is two lines of memory, and a request that finds a domain after a while waits for these two at once. What is
//! seldom needed lies aside, and what many have in common is shared.

use std::sync::Arc;

use lessor_algorithms::tiers::{self, Contract, Domain, MergeEntry, Plan, TierState};
use lessor_proto::Time;
use lessor_proto::message::{DomainEntry, DomainHits, LONGEST_DOMAIN};

use super::name::Name;
use super::sync::{Clocks, Outgoing, SyncHandle, entry_at, is_marked, is_share, least_limit, message_at};

/// A domain that is remembered.
#[repr(C, align(64))]
#[derive(Debug)]
pub(super) struct Record {
    name: Name,
    /// Hits granted and requests refused that are not counted aside yet.
    granted: u16,
    refused: u16,
    /// The terms that the history is about.
    terms: Arc<Terms>,
    aside: Option<Box<Aside>>,
    pub(super) history: Domain,
}

/// The terms that a domain follows: the same for all that follow the same contract.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) contract: Arc<Contract>,
    /// Of which policies in force it is.
    pub(super) generation: u32,
}

/// The part of a record that most domains do not have.
#[derive(Default, Debug)]
struct Aside {
    /// A long name.
    name: Option<Box<str>>,
    /// Its outgoing delta, if it is replicated.
    delta: Option<Box<Outgoing>>,
    granted: u64,
    refused: u64,
}

// === impl Record ===

impl Record {
    pub(super) fn new(name: &str, terms: Arc<Terms>) -> Record {
        let (name, long) = Name::new(name);
        let aside = long.map(|long| Box::new(Aside { name: Some(long), ..Aside::default() }));
        Record { name, granted: 0, refused: 0, terms, aside, history: Domain::new() }
    }

    /// Whether it is the domain of that name.
    #[inline]
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.is(name, self.long_name())
    }

    pub(super) fn name(&self) -> &str {
        self.name.as_str(self.long_name())
    }

    #[inline]
    fn long_name(&self) -> Option<&str> {
        self.aside.as_ref()?.name.as_deref()
    }

    /// Under which policies in force its contract was found.
    #[inline]
    pub(super) fn generation(&self) -> u32 {
        self.terms.generation
    }

    /// The contract that the history is about.
    #[inline]
    pub(super) fn contract(&self) -> &Arc<Contract> {
        &self.terms.contract
    }

    /// Hits granted since it was first heard of, or was last idle.
    pub(super) fn granted(&self) -> u64 {
        self.aside.as_ref().map_or(0, |aside| aside.granted) + u64::from(self.granted)
    }

    /// Requests refused since then.
    pub(super) fn refused(&self) -> u64 {
        self.aside.as_ref().map_or(0, |aside| aside.refused) + u64::from(self.refused)
    }

    #[inline]
    pub(super) fn count_granted(&mut self, hits: u32) {
        match u16::try_from(hits).ok().and_then(|hits| self.granted.checked_add(hits)) {
            Some(granted) => self.granted = granted,
            None => self.aside.get_or_insert_default().granted += u64::from(hits),
        }
    }

    #[inline]
    pub(super) fn count_refused(&mut self) {
        match self.refused.checked_add(1) {
            Some(refused) => self.refused = refused,
            None => self.aside.get_or_insert_default().refused += 1,
        }
    }

    /// Its outgoing delta, if it is replicated.
    #[inline]
    fn delta(&self) -> Option<&Outgoing> {
        self.aside.as_ref()?.delta.as_deref()
    }

    #[inline]
    pub(super) fn delta_mut(&mut self) -> Option<&mut Outgoing> {
        self.aside.as_mut()?.delta.as_deref_mut()
    }

    fn replicate(&mut self, is_hot: bool) {
        let delta = Box::new(Outgoing::new(&self.history, is_hot));
        self.aside.get_or_insert_default().delta = Some(delta);
    }

    /// The number of other clients that use the domain too, as far as is known here.
    #[inline]
    pub(super) fn others(&self) -> u32 {
        self.delta().map_or(0, |delta| delta.others)
    }

    /// Follows other policies from here on; what did not change keeps its hits.
    pub(super) fn follow(&mut self, now: Time, terms: Arc<Terms>) {
        let (before, contract) = (Arc::clone(self.contract()), &terms.contract);
        if *contract != before {
            self.history.swap(&before, contract, now.as_nanos());
            if let Some(delta) = self.delta_mut() {
                delta.swap(&before, contract, now.as_nanos());
            }
        }
        self.terms = terms;
    }

    /// Makes the hits of a plan, and has them sent where that is worth it.
    #[inline]
    pub(super) fn commit(&mut self, plan: &Plan, sync: &SyncHandle) {
        let is_replicated = plan.hits() > 0 && self.delta().is_some();
        let entries = is_replicated.then(|| self.history.entries(self.contract(), plan));
        self.history.commit(&self.terms.contract, plan);
        match (entries, sync.members()) {
            (Some(entries), members) => self.add(&entries, members, sync),
            (None, members) if members > 0 && plan.hits() > 0 => self.replicate_if_worth(plan, members, sync),
            (None, _) => {}
        }
    }

    /// Makes hits for which there may be no room.
    pub(super) fn commit_without_room(&mut self, plan: &Plan, hits: u32, sync: &SyncHandle) {
        let entries = self.history.entries_without_room(self.contract(), plan.now(), hits);
        entries.iter().for_each(|entry| self.history.merge(&self.terms.contract, entry));
        self.add(&entries, sync.members(), sync);
    }

    /// Settles a grant of `granted` hits that turned out to cost `actual`. What was sent too much is sent anew.
    pub(super) fn settle(&mut self, now: Time, granted: u32, actual: u32, sync: &SyncHandle) {
        let delta = i64::from(actual) - i64::from(granted);
        let contract = Arc::clone(self.contract());
        self.history.settle(&contract, now.as_nanos(), delta);
        if let Some(delta) = self.delta_mut()
            && actual < granted
        {
            delta.refund(&contract, now.as_nanos(), granted - actual);
            if sync.members() > 0 {
                self.queue(sync, false);
            }
        }
    }

    /// Has all of it sent again, not only the delta, if it is replicated.
    pub(super) fn resend(&mut self, sync: &SyncHandle) {
        if let Some(delta) = self.delta_mut() {
            delta.resend();
            self.queue(sync, false);
        }
    }

    /// A stream has begun: all of it is sent if that is worth it.
    pub(super) fn begin(&mut self, now: Time, sync: &SyncHandle) {
        let members = sync.members();
        let is_much = |tier: TierState| is_share(tier.hits, tier.limit, members);
        let has_much = self.history.tiers(self.contract(), now.as_nanos()).any(is_much);
        let is_worth = has_much && self.name().len() <= LONGEST_DOMAIN;
        match self.delta_mut() {
            Some(delta) => delta.begin(),
            None if is_worth => self.replicate(false),
            None => return,
        }
        self.queue(sync, true);
    }

    /// The domain is hot from here on, or is not any more.
    pub(super) fn set_hot(&mut self, is_hot: bool, sync: &SyncHandle) {
        match self.delta_mut() {
            Some(delta) if is_hot => delta.is_hot = true,
            Some(delta) => delta.cool(),
            None if is_hot => self.replicate(true),
            None => return,
        }
        if self.delta().is_some_and(|delta| delta.is_hot && !delta.is_empty()) {
            self.queue(sync, true);
        }
    }

    /// The delta that is sent at `now`, by the clock of whom it is sent to.
    pub(super) fn export(&mut self, now: Time, clocks: &Clocks, domain: Arc<str>) -> Option<DomainHits> {
        let contract = Arc::clone(self.contract());
        let (all, entries) = self.delta_mut()?.take(&contract, now.as_nanos());
        let there = |entry: &MergeEntry| message_at(entry, clocks.there(now, Time::from_nanos(entry.at))?);
        Some(DomainHits { domain, all, others: 0, entries: entries.iter().filter_map(there).collect() })
    }

    /// Takes up what others did.
    pub(super) fn merge(&mut self, now: Time, clocks: &Clocks, hits: &DomainHits) {
        let here = |sent: &DomainEntry| entry_at(sent, clocks.here(now, sent.at)?);
        let entries: Vec<MergeEntry> = hits.entries.iter().filter_map(here).collect();
        if self.delta().is_none() {
            self.replicate(true);
        }
        let Record { history, terms, aside, .. } = self;
        let contract = &terms.contract;
        let Some(delta) = aside.as_mut().and_then(|aside| aside.delta.as_mut()) else { return };
        delta.others = hits.others;
        if hits.all {
            let debt = history.debt();
            *history = delta.with_others(contract, &entries);
            history.settle(contract, now.as_nanos(), debt.into());
        } else {
            entries.iter().for_each(|entry| history.merge(contract, entry));
        }
    }

    /// Adds hits to the outgoing delta, if there is one, and queues it where that is worth it.
    fn add(&mut self, entries: &[MergeEntry], members: u32, sync: &SyncHandle) {
        let Record { terms, aside, .. } = self;
        let contract = &terms.contract;
        let Some(delta) = aside.as_mut().and_then(|aside| aside.delta.as_mut()) else { return };
        delta.add(contract, entries);
        let is_hot = delta.is_hot;
        let matters = |entry: &MergeEntry| is_hot && entry.is_entered || is_marked(contract, entry);
        let is_urgent = entries.iter().any(matters);
        let is_much = || is_share(delta.unsent(), least_limit(contract), members);
        if members > 0 && (is_urgent || is_hot || is_much()) {
            self.queue(sync, is_urgent);
        }
    }

    /// A domain that is not replicated has made the hits of a plan.
    fn replicate_if_worth(&mut self, plan: &Plan, members: u32, sync: &SyncHandle) {
        if self.name().len() > LONGEST_DOMAIN {
            return;
        }
        let decision = plan.decision();
        let tiers::Decision { policy, tier, .. } = *decision;
        let last = MergeEntry { policy, tier, at: plan.now(), hits: 0, is_entered: decision.burst };
        let is_marked = is_marked(self.contract(), &last);
        let is_much = is_share(decision.hits_in_tier, decision.tier_limit, members)
            || decision.hard_limit.is_some_and(|hard| is_share(decision.hits_in_second, hard, members));
        // Whether it is hot is known of those that were there when it became so.
        let is_hot = self.granted() == 0 && sync.lock().is_hot(self.name());
        if is_marked || is_much || is_hot {
            self.replicate(is_hot);
            self.queue(sync, is_marked || is_hot);
        }
    }

    fn queue(&mut self, sync: &SyncHandle, is_urgent: bool) {
        let Some(Aside { name: long, delta: Some(delta), .. }) = self.aside.as_deref_mut() else { return };
        sync.queue_delta(self.name.as_str(long.as_deref()), delta, is_urgent);
    }
}

#[cfg(test)]
mod tests;
