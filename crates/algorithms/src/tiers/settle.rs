//! Costs that are known only afterwards: debts and refunds.

use super::domain::Domain;
use super::policy::Contract;
use super::pool::NEVER;
use super::walk::{View, current};
use super::window::Measure;

// === impl Domain ===

impl Domain {
    /// Corrects what was granted by what it turned out to cost: `delta` hits more, or fewer if it is negative.
    ///
    /// More hits are a debt. Every later request pays for it first, with all hits that would be granted, and is refused as
    /// long as something is owed; so a debt of ten windows takes ten windows.
    ///
    /// Fewer hits first lessen the debt. Then the newest hits of each policy are forgotten, in whatever tiers they were
    /// made. A tier that was entered stays entered. Hits that do not count any more cannot be given back.
    pub fn settle(&mut self, contract: &Contract, now: u64, delta: i64) {
        let hits = u32::try_from(delta.unsigned_abs()).unwrap_or(u32::MAX);
        if delta >= 0 {
            self.pool.open(contract.queues());
            self.pool.set_debt(self.pool.debt().saturating_add(hits));
            return;
        }
        if self.pool.is_empty() {
            return;
        }
        self.pass(contract, now);
        let forgiven = hits.min(self.pool.debt());
        self.pool.set_debt(self.pool.debt() - forgiven);
        self.forget(contract, hits - forgiven);
    }

    fn forget(&mut self, contract: &Contract, hits: u32) {
        let now = self.last();
        contract.second().forget(&mut self.pool, 0, now, hits);
        for policy in 0..contract.policies().len() {
            self.forget_in(contract, policy, now, hits);
        }
    }

    /// Forgets the newest hits of one policy, a run at a time.
    fn forget_in(&mut self, contract: &Contract, policy: usize, now: u64, mut hits: u32) {
        let (rules, begin) = (contract.rules(policy), contract.begin(policy));
        while hits > 0 {
            let moment = self.moment(contract, policy, now);
            let current = current(rules, &moment);
            // A bucket does not know when its hits were made: if it is current they are the newest, or else they were made
            // while it was.
            let newest = |tier: usize| match rules[tier - 1].measure {
                Measure::Runs { .. } => moment.pool.newest(begin + tier).map(|run| (run.at, run.count)),
                Measure::Bucket { .. } if tier == current => Some((now, moment.used(tier))),
                Measure::Bucket { .. } => Some((moment.pool.time(begin + tier), moment.used(tier))),
            };
            let runs = (1..=rules.len()).filter_map(|tier| newest(tier).map(|(at, count)| (at, tier, count)));
            let runs = runs.filter(|&(at, _, count)| at != NEVER && count > 0);
            let Some((_, tier, count)) = runs.max() else { return };
            let back = count.min(hits);
            rules[tier - 1].measure.forget(&mut self.pool, begin + tier, now, back);
            hits -= back;
        }
    }
}
