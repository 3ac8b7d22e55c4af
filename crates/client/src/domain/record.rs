//! A domain that follows policies: its history, and what of that others are sent.

use std::sync::Arc;

use lessor_algorithms::tiers::{self, Contract, Domain, MergeEntry, Plan, TierState};
use lessor_proto::Time;
use lessor_proto::message::{DomainEntry, DomainHits, LONGEST_DOMAIN};

use super::name::Name;
use super::sync::{Clocks, Outgoing, SyncHandle, entry_at, is_marked, is_share, least_limit, message_at};
use super::table::Hashed;

/// A domain that is remembered.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) name: Name,
    pub(super) history: Domain,
    /// The contract that the history is about.
    pub(super) contract: Arc<Contract>,
    /// Under which terms that was found.
    pub(super) generation: u32,
    hash: u32,
    /// Since it was first heard of, or was last idle.
    pub(super) granted: u64,
    pub(super) refused: u64,
    /// Its outgoing delta, if it is replicated.
    pub(super) delta: Option<Box<Outgoing>>,
}

// === impl Record ===

impl Record {
    pub(super) fn new(hash: u32, name: &str, contract: Arc<Contract>, generation: u32) -> Record {
        Record {
            name: name.into(),
            history: Domain::new(),
            contract,
            generation,
            hash,
            granted: 0,
            refused: 0,
            delta: None,
        }
    }

    /// The number of other clients that use the domain too, as far as is known here.
    pub(super) fn others(&self) -> u32 {
        self.delta.as_ref().map_or(0, |delta| delta.others)
    }

    /// Follows other policies from here on; what did not change keeps its hits.
    pub(super) fn follow(&mut self, now: Time, contract: Arc<Contract>, generation: u32) {
        if contract != self.contract {
            self.history.swap(&self.contract, &contract, now.as_nanos());
            if let Some(delta) = &mut self.delta {
                delta.swap(&self.contract, &contract, now.as_nanos());
            }
        }
        (self.contract, self.generation) = (contract, generation);
    }

    /// Makes the hits of a plan, and has them sent where that is worth it.
    pub(super) fn commit(&mut self, plan: &Plan, sync: &SyncHandle) {
        let is_replicated = plan.hits() > 0 && self.delta.is_some();
        let entries = is_replicated.then(|| self.history.entries(&self.contract, plan));
        self.history.commit(&self.contract, plan);
        match (entries, sync.members()) {
            (Some(entries), members) => self.add(&entries, members, sync),
            (None, members) if members > 0 && plan.hits() > 0 => self.replicate_if_worth(plan, members, sync),
            (None, _) => {}
        }
    }

    /// Makes hits for which there may be no room.
    pub(super) fn commit_without_room(&mut self, plan: &Plan, hits: u32, sync: &SyncHandle) {
        let entries = self.history.entries_without_room(&self.contract, plan.now(), hits);
        entries.iter().for_each(|entry| self.history.merge(&self.contract, entry));
        self.add(&entries, sync.members(), sync);
    }

    /// Settles a grant of `granted` hits that turned out to cost `actual`. What was sent too much is sent anew.
    pub(super) fn settle(&mut self, now: Time, granted: u32, actual: u32, sync: &SyncHandle) {
        let delta = i64::from(actual) - i64::from(granted);
        self.history.settle(&self.contract, now.as_nanos(), delta);
        if let Some(delta) = &mut self.delta
            && actual < granted
        {
            delta.refund(&self.contract, now.as_nanos(), granted - actual);
            if sync.members() > 0 {
                self.queue(sync, false);
            }
        }
    }

    /// Has all of it sent again, not only the delta, if it is replicated.
    pub(super) fn resend(&mut self, sync: &SyncHandle) {
        if let Some(delta) = &mut self.delta {
            delta.resend();
            self.queue(sync, false);
        }
    }

    /// A stream has begun: all of it is sent if that is worth it.
    pub(super) fn begin(&mut self, now: Time, sync: &SyncHandle) {
        let members = sync.members();
        let is_much = |tier: TierState| is_share(tier.hits, tier.limit, members);
        let has_much = self.history.tiers(&self.contract, now.as_nanos()).any(is_much);
        match &mut self.delta {
            Some(delta) => delta.begin(),
            None if has_much && self.name.as_str().len() <= LONGEST_DOMAIN => {
                self.delta = Some(Box::new(Outgoing::new(&self.history, false)));
            }
            None => return,
        }
        self.queue(sync, true);
    }

    /// The domain is hot from here on, or is not any more.
    pub(super) fn set_hot(&mut self, is_hot: bool, sync: &SyncHandle) {
        match &mut self.delta {
            Some(delta) if is_hot => delta.is_hot = true,
            Some(delta) => delta.cool(),
            None if is_hot => self.delta = Some(Box::new(Outgoing::new(&self.history, true))),
            None => return,
        }
        if self.delta.as_ref().is_some_and(|delta| delta.is_hot && !delta.is_empty()) {
            self.queue(sync, true);
        }
    }

    /// The delta that is sent at `now`, by the clock of whom it is sent to.
    pub(super) fn export(&mut self, now: Time, clocks: &Clocks, domain: Arc<str>) -> Option<DomainHits> {
        let (all, entries) = self.delta.as_mut()?.take(&self.contract, now.as_nanos());
        let there = |entry: &MergeEntry| message_at(entry, clocks.there(now, Time::from_nanos(entry.at))?);
        Some(DomainHits { domain, all, others: 0, entries: entries.iter().filter_map(there).collect() })
    }

    /// Takes up what others did.
    pub(super) fn merge(&mut self, now: Time, clocks: &Clocks, hits: &DomainHits) {
        let here = |sent: &DomainEntry| entry_at(sent, clocks.here(now, sent.at)?);
        let entries: Vec<MergeEntry> = hits.entries.iter().filter_map(here).collect();
        let Record { history, contract, delta, .. } = self;
        let delta = delta.get_or_insert_with(|| Box::new(Outgoing::new(history, true)));
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
        let Some(delta) = &mut self.delta else { return };
        delta.add(&self.contract, entries);
        let is_hot = delta.is_hot;
        let matters = |entry: &MergeEntry| is_hot && entry.is_entered || is_marked(&self.contract, entry);
        let is_urgent = entries.iter().any(matters);
        let is_much = || is_share(delta.unsent(), least_limit(&self.contract), members);
        if members > 0 && (is_urgent || is_hot || is_much()) {
            self.queue(sync, is_urgent);
        }
    }

    /// A domain that is not replicated has made the hits of a plan.
    fn replicate_if_worth(&mut self, plan: &Plan, members: u32, sync: &SyncHandle) {
        if self.name.as_str().len() > LONGEST_DOMAIN {
            return;
        }
        let decision = plan.decision();
        let tiers::Decision { policy, tier, .. } = *decision;
        let last = MergeEntry { policy, tier, at: plan.now(), hits: 0, is_entered: decision.burst };
        let is_marked = is_marked(&self.contract, &last);
        let is_much = is_share(decision.hits_in_tier, decision.tier_limit, members)
            || decision.hard_limit.is_some_and(|hard| is_share(decision.hits_in_second, hard, members));
        // Whether it is hot is known of those that were there when it became so.
        let is_hot = self.granted == 0 && sync.lock().is_hot(self.name.as_str());
        if is_marked || is_much || is_hot {
            self.delta = Some(Box::new(Outgoing::new(&self.history, is_hot)));
            self.queue(sync, is_marked || is_hot);
        }
    }

    fn queue(&mut self, sync: &SyncHandle, is_urgent: bool) {
        if let Some(delta) = &mut self.delta {
            sync.queue_delta(self.name.as_str(), delta, is_urgent);
        }
    }
}

impl Hashed for Record {
    fn hash(&self) -> u32 {
        self.hash
    }
}
