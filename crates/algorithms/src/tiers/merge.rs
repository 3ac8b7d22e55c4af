//! The merging of a domain's history with what other clients did with the same domain.
//!
//! Where a domain's requests reach several clients, each runs the rules on its own hits and on those that it is told of.
//! It is told two things: that a tier was entered, and that hits were made in one. Each client says the same of its own,
//! by [`Domain::entries`].
//!
//! Hits that were made are made: they count even where there was no room for them, and a tier may then hold more than its
//! limit, until they leave the window. They are no debt. Where a tier is full they are forgotten with its earlier hits
//! instead of having a time of their own, so that nobody remembers more times than the limit allows.
//!
//! With [`Windows::Reset`](super::Windows::Reset) an entry has to be told no later than the hits that follow it: those that come
//! before it count as of the earlier active time, which it forgets.

use super::decision::Plan;
use super::domain::Domain;
use super::policy::Contract;
use super::pool::NEVER;
use super::walk::{Walk, current};
use super::window::Late;

/// Times are not quite the same everywhere, so a tier that was entered as soon as it could be may seem to have been entered
/// before that: by so many nanoseconds at the most, and by no more than half of the time that this takes.
const SLACK: u64 = 1_000_000_000;

/// Hits that were made in one tier, to be told to others, or told by them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MergeEntry {
    /// Counted from 0. The hits of a request are told once for each policy; those of policy 0 are the hits of the second.
    pub policy: usize,
    /// Counted from 1; 0 for the one that is current here, if there is one.
    pub tier: usize,
    /// When they were made, in nanoseconds of the clock of whoever is told.
    pub at: u64,
    /// May be 0: then only the tier is entered.
    pub hits: u32,
    /// Whether the tier was entered with these hits.
    pub is_entered: bool,
}

// === impl Domain ===

impl Domain {
    /// The effects of committing a plan, in the words in which others are told of them.
    #[must_use]
    pub fn entries(&self, contract: &Contract, plan: &Plan) -> Vec<MergeEntry> {
        let mut entries = Vec::new();
        for policy in 0..contract.policies().len() {
            let moment = self.moment(contract, policy, plan.now());
            let mut walk = Walk::new(moment.rules, &moment, plan.hits());
            while let Some(step) = walk.step(moment.rules, &moment) {
                let (tier, hits, is_entered) = (step.tier, step.hits, step.is_entered);
                entries.push(MergeEntry { policy, tier, at: plan.now(), hits, is_entered });
            }
        }
        entries
    }

    /// Hits that are made at `now` although there is no room for them, in the words in which others are told of it: in the
    /// current tier of each policy. They are not made by this.
    #[must_use]
    pub fn entries_without_room(&self, contract: &Contract, now: u64, hits: u32) -> Vec<MergeEntry> {
        let entry = |policy| {
            let moment = self.moment(contract, policy, now.max(self.last()));
            let tier = current(moment.rules, &moment);
            MergeEntry { policy, tier, at: moment.now, hits, is_entered: false }
        };
        (0..contract.policies().len()).map(entry).collect()
    }

    /// Learns what another client did. Policies and tiers that the contract does not have are ignored.
    ///
    /// Entries need not come in order. Of two that enter a tier the earlier one counts, wherever it was made and whichever is
    /// known first, unless the tier could be entered again by the time of the other, or nearly so.
    pub fn merge(&mut self, contract: &Contract, entry: &MergeEntry) {
        let MergeEntry { policy, tier, at, hits, is_entered } = *entry;
        if policy >= contract.policies().len() || tier > contract.rules(policy).len() {
            return;
        }
        self.pool.open(contract.queues());
        let now = self.last().max(at);
        self.pool.set_last(now);
        if is_entered && tier > 0 {
            self.enter(contract, policy, tier, at);
        }
        if hits == 0 {
            return;
        }
        if policy == 0 {
            let late = Late { at, now, most: contract.hard_limit().unwrap_or(u32::MAX) };
            contract.second().record_late(&mut self.pool, 0, 0, &late, hits);
        }
        let moment = self.moment(contract, policy, at);
        let tier = if tier == 0 { current(moment.rules, &moment) } else { tier };
        if tier > 0 {
            let (rule, queue) = (&contract.rules(policy)[tier - 1], contract.begin(policy) + tier);
            let late = Late { at, now, most: rule.limit };
            rule.record_late(&mut self.pool, queue, &late, hits);
        }
    }

    /// Begins the active time of a tier, `at` some time. If it had been entered before and could not be entered again, or
    /// has been since by who did not know of this, the earlier entry counts.
    fn enter(&mut self, contract: &Contract, policy: usize, tier: usize, at: u64) {
        let (rule, queue) = (&contract.rules(policy)[tier - 1], contract.begin(policy) + tier);
        let since = self.pool.time(queue);
        let again = rule.active.saturating_add(rule.cooldown);
        let again = again - SLACK.min(again / 2);
        if since == NEVER || since <= at && at - since >= again.max(1) {
            rule.enter(&mut self.pool, queue, at);
        } else if since > at && since - at < again {
            self.pool.set_time(queue, at);
        }
    }
}
