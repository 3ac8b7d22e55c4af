//! Asking for leases, and taking up what is granted.

use std::time::Duration;

use lessor_proto::message::{Answer, Ask, Grant, RefusedReport};
use lessor_proto::{Amount, ReportId, Time};

use super::entry::{Entry, Plan, SHORTEST_RETRY};
use super::marks::Mark;
use super::route::BACK_OFF;
use super::{Action, Exchange, ExchangeKind, Fault, Session};
use crate::mutation::HolderRule;

/// Reports whose time of sending is remembered.
const REMEMBERED: usize = 8;

// === impl Session ===

impl Session {
    /// The answer to ask `id`. Answers that come too late are passed over.
    pub(super) fn on_answer(&mut self, now: Time, id: ReportId, answer: Answer) {
        let Some(exchange) = self.take_exchange(id, ExchangeKind::Ask) else { return };
        let epoch_is_news = answer.epoch > self.fence;
        self.fence = self.fence.max(answer.epoch);
        if let Some(leader) = &answer.redirect {
            self.on_redirect(now, exchange, leader);
            return self.settle(now);
        }
        self.counts.answers += 1;
        self.route.served();
        let plan = Plan {
            kind: self.config.kind,
            refresh: self.config.longest_back_off,
            retry: answer.retry,
            eager: self.config.eager,
            spacing: self.config.spacing,
            spread: self.spread.fraction(id.0),
        };
        // A leader that we had not heard of may have to hear that we know it before it grants.
        let welcome = epoch_is_news && answer.grants.is_empty();
        for grant in answer.grants {
            self.on_grant(now, exchange, grant, plan);
        }
        for refused in answer.refused {
            self.on_refused_part(now, id, &refused);
        }
        // Those who ask by their timer are not told faster than it can be set.
        let least = if plan.eager { SHORTEST_RETRY } else { plan.spacing };
        for place in self.exchanged(id) {
            let mut entry = self.entries.edit(place);
            entry.exchange = None;
            entry.due = now;
            if entry.is_open() && !welcome {
                entry.setbacks.fault = Some(Fault::Missing);
                entry.due = now + entry.refresh().unwrap_or(self.config.spacing);
            }
            if let Some(retry) = answer.retry.filter(|_| entry.is_open()) {
                entry.due = now + retry.max(least);
            }
        }
        self.settle(now);
    }

    pub(super) fn ask(&mut self, now: Time) -> Option<Action> {
        let places = self.batch(now);
        if places.is_empty() || self.gives_back(now, &places) {
            return None;
        }
        let id = self.next_id();
        let shortest = places.iter().filter_map(|&place| self.entries[place].holding.end(now)).min();
        let (config, fence) = (&self.config, self.fence);
        let reports = places.iter().map(|&place| {
            let mut entry = self.entries.edit(place);
            entry.exchanged(now, id);
            entry.report(now, fence, config)
        });
        let ask = Ask {
            kind: self.config.kind,
            holder: self.config.holder.clone(),
            incarnation: Some(self.config.incarnation),
            report_id: Some(id),
            target_epoch: self.fence,
            line: self.config.line,
            reports: reports.collect(),
        };
        self.counts.asks += 1;
        self.sent.note(id, now, ask.reports.len(), REMEMBERED);
        self.start(now, id, ExchangeKind::Ask, self.timeout(now, shortest));
        self.settle(now);
        Some(Action::Ask { id, to: self.route.target().clone(), ask })
    }

    /// The resources to ask for: everything due, and what will be within a quarter of its refresh interval; or one
    /// resource that must go alone.
    fn batch(&self, now: Time) -> Vec<usize> {
        let soon = |entry: &Entry| now + entry.refresh().unwrap_or_default() / 4;
        let (together, alone): (Vec<usize>, Vec<usize>) = (self.entries.in_order().into_iter())
            .filter(|&place| self.entries[place].is_open())
            .partition(|&place| !self.entries[place].setbacks.alone);
        if together.iter().any(|&place| self.entries[place].due <= now) {
            let mut places = together;
            places.retain(|&place| self.entries[place].due <= soon(&self.entries[place]));
            places.sort_by_key(|&place| self.entries[place].due);
            places.truncate(self.config.batch);
            return places;
        }
        alone.into_iter().find(|&place| self.entries[place].due <= now).into_iter().collect()
    }

    /// Leases that end soon leave less time to try another server.
    pub(super) fn timeout(&self, now: Time, shortest: Option<Time>) -> Duration {
        let patience = shortest.map_or(Duration::MAX, |end| end.since(now) / 3);
        patience.max(self.config.spacing).min(self.config.timeout)
    }

    fn on_grant(&mut self, now: Time, exchange: Exchange, grant: Grant, plan: Plan) {
        let Some(place) = self.find(&grant.resource) else { return };
        let asked = |entry: &Entry| entry.is_open() && entry.exchange == Some(exchange.id);
        if !asked(&self.entries[place]) {
            return;
        }
        let plan = plan.with(&grant);
        let basis = grant.basis.unwrap_or(exchange.id);
        let mut entry = self.entries.edit(place);
        entry.exchange = None;
        entry.take_before(now, &grant, self.config.drift);
        let policies = entry.take_policies(&grant);
        drop(entry);
        let adopted = self.end_of(now, &grant, basis).and_then(|end| {
            self.fence = self.fence.max(grant.order.map(|order| order.epoch));
            self.adopt(now, place, grant, basis, end)
        });
        let mut entry = self.entries.edit(place);
        entry.setbacks.fault = adopted.and(policies).err();
        entry.renewed(now, exchange.sent, &plan);
    }

    /// When `grant` ends: counted from the sending of its basis.
    pub(super) fn end_of(&self, now: Time, grant: &Grant, basis: ReportId) -> Result<Time, Fault> {
        if let (Some(found), Some(fence)) = (grant.order, self.fence)
            && self.is_fenced_from(found.epoch)
        {
            return Err(Fault::Deposed { found, fence });
        }
        let sent = self.sent.at(basis).ok_or(Fault::UnknownBasis(basis))?;
        let from = if self.config.rules.keep(HolderRule::FromReport) { sent } else { now };
        Ok(self.config.drift.holder_end(from, grant.length))
    }

    pub(super) fn adopt(
        &mut self,
        now: Time,
        place: usize,
        mut grant: Grant,
        basis: ReportId,
        end: Time,
    ) -> Result<(), Fault> {
        let due = grant.due.zip(self.sent.at(basis)).map(|(due, sent)| sent + due);
        let mut entry = self.entries.edit(place);
        let holding = &mut entry.holding;
        if grant.generation.is_some_and(|generation| generation != holding.config().kind.generation()) {
            // Units a second are no units in use, nor the other way round: nothing is used under it, which is said at once.
            (grant.capacity, grant.ack_wanted) = (Amount::ZERO, true);
        }
        if !self.config.rules.keep(HolderRule::InOrder) {
            holding.forget_order();
        }
        if !self.config.rules.keep(HolderRule::SafeWithinLease) {
            holding.break_bound();
        }
        grant.learning &= self.config.rules.keep(HolderRule::SafeWhileLearning);
        holding.adopt(now, grant, end)?;
        holding.set_due(due);
        Ok(())
    }

    /// Somebody in the request spoiled it for all: each goes alone until an answer comes, the one refused alone waits.
    pub(super) fn on_refused(&mut self, now: Time, id: ReportId, why: &str) {
        self.route.served();
        let spoken = self.exchanged(id);
        spoken.iter().for_each(|&place| self.entries.edit(place).exchange = None);
        self.refuse(now, id, why, &spoken);
    }

    /// One resource of ask `id` was refused, as it would have been alone.
    fn on_refused_part(&mut self, now: Time, id: ReportId, refused: &RefusedReport) {
        let (longest, fraction) = (self.longest_back_off(), self.spread.fraction(id.0));
        let is_it = |&place: &usize| self.entries[place].resource.as_str() == refused.resource;
        if let Some(place) = self.exchanged(id).into_iter().find(is_it) {
            let mut entry = self.entries.edit(place);
            entry.exchange = None;
            let wait = BACK_OFF.wait(entry.setbacks.refusals, longest, fraction);
            entry.refused(now, Some(wait), &refused.reason);
        }
    }

    /// Report `id` was refused; it spoke of the entries in those places.
    pub(super) fn refuse(&mut self, now: Time, id: ReportId, why: &str, spoken: &[usize]) {
        let (alone, longest, spread) = (self.sent.was_alone(id), self.longest_back_off(), self.spread);
        for &place in spoken {
            let mut entry = self.entries.edit(place);
            let wait = alone.then(|| BACK_OFF.wait(entry.setbacks.refusals, longest, spread.fraction(id.0)));
            entry.refused(now, wait, why);
        }
    }

    /// The places of the entries that exchange `id` speaks of.
    pub(super) fn exchanged(&self, ReportId(id): ReportId) -> Vec<usize> {
        let mut places = self.entries.places(Mark::Asked, id..=id);
        places.extend(self.entries.places(Mark::Released, id..=id));
        places
    }
}
