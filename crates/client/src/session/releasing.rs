//! Giving leases back.

use lessor_proto::message::{Leader, Release};
use lessor_proto::{ReportId, ResourceId, Time};

use super::entry::{Entry, Stage};
use super::marks::Mark;
use super::{Action, ExchangeKind, Session};
use crate::holding::HoldingConfig;

// === impl Session ===

impl Session {
    /// The answer to release `id`: done, or the leader to send it to.
    pub(super) fn on_released(&mut self, now: Time, id: ReportId, redirect: Option<&Leader>) {
        let Some(exchange) = self.take_exchange(id, ExchangeKind::Release) else { return };
        match redirect {
            Some(leader) => self.on_redirect(now, exchange, leader),
            None => {
                self.route.served();
                self.finish_releases(now, id);
            }
        }
        self.settle(now);
    }

    pub(super) fn release(&mut self, now: Time) -> Option<Action> {
        let id = self.sent.last_id().next();
        let leaving = self.entries.first_places(&[(Mark::DueLeaving, now.as_nanos())], self.config.batch);
        let resources = self.released(&leaving, |entry| entry.exchange = Some(id))?;
        self.sent.next_id();
        self.counts.releases += 1;
        self.start(now, id, ExchangeKind::Release, self.timeout(now, None));
        let holder = self.config.holder.clone();
        let incarnation = Some(self.config.incarnation);
        let release = Release { holder, incarnation, report_id: Some(id), resources };
        Some(Action::Release { id, to: self.route.target().clone(), release })
    }

    /// The resources of the entries in `places`, which are released, if there are any.
    pub(super) fn released(
        &mut self,
        places: &[usize],
        release: impl Fn(&mut Entry),
    ) -> Option<Vec<ResourceId>> {
        let resources = places.iter().map(|&place| {
            let mut entry = self.entries.edit(place);
            release(&mut entry);
            entry.resource.clone()
        });
        Some(resources.collect()).filter(|resources: &Vec<_>| !resources.is_empty())
    }

    /// Nothing that exchange `id` speaks of is counted by a server any more; those opened again meanwhile start afresh.
    pub(super) fn finish_releases(&mut self, now: Time, id: ReportId) {
        let done = self.exchanged(id);
        self.entries.retain_of(done, |entry| match &mut entry.stage {
            Stage::Leaving { again: Some(config), .. } => {
                let mut fresh = Entry::new(now, entry.resource.clone(), HoldingConfig::clone(config));
                fresh.is_floor = entry.is_floor;
                fresh.holding.count_on(&mut entry.holding);
                *entry = fresh;
                true
            }
            Stage::Leaving { again: None, .. } => false,
            Stage::Open => true,
        });
    }
}
