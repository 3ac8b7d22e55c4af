//! Shown leases: those that a poller shows where nobody vouches for them, or where nothing can be granted.
//!
//! As long as such a lease lasts by its date it is the answer itself. That charges nothing, and what the poller believes is the
//! same as if it had not asked. When it is over the poller is told so: one that goes by its answers alone, as Doorman's client for
//! Go, would use it for as long as it was told nothing.

use std::time::Duration;

use lessor_proto::message::{Ask, Has, Order, Report};
use lessor_proto::{Amount, Time};

use super::claim::{MOST_SHOWN, counts_until_heard, ends_at};
use super::identity::holder;
use super::poller::Kept;
use super::retry::SOON;
use super::{CallContext, Reply, Resource};
use crate::mutation::Rule;
use crate::token::PolledLease;

// === impl Resource ===

impl Resource {
    /// The answer to a poller that shows a lease for which nobody vouches, if that is left to it. Below another node it has that
    /// from leaders of before, who are charged for it there. Where it is not known what is out, it is learnt when nobody of
    /// before can lend that to others any more.
    pub(super) fn keep_shown(
        &mut self,
        now: Time,
        ask: &Ask,
        report: &Report,
        cx: CallContext<'_>,
    ) -> Option<Reply> {
        let has = self.unproven(now, ask, report, cx)?;
        let is_sticky = counts_until_heard(&self.terms);
        if is_sticky {
            // It goes on from this answer as it did from the one before.
            let length = self.terms.longest_charge().min(self.terms.learning);
            self.learning.extend(cx.config.drift.grantor_end(now, length));
        }
        let (left, early) = (self.left(now, has, cx), now < cx.opens());
        let refresh_interval = self.refresh_within(now, left, cx);
        let lasts = match early || self.may_have_units_out() {
            true => left > Duration::ZERO || is_sticky,
            false => left > refresh_interval,
        };
        if !lasts || !early && self.is_better_off(now, ask, report, cx, has.capacity) {
            return None;
        }
        let length = if cx.config.rules.keep(Rule::EchoUnchanged) { left } else { self.terms.lease_length };
        let (order, token) = (has.order, &has.token[..]);
        Some(self.kept_to(now, ask, Kept { amount: has.capacity, order, token, length, refresh_interval }))
    }

    /// The answer to a poller to whom nothing can be granted at the moment: what it shows, or that this is over. What it gives
    /// back in the same report may be somebody else's at once.
    pub(crate) fn hold_over(
        &mut self,
        now: Time,
        ask: &Ask,
        report: &Report,
        cx: CallContext<'_>,
    ) -> Option<Reply> {
        let has = polled(ask, report).filter(|_| cx.config.rules.keep(Rule::EndTold))?;
        // What is sticky is charged for longer than it lasts, and its holder goes on from each answer.
        if counts_until_heard(&self.terms) {
            return None;
        }
        self.learn_as_shown(now, has, cx);
        let length = self.left(now, has, cx);
        let held = report.held.map_or(has.capacity, |held| held.min(has.capacity));
        let amount = if length.is_zero() { Amount::ZERO } else { held };
        let (order, token) = (has.order, &has.token[..]);
        Some(self.kept_to(now, ask, Kept { amount, order, token, length, refresh_interval: SOON }))
    }

    /// The time for which a poller may use the lease that it shows. It says so itself, and is believed for no longer than a lease.
    /// A root that knows what is out lends it to others when all from before is over by its own clock, whatever its date is.
    pub(super) fn left(&self, now: Time, has: &Has, cx: CallContext<'_>) -> Duration {
        let length = has.lasts.map_or(MOST_SHOWN, |lasts| lasts.length.min(MOST_SHOWN));
        let by_date = cx.date.until(now, ends_at(has)).min(length);
        let knows = cx.config.record.as_ref().is_some_and(|record| record.knows(&self.id));
        let origin = PolledLease::read(&has.token).map(|lease| lease.origin).ok();
        let granted = origin.or(has.order.map(|order| order.epoch));
        let is_earlier = granted.is_some_and(|epoch| epoch < cx.config.epoch);
        if !knows || !is_earlier || self.is_leased() || counts_until_heard(&self.terms) {
            return by_date;
        }
        by_date.min(cx.config.drift.length_until(now, self.ledger.ghost_end()))
    }

    /// The lease that a poller shows for which nobody vouches, if it is to be kept to.
    fn unproven<'a>(&self, now: Time, ask: &Ask, report: &'a Report, cx: CallContext<'_>) -> Option<&'a Has> {
        let has = polled(ask, report).filter(|_| cx.config.rules.keep(Rule::ShownKept))?;
        let is_other = |order: Order| order.epoch != cx.config.epoch;
        let keeps = match self.is_leased() {
            true => has.order.is_some_and(is_other),
            false => self.is_learning(now) && now < cx.opens() && has.order.is_none_or(is_other),
        };
        let is_known = || self.holders.children().locate(holder(ask, report, cx.config)).is_some();
        (keeps && !is_known()).then_some(has)
    }
}

/// The lease that a poller shows, if it shows any.
fn polled<'a>(ask: &Ask, report: &'a Report) -> Option<&'a Has> {
    report.has.as_ref().filter(|has| ask.incarnation.is_none() && has.capacity > Amount::ZERO)
}
