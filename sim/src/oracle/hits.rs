//! The hits that all limiters together let through, whatever they were allowed: in any window no more than the capacity
//! brings, and what may be saved up.

use lessor_proto::Amount;

use crate::program::BURST;
use crate::program::bucket::{Bucket, brought};
use crate::town::Town;

/// What has been let through of a rate.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Flow {
    due: Bucket,
    /// The most that there was when something was let through last.
    most: u64,
}

// === impl Town ===

impl Town {
    /// So many hits of a resource were let through. Each holder may save up the burst of what it has, and a unit where that
    /// is less; and clocks may run fast.
    pub(crate) fn watch_hits(&mut self, resource: u16, hits: u64) {
        let (index, now) = (usize::from(resource), self.now);
        if !self.resources[index].policy.is_bounded() {
            return;
        }
        let holders = self.holdings.iter().filter(|holding| holding.resource == resource).count() as u128;
        let limit = self.oracle.limits[index].at(now);
        let flow = &mut self.oracle.flows[index];
        let most = std::mem::replace(&mut flow.most, limit).max(limit);
        let second = self.rules.drift.stretch(std::time::Duration::from_secs(1));
        let rate = u64::try_from(brought(most, second)).unwrap_or(u64::MAX);
        flow.due.fill(now, now, rate);
        // Those who have not been told of another go by the usual one.
        let burst = self.resources[index].burst.unwrap_or(BURST).max(BURST);
        flow.due.limit(brought(rate, burst) + holders * u128::from(Amount::MICROS_PER_UNIT));
        if !flow.due.take(hits) {
            self.oracle.fail(1, || {
                format!(
                    "{hits} hits of r{resource} are more than {} a second bring",
                    Amount::from_micros(most)
                )
            });
        }
    }
}
