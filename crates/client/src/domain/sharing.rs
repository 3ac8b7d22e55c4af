//! Scope `shared`, where requests come: what is told of them, and when a refusal is in doubt.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lessor_algorithms::tiers::{self, Ask, Contract, MergeEntry, Plan, TierPolicy};
use lessor_proto::Time;
use lessor_proto::message::LONGEST_DOMAIN;

use super::decision::{Bound, Decision};
use super::exchange::HEARING;
use super::policies::{Policies, Scope};
use super::shard::Record;
use super::store::Domains;
use super::telling::Telling;

// === impl Domains ===

impl Domains {
    /// Whether it may be that only what others did, and is not known here, would change the answer.
    #[must_use]
    pub fn is_doubtful(&self, decision: &Decision) -> bool {
        let by_hits = matches!(decision.bound, Some(Bound::Tiers | Bound::Hard));
        !decision.is_granted() && decision.others > 0 && by_hits
    }

    /// Whether nothing has been heard of others for so long that they are out of hearing.
    pub(super) fn is_out_of_hearing(&self, now: Time) -> bool {
        let news_at = Time::from_nanos(self.exchange.news_at.load(Ordering::Relaxed));
        now > news_at + HEARING
    }

    /// Whether the least that was asked for is granted to a domain that others use too, where policies refuse it as far as is
    /// known here and nothing is to be known of the others: unless that is to be refused.
    pub(super) fn goes_unheard(&self, record: &Record, ask: Ask, plan: &Plan) -> bool {
        let by_hits = matches!(plan.decision().bound, Some(tiers::Bound::Tiers | tiers::Bound::Hard));
        let is_shared = record.telling.as_ref().is_some_and(|telling| telling.others > 0);
        // What others used is remembered under other policies as well, and means nothing there.
        let is_granted =
            |policies: Arc<Policies>| policies.scope() == Scope::Shared && !policies.refuses_unheard();
        ask.copies() > 0
            && by_hits
            && is_shared
            && self.is_out_of_hearing(Time::from_nanos(plan.now()))
            && self.policies().is_some_and(is_granted)
    }

    /// Hits that were made are made, whether there was room for them or not.
    pub(super) fn make_unheard(&self, record: &mut Record, plan: &Plan, hits: u32) {
        let entries = record.history.entries_without_room(&record.contract, plan.now(), hits);
        entries.iter().for_each(|entry| record.history.merge(&record.contract, entry));
        self.note(record, &entries);
    }

    /// Makes the hits of a plan, and tells others of them where that is worth it.
    pub(super) fn commit(&self, record: &mut Record, plan: &Plan) {
        let is_told = plan.hits() > 0 && record.telling.is_some();
        let entries = is_told.then(|| record.history.entries(&record.contract, plan));
        record.history.commit(&record.contract, plan);
        match (entries, self.exchange.members()) {
            (Some(entries), _) => self.note(record, &entries),
            (None, members) if members > 0 && plan.hits() > 0 => {
                self.look_whether_to_tell(record, plan, members);
            }
            (None, _) => {}
        }
    }

    /// Hits of a domain of which others are told.
    pub(super) fn note(&self, record: &mut Record, entries: &[MergeEntry]) {
        let members = self.exchange.members();
        let Some(telling) = &mut record.telling else { return };
        telling.note(&record.contract, entries);
        let is_hot = telling.is_hot;
        let matters = |entry: &MergeEntry| is_hot && entry.is_entered || is_marked(&record.contract, entry);
        let is_urgent = entries.iter().any(matters);
        let is_much = || is_share(telling.untold(), least_limit(&record.contract), members);
        if members > 0 && (is_urgent || is_hot || is_much()) {
            self.exchange.list(record, is_urgent);
        }
    }

    /// Has a domain told anew, as what was told of it is not so.
    pub(super) fn tell_again(&self, record: &mut Record) {
        if record.telling.is_some() && self.exchange.members() > 0 {
            self.exchange.list(record, false);
        }
    }

    /// Policies have changed: by what tiers hits were counted is told again.
    pub(super) fn tell_by_other_policies(&self) {
        if self.exchange.members() == 0 {
            return;
        }
        for mut shard in self.shards() {
            for record in shard.records_mut() {
                if let Some(telling) = &mut record.telling {
                    telling.tell_all();
                    self.exchange.list(record, false);
                }
            }
        }
    }

    /// A domain of which nobody was told has made hits.
    fn look_whether_to_tell(&self, record: &mut Record, plan: &Plan, members: u32) {
        if record.name.as_str().len() > LONGEST_DOMAIN {
            return;
        }
        let decision = plan.decision();
        let tiers::Decision { policy, tier, .. } = *decision;
        let last = MergeEntry { policy, tier, at: plan.now(), hits: 0, is_entered: decision.burst };
        let is_marked = is_marked(&record.contract, &last);
        let is_much = is_share(decision.hits_in_tier, decision.tier_limit, members)
            || decision.hard_limit.is_some_and(|hard| is_share(decision.hits_in_second, hard, members));
        // Whether it is hot is known of those that were there when it became so.
        let is_hot = record.granted == 0 && self.exchange.talk().hot.contains(record.name.as_str());
        if is_marked || is_much || is_hot {
            record.telling = Some(Box::new(Telling::new(&record.history, is_hot)));
            self.exchange.list(record, is_marked || is_hot);
        }
    }
}

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
