//! The hits that all limiters together let through, whatever they were allowed: in any window no more than the capacity
//! brings, and what may be saved up.

use lessor_proto::Amount;
use lessor_server::repository::SmallLeases;

use super::{Facts, Oracle};
use crate::program::bucket::{Bucket, brought};
use crate::program::{BURST, Program};

/// The hits of a rate that were let through.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Flow {
    due: Bucket,
    /// The most that there was when something was let through last.
    most: u64,
}

// === impl Oracle ===

impl Oracle {
    /// Checks that no more than the limit allows was let through when `hits` hits of a resource were, or were sent
    /// to those who asked for them. All together may save up what the limit brings in the burst, and a unit at each
    /// node. Where small leases save a unit up, each one has its own; where units are asked for, so has each holder
    /// that cannot ask and has a unit when it is due: meanwhile its lease may flow to those who can, as long as the
    /// node has not noticed. And clocks may run fast.
    pub(crate) fn watch_hits(&mut self, facts: &Facts<'_>, resource: u16, hits: u64) {
        let (index, now) = (usize::from(resource), facts.now);
        if !facts.resources[index].policy.is_bounded() {
            return;
        }
        let saves = facts.resources[index].small_leases == SmallLeases::Save;
        let (mut units, mut twice) = (facts.sites.len() as u128, 0_u64);
        for (hold, holding) in (0..).zip(facts.holdings) {
            if holding.resource == resource {
                let small = facts.programs.get(hold).and_then(Program::small_rate);
                units += u128::from(saves || small.is_some());
                twice += if saves { 0 } else { small.unwrap_or_default() };
            }
        }
        let limit = self.limits[index].at(now);
        let flow = &mut self.flows[index];
        let most = std::mem::replace(&mut flow.most, limit).max(limit);
        let second = facts.rules.drift.stretch(std::time::Duration::from_secs(1));
        let rate = u64::try_from(brought(most.saturating_add(twice), second)).unwrap_or(u64::MAX);
        flow.due.fill(now, now, rate);
        // Those who have not been told of another go by the usual one.
        let burst = facts.resources[index].burst.unwrap_or(BURST).max(BURST);
        flow.due.limit(brought(rate, burst) + units * u128::from(Amount::MICROS_PER_UNIT));
        if !flow.due.take(hits) {
            self.fail(1, || {
                format!(
                    "{hits} hits of r{resource} are more than {} a second bring",
                    Amount::from_micros(most)
                )
            });
        }
    }
}
