//! Giving leases back.

use lessor_proto::message::{Leader, Release};
use lessor_proto::{ReportId, ResourceId, Time};

use super::entry::{Entry, Stage};
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
                self.finish_releases(now, |entry| entry.exchange == Some(id));
            }
        }
        self.settle(now);
    }

    pub(super) fn release(&mut self, now: Time) -> Option<Action> {
        let id = self.sent.last_id().next();
        let leaving = self.entries.iter_mut().filter(|entry| !entry.is_open() && entry.due <= now);
        let resources: Vec<ResourceId> = leaving
            .take(self.config.batch)
            .map(|entry| {
                entry.exchange = Some(id);
                entry.resource.clone()
            })
            .collect();
        if resources.is_empty() {
            return None;
        }
        self.sent.next_id();
        self.counts.releases += 1;
        self.start(now, id, ExchangeKind::Release, self.timeout(now, None));
        let holder = self.config.holder.clone();
        let incarnation = Some(self.config.incarnation);
        let release = Release { holder, incarnation, report_id: Some(id), resources };
        Some(Action::Release { id, to: self.route.target().clone(), release })
    }

    /// Nothing of these is counted by a server any more; those opened again meanwhile start afresh.
    pub(super) fn finish_releases(&mut self, now: Time, done: impl Fn(&Entry) -> bool) {
        self.entries.retain_mut(|entry| {
            if !done(entry) {
                return true;
            }
            match &mut entry.stage {
                Stage::Leaving { again: Some(config), .. } => {
                    let is_floor = entry.is_floor;
                    *entry = Entry::new(now, entry.resource.clone(), HoldingConfig::clone(config));
                    entry.is_floor = is_floor;
                    true
                }
                Stage::Leaving { again: None, .. } => false,
                Stage::Open => true,
            }
        });
    }
}
