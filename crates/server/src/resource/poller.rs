//! Pollers at a successor: what becomes of the lease of an earlier leader that a holder without incarnation shows.
//!
//! Before claims open it is answered with that very lease, and nothing is kept of it (the *echo*): what it believes is the
//! same as if it had not asked. From then on, if the lease counted still when the leader that had charged it stopped, the
//! lease is *resealed*: the same, but granted by this leader. Whoever shows a resealed lease has adopted it after the books
//! of the earlier leader were final, so nothing that it said before can lower what it claims: that moves out of the
//! ghost, and is renewed. In one step that would not hold, as a request carries no epoch that it is meant for and may be read
//! long after it was sent.
//!
//! A lease of which it is not known that it counted is echoed for as long as it lasts, unless a newcomer would get more.

use std::time::Duration;

use lessor_proto::message::{Ask, BoundBy, Grant, Has, HolderKind, Order, Report};
use lessor_proto::{Amount, Epoch, Incarnation, Time};

use super::claim::{is_of_record, origin};
use super::holders::Claimed;
use super::identity::holder;
use super::retry::SOON;
use super::slab::Slot;
use super::streaming::Told;
use super::{CallContext, Reply, Resource};
use crate::config::{Claims, NodeConfig};
use crate::mutation::Rule;
use crate::token::{Bearer, Doubt, PolledLease};

/// The number of the grants by which leases are resealed: the first of a life under this leader.
const RESEALED: u64 = 1;

/// A lease that is answered with a lease of the same end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept<'a> {
    pub(super) amount: Amount,
    pub(super) order: Option<Order>,
    pub(super) token: &'a [u8],
    pub(super) length: Duration,
    pub(super) refresh_interval: Duration,
}

// === impl Resource ===

impl Resource {
    /// The answer to a poller that shows a lease of an earlier leader, if that is to be kept to; nothing if it is heard as any
    /// other.
    pub(super) fn keep_lease(
        &mut self,
        now: Time,
        ask: &Ask,
        report: &Report,
        cx: CallContext<'_>,
    ) -> Option<Reply> {
        let is_unknown = cx.config.record.as_ref().is_some_and(|record| !record.knows(&self.id));
        if let Some(has) = report.has.as_ref().filter(|_| is_unknown && ask.incarnation.is_none()) {
            self.learn_as_shown(now, has, cx);
        }
        if is_unknown && cx.opens() <= now && !self.is_leased() {
            // What anybody shows is learnt.
            return None;
        }
        if let Some(reply) = self.keep_waiting(now, ask, report, cx) {
            return Some(reply);
        }
        let Some((has, lease)) = self.proven(ask, report, cx) else {
            return self.keep_shown(now, ask, report, cx);
        };
        let amount = lease.amount.min(has.capacity);
        if amount == Amount::ZERO {
            return None;
        }
        if !cx.config.rules.keep(Rule::ClaimInSteps) && self.counts(now, &lease, cx) {
            return None;
        }
        let left = self.left(now, has, cx);
        let early = now < cx.opens() && cx.config.rules.keep(Rule::ResealLate);
        if !early && self.counts(now, &lease, cx) {
            let order = Order { epoch: cx.config.epoch, seq: RESEALED };
            let token = self.poller_token(
                ask.kind,
                ask.holder.as_str(),
                PolledLease { order, amount, ..lease },
                cx.config,
            );
            // The next request is the claim.
            self.note_echo(now, ask.holder.as_str(), &lease, amount, cx);
            let kept =
                Kept { amount, order: Some(order), token: &token, length: left, refresh_interval: SOON };
            return Some(self.kept_to(now, ask, kept));
        }
        let refresh_interval = self.refresh_within(now, left, cx);
        let lasts = match early || self.may_have_units_out() {
            // What is sticky counts whatever its holder's clock shows.
            true => left > Duration::ZERO || early && self.is_sticky(),
            false => left > refresh_interval,
        };
        if !lasts || !early && self.is_better_off(now, ask, report, cx, amount) {
            return None;
        }
        self.note_echo(now, ask.holder.as_str(), &lease, amount, cx);
        let length = if cx.config.rules.keep(Rule::EchoUnchanged) { left } else { self.terms.lease_length };
        let kept = Kept { amount, order: Some(lease.order), token: &has.token, length, refresh_interval };
        Some(self.kept_to(now, ask, kept))
    }

    /// When a poller should come back that is left what lasts for `left`: when claims open, or well before its end.
    pub(super) fn refresh_within(&self, now: Time, left: Duration, cx: CallContext<'_>) -> Duration {
        let usual = self.terms.refresh_interval;
        match now < cx.opens() && cx.config.rules.keep(Rule::ResealLate) {
            true => cx.opens().since(now).clamp(SOON, usual.max(SOON)),
            false => usual.min((left / 2).max(SOON)),
        }
    }

    /// The answer to a poller that claims before the record allows for it beside what is left from before: what it shows.
    fn keep_waiting(&mut self, now: Time, ask: &Ask, report: &Report, cx: CallContext<'_>) -> Option<Reply> {
        let has = report.has.as_ref().filter(|_| self.says_of_rest())?;
        if self.holders.children().locate(holder(ask, report, cx.config)).is_some() {
            return None;
        }
        let (lease, amount) = self.claimed_lease(now, ask, report, cx)?;
        if !self.lacks_room(amount, origin(lease.origin, cx.config)) {
            return None;
        }
        self.note_echo(now, ask.holder.as_str(), &lease, amount, cx);
        let length = self.left(now, has, cx);
        let (order, token) = (Some(lease.order), &has.token[..]);
        Some(self.kept_to(now, ask, Kept { amount, order, token, length, refresh_interval: SOON }))
    }

    /// The resealed lease with which the poller that is heard of for the first time claims, and how much of it.
    pub(super) fn claimed_lease(
        &mut self,
        now: Time,
        ask: &Ask,
        report: &Report,
        cx: CallContext<'_>,
    ) -> Option<(PolledLease, Amount)> {
        let has = report.has.as_ref().filter(|_| ask.incarnation.is_none())?;
        let at_once = !cx.config.rules.keep(Rule::ClaimInSteps);
        let lease = PolledLease::read(&has.token).ok()?;
        let is_resealed = lease.order.epoch == cx.config.epoch && lease.origin < cx.config.epoch;
        let is_earlier = lease.order.epoch < cx.config.epoch && at_once && self.counts(now, &lease, cx);
        let is_left = now < self.ledger.ghost_end() && is_left(now, lease.origin, cx);
        if !(is_resealed || is_earlier) || !is_left {
            return None;
        }
        let lease = self.opened(ask, has, cx.config)?;
        Some((lease, self.in_whole_units(lease.amount.min(has.capacity))))
    }

    /// Charges what the poller at `slot` claims, out of what is known to be out.
    pub(super) fn claim_lease(
        &mut self,
        now: Time,
        slot: Slot,
        lease: &PolledLease,
        amount: Amount,
        cx: CallContext<'_>,
    ) {
        let child = self.holders.at_mut(slot);
        // It goes on after what it shows, so that this is of its round.
        let seq = child.in_round(lease.order.seq).and_then(|seq| u32::try_from(seq).ok()).unwrap_or(u32::MAX);
        child.claimed = Claimed::Less;
        let seq = if cx.config.rules.keep(Rule::ClaimNumbered) { seq } else { 0 };
        let origin = origin(lease.origin, cx.config);
        let taken = self.charge(slot, |ledger, account| ledger.claim(account, amount, seq, origin));
        self.claims.honour(amount);
        if cx.config.claims == Claims::Deferred {
            self.claims.defer(slot, taken);
        }
        self.settle_echo(now, slot, lease, cx);
    }

    /// The token of a poller that says `lease`.
    pub(super) fn poller_token(
        &self,
        kind: HolderKind,
        name: &str,
        lease: PolledLease,
        config: &NodeConfig,
    ) -> Vec<u8> {
        match &config.keys {
            Some(keys) => keys.poller_token(&self.poller(kind, name, config), lease),
            None => lease.unsealed(),
        }
    }

    /// The lease of an earlier leader of this node that a poller shows.
    fn proven<'a>(
        &mut self,
        ask: &Ask,
        report: &'a Report,
        cx: CallContext<'_>,
    ) -> Option<(&'a Has, PolledLease)> {
        let has = report.has.as_ref().filter(|_| ask.incarnation.is_none() && cx.config.record.is_some())?;
        has.order.filter(|order| order.epoch < cx.config.epoch)?;
        // Its answer was lost: it has a charge of its own here.
        if self.holders.children().locate(holder(ask, report, cx.config)).is_some() {
            return None;
        }
        let lease = self.opened(ask, has, cx.config)?;
        if lease.order.epoch >= cx.config.epoch {
            self.claims.doubt(Doubt::NotEarlier);
            return None;
        }
        Some((has, lease))
    }

    /// The content of the token that a poller shows, if it is believed.
    fn opened(&mut self, ask: &Ask, has: &Has, config: &NodeConfig) -> Option<PolledLease> {
        let opened = match &config.keys {
            Some(keys) => keys.open_poller(&self.poller(ask.kind, ask.holder.as_str(), config), &has.token),
            None if config.trust_claims => PolledLease::read(&has.token),
            None => Err(Doubt::Missing),
        };
        opened.map_err(|doubt| self.claims.doubt(doubt)).ok()
    }

    /// Whether a lease of an earlier leader counted when that one stopped, and what is left of that counts still.
    fn counts(&self, now: Time, lease: &PolledLease, cx: CallContext<'_>) -> bool {
        let Some(record) = &cx.config.record else { return false };
        if lease.origin >= cx.config.epoch
            || !is_of_record(lease.origin, cx.config)
            || now >= self.ledger.ghost_end()
            || self.ledger.ghost() == Amount::ZERO
        {
            return false;
        }
        match record.stops.get(&lease.origin) {
            _ if !cx.config.rules.keep(Rule::EndChecked) => true,
            Some(_) if !cx.config.rules.keep(Rule::EndByClock) => {
                cx.date.until(cx.opens(), lease.expiry) > Duration::ZERO && is_left(now, lease.origin, cx)
            }
            Some(&stop) => lease.ends >= stop && is_left(now, lease.origin, cx),
            // It counts for as long as its holder cannot have been given up for dead.
            None => self.is_sticky(),
        }
    }

    /// Whether the poller would be granted more than `amount` as one of whom nothing is known. If not, nothing is kept of it.
    pub(super) fn is_better_off(
        &mut self,
        now: Time,
        ask: &Ask,
        report: &Report,
        cx: CallContext<'_>,
        amount: Amount,
    ) -> bool {
        let Some(slot) = self.hear(now, ask, report, cx) else { return false };
        let granted = self.length(now, self.holders.at(slot), cx).map(|_| {
            let (target, most) = self.within_part(slot, self.target(now, slot));
            self.reachable(slot, target.min(most))
        });
        let wanted = amount.min(Amount::from_f64(self.holders.at(slot).demands().wants()));
        let better = granted.is_some_and(|granted| granted >= wanted);
        if !better {
            self.forget(slot);
        }
        better
    }

    /// Whether `report` comes from the holder at `slot`. One that draws an incarnation is the only one that knows it. Of others
    /// a token says so that was made for this life, or the connection on which it began; anybody may show an amount.
    pub(super) fn is_proven(&self, slot: Slot, ask: &Ask, report: &Report, cx: CallContext<'_>) -> bool {
        let child = self.holders.at(slot);
        if child.flags.incarnated || self.is_on_its_connection(slot, cx) {
            return true;
        }
        let Some(has) = &report.has else { return false };
        let opened = match &cx.config.keys {
            Some(keys) => {
                keys.open_poller(&self.poller(ask.kind, ask.holder.as_str(), cx.config), &has.token)
            }
            None => PolledLease::read(&has.token),
        };
        opened.is_ok_and(|lease| lease.life == child.life)
    }

    /// Whether `report` names a holder that it does not come from, as far as that can be told.
    pub(super) fn is_stranger(&self, ask: &Ask, report: &Report, cx: CallContext<'_>) -> bool {
        if ask.incarnation.is_some() {
            return false;
        }
        let known = self.holders.children().locate(holder(ask, report, cx.config));
        known.is_some_and(|slot| !self.is_proven(slot, ask, report, cx))
    }

    /// Whether the call came on the connection on which the life of the poller at `slot` began.
    pub(super) fn is_on_its_connection(&self, slot: Slot, cx: CallContext<'_>) -> bool {
        let session = self.holders.at(slot).life.session;
        !cx.config.rules.keep(Rule::PollersProven)
            || cx.caller.is_some_and(|caller| caller.has_begun(session))
    }

    fn is_sticky(&self) -> bool {
        super::claim::counts_until_heard(&self.terms)
    }

    pub(super) fn kept_to(&self, now: Time, ask: &Ask, kept: Kept<'_>) -> Reply {
        let Kept { amount, order, token, length, refresh_interval } = kept;
        let grant = Grant {
            resource: self.id.clone(),
            capacity: amount,
            length,
            refresh_interval,
            order,
            basis: None,
            token: token.to_vec(),
            ack_wanted: false,
            safe_leased: self.terms.reserves(),
            learning: self.says_learning(now),
            learning_left: self.learning_left(now),
            safe_capacity: Some(self.safe_capacity()),
            burst: self.terms.told_burst(),
            due: None,
            window: None,
            sharing: Some(self.sharing()),
            domains: None,
            before: None,
            earlier: None,
            bound_by: Some(BoundBy::Claim),
            unenforced: self.terms.lets_pass(ask.kind, ask.holder.as_str()),
            beside: self.terms.tells_beside(ask.kind, ask.incarnation.is_some()),
            generation: Some(self.generation()),
        };
        Reply { grant, retry: None, told: Told { seq: 0, length, at: now, is_all: false } }
    }

    fn poller<'a>(&'a self, kind: HolderKind, name: &'a str, config: &'a NodeConfig) -> Bearer<'a> {
        Bearer {
            node: &config.name,
            kind,
            holder: name,
            incarnation: Incarnation::default(),
            resource: &self.id,
        }
    }
}

/// Whether something counts still of what the leader of the epoch `origin` had charged: of leaders before the last that is over
/// sooner.
fn is_left(now: Time, origin: Epoch, cx: CallContext<'_>) -> bool {
    let Some(record) = &cx.config.record else { return false };
    now < record.counts_until(origin, cx.since, cx.config.drift) || !cx.config.rules.keep(Rule::RestChecked)
}
