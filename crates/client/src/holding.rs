//! One resource as we hold it: what was granted, until when, and what is left when that has ended.
//!
//! Two rules keep a holder honest. A grant is adopted only if its order is above every order adopted before, so that
//! late and doubled messages change nothing. And what a report promises (`held`) is kept from the moment the report is
//! made, before it leaves: from then on the use under that grant never rises again.

use std::sync::Arc;
use std::time::Duration;

use lessor_proto::message::{Bands, BoundBy, Grant, Order, UseWindow};
use lessor_proto::{Amount, Epoch, Time};

pub use self::config::{Fallback, HoldingConfig, Kind, Rung, Surplus};
use self::cover::Cover;
use self::unsaid::UnsaidUnits;
use crate::allowance::Allowance;
use crate::fault::Fault;

mod config;
mod cover;
mod reporting;
#[cfg(test)]
mod tests;
mod unsaid;

/// The proof that a lease was granted, so that a successor of its holder can show it too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proof {
    /// Which grant it was.
    pub order: Order,
    /// The token that came with it; empty if none did.
    pub token: Arc<[u8]>,
}

/// The lease that a new leader of a node has from the ones before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inheritance {
    /// The kind as which it was granted.
    pub kind: Kind,
    /// The amounts that the one who granted it counts for certain, each until its time: no more is shown to a successor of
    /// that one.
    pub counted: Vec<(Amount, Time)>,
    /// The proof that they are shown with.
    pub proof: Proof,
}

/// A lease, and the rungs below it.
#[derive(Clone, Debug)]
pub(crate) struct Holding {
    config: HoldingConfig,
    lease: Option<Lease>,
    /// The amounts that a grantor still counts for certain, under the leases that have not ended: the larger the
    /// sooner it ends.
    cover: Cover,
    /// The highest order ever adopted.
    adopted: Option<Order>,
    /// The terms of the last grant that was adopted.
    terms: AdoptedTerms,
    /// Whether the last lease bounds the safe capacity: not if the rule is taken out.
    is_bounded: bool,
    /// The amount that cannot be given up at this moment: units in use of a gauge, what a node has handed out. It
    /// is no less than that since the program was last allowed less.
    in_use: Amount,
    /// The least lease that would have let the last attempts through; absent: nothing is to be lent.
    peak: Option<f64>,
    reporting: ReportState,
    /// The most that the grantor counts as far as we know: what the last report promised, or what was granted since.
    counted: Amount,
    /// The amount that the lease gave beyond what was wanted, where that is kept.
    spare: Amount,
    /// The proof of the last grant that had ended when it came. Its grantor counts it until it is shown.
    passed_over: Option<Proof>,
}

/// The report that was made last of a lease, and what calls for the next.
#[derive(Clone, Debug, Default)]
struct ReportState {
    /// The bands and the peak of the last report.
    reported: Option<(Bands, Option<f64>)>,
    /// Whether the grantor waits for a report of this lease.
    ack_wanted: bool,
    /// Whether more is to be given back of this lease than could be when the wants fell, because it was in use.
    returning: bool,
    /// The units that were asked for while everything was let pass, once there have been any.
    unsaid: Option<Box<UnsaidUnits>>,
    /// Whether the last report said such units, if only that there were none.
    says_units: bool,
}

/// The terms of a grant, beside the lease that it is.
#[derive(Clone, Copy, Debug, Default)]
struct AdoptedTerms {
    /// The safe capacity, in units; -1 is without limit. No more of it is used than the last lease gave.
    safe_capacity: Option<f64>,
    /// The amount to ask for of the floor, in units; absent: there is none.
    floor: Option<f64>,
    /// The burst that may be saved up.
    burst: Option<Duration>,
    /// When a unit is due, of a lease that is too small to save one up.
    due: Option<Time>,
    /// The window in which each unit is a use.
    window: Option<UseWindow>,
    /// Whether everything is let pass.
    unenforced: bool,
    /// Whether a second limit is tried.
    beside: bool,
}

#[derive(Clone, Debug)]
struct Lease {
    /// The amount that was granted, or less if less was promised since.
    amount: Amount,
    end: Time,
    /// The length that it was granted for; zero if that is not known.
    length: Duration,
    order: Option<Order>,
    token: Arc<[u8]>,
    /// The amount of the lease before it, which had ended, if this one does not take its place: a server that is
    /// learning grants nothing by it.
    outlived: Option<Amount>,
    /// Until when its grantor learns what is out, [`Time::MAX`] where that was not said; absent: it does not learn.
    learns_until: Option<Time>,
    /// The bound of the amount, as its grantor says.
    bound_by: Option<BoundBy>,
}

// === impl Lease ===

impl Lease {
    /// A lease that gives nothing, and only shows which grant was the last.
    fn of_nothing(order: Order, token: Arc<[u8]>) -> Lease {
        let (amount, end, length) = (Amount::ZERO, Time::ZERO, Duration::ZERO);
        Lease {
            amount,
            end,
            length,
            order: Some(order),
            token,
            outlived: None,
            learns_until: None,
            bound_by: None,
        }
    }
}

// === impl AdoptedTerms ===

impl AdoptedTerms {
    /// Those of `grant`; when a unit is due is said by our clock, and not by it.
    fn of(grant: &Grant) -> AdoptedTerms {
        let limited = grant.safe_capacity.filter(|&safe| safe >= 0.0);
        AdoptedTerms {
            // Advice is for those who have no floor.
            safe_capacity: grant.safe_capacity.filter(|_| !grant.safe_leased),
            floor: grant.safe_leased.then(|| limited.unwrap_or(Amount::MAX.as_f64())),
            burst: grant.burst,
            due: None,
            window: grant.window,
            unenforced: grant.unenforced,
            beside: grant.beside,
        }
    }
}

// === impl Holding ===

impl Holding {
    pub(crate) fn new(config: HoldingConfig) -> Holding {
        Holding {
            config,
            lease: None,
            cover: Cover::default(),
            adopted: None,
            terms: AdoptedTerms::default(),
            is_bounded: true,
            in_use: Amount::ZERO,
            peak: None,
            reporting: ReportState::default(),
            counted: Amount::ZERO,
            spare: Amount::ZERO,
            passed_over: None,
        }
    }

    /// Holds it differently from here on. The lease stays, but of another kind it gives nothing.
    pub(crate) fn reconfigure(&mut self, config: HoldingConfig) {
        if config.kind != self.config.kind {
            // Units a second are no units in use: nothing is used of it as the other kind, which is said at once.
            self.lease.iter_mut().for_each(|lease| lease.amount = Amount::ZERO);
            self.reporting.reported = None;
        }
        self.config = config;
    }

    /// The amount that may be used at `now`, and the time until which it may be if nothing else happens. What the grantor said last
    /// of enforcing and of a second limit holds until it says something else, also without a lease.
    pub(crate) fn allowance(&self, now: Time) -> Allowance {
        let AdoptedTerms { unenforced, beside, .. } = self.terms;
        Allowance { unenforced, beside, ..self.spendable(now) }
    }

    fn spendable(&self, now: Time) -> Allowance {
        let lease = self.lease.as_ref();
        match self.rung(now) {
            Rung::Waiting | Rung::Pessimistic => Allowance::NOTHING,
            Rung::Leased => lease.map_or(Allowance::NOTHING, |lease| {
                self.saving(Allowance::new(Some(lease.amount), lease.end))
            }),
            Rung::Optimistic => {
                lease.map_or(Allowance::NOTHING, |lease| self.saving(forever(Some(lease.amount))))
            }
            Rung::Safe => self.terms.safe_capacity.map_or(Allowance::NOTHING, |safe| {
                let unlimited = (safe + 1.0).abs() < 1e-9;
                let advice = (!unlimited).then(|| Amount::from_f64(safe));
                let last = lease.map(|lease| lease.outlived.unwrap_or(lease.amount));
                let bound = last.filter(|_| self.is_bounded);
                self.saving(forever(advice.into_iter().chain(bound).min()))
            }),
        }
    }

    /// With what the grantor said of saving up.
    fn saving(&self, allowance: Allowance) -> Allowance {
        Allowance { burst: self.terms.burst, due: self.terms.due, window: self.terms.window, ..allowance }
    }

    /// Whether units are asked for, where there is somebody to ask: the lease is too small to save one up, by its grantor.
    pub(crate) fn is_small(&self) -> bool {
        self.terms.due.is_some()
    }

    /// A unit of the lease that was just adopted is due then.
    pub(crate) fn set_due(&mut self, due: Option<Time>) {
        self.terms.due = due;
    }

    pub(crate) fn rung(&self, now: Time) -> Rung {
        let Some(lease) = &self.lease else { return Rung::Waiting };
        if now < lease.end && lease.outlived.is_none() {
            return Rung::Leased;
        }
        match self.config.fallback {
            Fallback::Safe if self.terms.safe_capacity.is_some() => Rung::Safe,
            Fallback::Safe | Fallback::Pessimistic => Rung::Pessimistic,
            Fallback::Optimistic => Rung::Optimistic,
        }
    }

    /// When the lease ends, if it has not.
    pub(crate) fn end(&self, now: Time) -> Option<Time> {
        self.lease.as_ref().map(|lease| lease.end).filter(|&end| now < end)
    }

    /// When the lease ends, or has ended.
    pub(crate) fn last_end(&self) -> Option<Time> {
        self.lease.as_ref().map(|lease| lease.end)
    }

    /// The amount that is held under the lease: nothing after its end, except by optimists.
    pub(crate) fn held(&self, now: Time) -> Amount {
        match self.rung(now) {
            Rung::Leased | Rung::Optimistic => self.lease.as_ref().map_or(Amount::ZERO, |lease| lease.amount),
            Rung::Waiting | Rung::Safe | Rung::Pessimistic => Amount::ZERO,
        }
    }

    /// The wants of all bands together.
    pub(crate) fn wants(&self) -> f64 {
        sum(&self.config.bands)
    }

    /// The amount to ask for of its floor, if it has one that would be used.
    pub(crate) fn wants_floor(&self) -> Option<f64> {
        self.terms.floor.filter(|_| self.config.kind == Kind::Rate && self.config.fallback == Fallback::Safe)
    }

    /// The way in which it is held.
    pub(crate) fn config(&mut self) -> &mut HoldingConfig {
        &mut self.config
    }

    /// Sets the claim on capacity that nobody wants, in units a second.
    pub(crate) fn set_peak(&mut self, peak: Option<f64>) {
        self.peak = peak.map(|peak| if peak > 0.0 { peak.min(f64::MAX) } else { 0.0 });
    }

    pub(crate) fn set_in_use(&mut self, in_use: Amount) {
        self.in_use = in_use;
    }

    /// As much as `allowed` may have been taken of a gauge before the program was allowed less, until it says what is in use.
    pub(crate) fn presume_in_use(&mut self, allowed: Amount) {
        if self.config.kind == Kind::Gauge {
            self.in_use = self.in_use.max(allowed);
        }
    }

    /// Whether nothing is wanted, held or used, and the last report said that nothing is wanted, and showed the last grant.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        let idle = self.wants() <= 0.0 && self.held(now) == Amount::ZERO && self.in_use == Amount::ZERO;
        idle && self.passed_over.is_none() && !self.demand_has_changed()
    }

    /// The epoch under which something is held, or counted, that has not ended.
    pub(crate) fn epoch(&self, now: Time) -> Option<Epoch> {
        self.cover.counts(now).then(|| self.order())?.map(|order| order.epoch)
    }

    /// Takes over what others have held before, unless something was granted already: it may not be used, and is
    /// shown to a successor of the one who granted it.
    pub(crate) fn inherit(&mut self, inheritance: Inheritance) {
        let Inheritance { kind, counted, proof: Proof { order, token } } = inheritance;
        if self.lease.is_none() {
            self.adopted = Some(order);
            self.cover = Cover::inherited(counted, &token, kind);
            self.lease = Some(Lease::of_nothing(order, token));
        }
    }

    /// The proof of the last lease.
    pub(crate) fn proof(&self) -> Option<Proof> {
        let lease = self.lease.as_ref()?;
        Some(Proof { order: lease.order?, token: Arc::clone(&lease.token) })
    }

    /// Whether less is held than is wanted.
    pub(crate) fn is_short(&self, now: Time) -> bool {
        self.held(now) < self.as_amount(self.wants())
    }

    /// Takes up `grant`, which lasts until `end`.
    ///
    /// # Errors
    /// When it is not above what was adopted before, or has ended: nothing is changed of what is held. That it has ended is
    /// shown by a report when nothing is held.
    pub(crate) fn adopt(&mut self, now: Time, grant: Grant, end: Time) -> Result<(), Fault> {
        if let (Some(found), Some(adopted)) = (grant.order, self.adopted)
            && found <= adopted
        {
            return Err(Fault::Stale { found, adopted });
        }
        if end <= now {
            let proof = grant.order.map(|order| Proof { order, token: grant.token.into() });
            self.passed_over = proof.or(self.passed_over.take());
            return Err(Fault::Ended);
        }
        self.passed_over.take_if(|passed| grant.order >= Some(passed.order));
        let outlived = self.outlived(now, &grant);
        self.adopted = grant.order.or(self.adopted);
        self.terms = AdoptedTerms { due: self.terms.due, ..AdoptedTerms::of(&grant) };
        self.reporting.returning = false;
        self.spare = match self.config.surplus {
            Surplus::Keep => grant.capacity.saturating_sub(self.reported_wants()),
            Surplus::Return | Surplus::ReturnParts(_) | Surplus::Yield => Amount::ZERO,
        };
        self.reporting.ack_wanted = grant.ack_wanted;
        // Without an order there are no promises to be made.
        self.counted = grant.order.map_or(Amount::ZERO, |_| self.counted.max(grant.capacity));
        let token: Arc<[u8]> = grant.token.into();
        self.cover.add(now, (grant.capacity, end), Arc::clone(&token), self.config.kind);
        let learns_until = grant.learning.then(|| grant.learning_left.map_or(Time::MAX, |left| now + left));
        let (amount, length, bound_by) = (grant.capacity, grant.length, grant.bound_by);
        let order = grant.order;
        self.lease = Some(Lease { amount, end, length, order, token, outlived, learns_until, bound_by });
        Ok(())
    }

    /// Shows the grant that had ended when it came as the last one, where nothing is held: its grantor need not count it, nor
    /// any before it. It gives nothing.
    fn show_passed_over(&mut self, now: Time) {
        if self.held(now) > Amount::ZERO {
            return;
        }
        let Some(Proof { order, token }) = self.passed_over.take() else { return };
        if self.adopted >= Some(order) {
            return;
        }
        self.adopted = Some(order);
        match &mut self.lease {
            Some(lease) => (lease.order, lease.token) = (Some(order), token),
            None => self.lease = Some(Lease::of_nothing(order, token)),
        }
    }

    /// Until when the server that granted last learns what is out, [`Time::MAX`] where it has not said; absent: it was not
    /// learning.
    pub(crate) fn learns_until(&self) -> Option<Time> {
        self.lease.as_ref().and_then(|lease| lease.learns_until)
    }

    /// The bound of the last lease's amount, if the server that granted it says so.
    pub(crate) fn bound_by(&self) -> Option<BoundBy> {
        self.lease.as_ref().and_then(|lease| lease.bound_by)
    }

    /// The amount of the last lease, which has ended, if `grant` does not take its place: a server that is learning
    /// does not know what is out, and one who lives on what is safe goes on with that until the server does.
    fn outlived(&self, now: Time, grant: &Grant) -> Option<Amount> {
        let is_empty = grant.learning && grant.capacity == Amount::ZERO;
        let lease = self.lease.as_ref().filter(|_| is_empty && self.config.fallback == Fallback::Safe)?;
        lease.outlived.or((lease.end <= now).then_some(lease.amount))
    }

    /// The amount that a report to the leader of `epoch` shows, when it promises `promise`, with the token for it;
    /// nothing if that leader has granted the lease itself.
    ///
    /// A successor is shown what its predecessor counted at the least. That may be more than the lease gives, as a
    /// larger one before it has not ended; and it is never more, though a node may have that much out by its own
    /// careful count. Once that is said, a later successor may count no more than the promise.
    fn counted_before(
        &mut self,
        now: Time,
        promise: Amount,
        epoch: Option<Epoch>,
    ) -> Option<(Amount, Arc<[u8]>)> {
        let order = self.lease.as_ref().and_then(|lease| lease.order);
        let succeeded = order.is_some_and(|order| epoch > Some(order.epoch));
        let first = self.cover.promise(now, promise);
        succeeded.then(|| first.unwrap_or_default())
    }

    /// The grant `order` lasts until `end`, if that is later than it did. Returns whether it is the lease we have, and has
    /// not ended: what has ended may have been reported so, and given to others.
    pub(crate) fn extend(&mut self, now: Time, order: Order, end: Time) -> bool {
        // Of a lease of nothing, nothing can have been given to others.
        let live = |lease: &&mut Lease| {
            lease.order == Some(order) && (now < lease.end || lease.amount == Amount::ZERO)
        };
        match self.lease.as_mut().filter(live) {
            Some(lease) => {
                lease.end = lease.end.max(end);
                let counted = (lease.amount, lease.end);
                self.cover.add(now, counted, Arc::clone(&lease.token), self.config.kind);
                true
            }
            None => false,
        }
    }

    /// Brings the end of the lease forward by time that passed unseen.
    pub(crate) fn lose_time(&mut self, lost: Duration) {
        self.cover.lose_time(lost);
        if let Some(lease) = &mut self.lease {
            lease.end = lease.end.earlier(lost);
        }
    }

    /// Which grant the lease is.
    pub(crate) fn order(&self) -> Option<Order> {
        self.lease.as_ref().and_then(|lease| lease.order)
    }

    /// The amount that the lease gives, whether it has ended or not.
    pub(crate) fn amount(&self) -> Amount {
        self.lease.as_ref().map_or(Amount::ZERO, |lease| lease.amount)
    }

    /// Takes back what was given back: a rule taken out.
    pub(crate) fn break_promise(&mut self, amount: Amount) {
        if let Some(lease) = &mut self.lease {
            lease.amount = amount;
        }
    }

    /// Uses all of the safe capacity, also above the last lease: a rule taken out.
    pub(crate) fn break_bound(&mut self) {
        self.is_bounded = false;
    }

    /// Forgets what was adopted: a rule taken out.
    pub(crate) fn forget_order(&mut self) {
        self.adopted = None;
    }
}

fn forever(capacity: Option<Amount>) -> Allowance {
    Allowance::new(capacity, Time::MAX)
}

fn sum(bands: &Bands) -> f64 {
    bands.iter().map(|band| band.wants).sum()
}
