//! The supply of a resource: its capacity, from the configuration at a root, by a lease from the node above elsewhere.
//!
//! A grant of a node ends before its own lease does. It asks for the demand curve of all below it and reports as held
//! what it has out. A leader that succeeds another does not ask before its predecessor is certainly silent. Nor before
//! those who hold from that one have claimed what they have, or some time has passed: the node above still counts the
//! demand of its predecessor, and would take away what seems not to be wanted any more.

use std::time::Duration;

use lessor_client::internals::allowance::Allowance;
use lessor_proto::message::{Band, Bands};
use lessor_proto::{Amount, Drift, Time};

use super::holders::Claimed;
use super::slab::Slot;
use super::{CallContext, Resource, aggregate};
use crate::config::NodeConfig;
use crate::ledger::{Ghost, Ledger, Part};
use crate::mutation::Rule;

/// The longest that a successor waits for claims.
const LONGEST_SILENCE: Duration = Duration::from_secs(2);
/// Claims are complete enough when so much of the ghost is left, as a fraction.
const UNCLAIMED: u64 = 32;

/// The supply of one resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Supply {
    source: SupplySource,
    /// Whether the node above was asked for it.
    is_asked: bool,
    /// Whether the leader of the node above is the one that granted what leaders of this node had before; absent until it
    /// has granted something.
    is_counted_above: Option<bool>,
    /// The node above has not been told what is wanted since that changed.
    wants_news: bool,
}

/// Where the capacity comes from.
#[derive(Clone, Copy, Debug)]
enum SupplySource {
    /// From the template.
    Configured,
    /// From the node above.
    Leased {
        /// When the lease ends.
        until: Time,
        /// The amount of it.
        granted: Amount,
        /// When claims open.
        opens: Time,
        /// Until when the node above is not asked, unless most of the ghost is claimed before.
        silent_until: Time,
        /// The rest of the ghost at which most of it counts as claimed.
        unclaimed: Amount,
    },
}

// === impl Supply ===

impl Supply {
    /// Out of the configuration.
    pub(super) fn configured() -> Supply {
        Supply::new(SupplySource::Configured)
    }

    /// Out of a lease of which nothing has come yet, beside what `ledger` counts from before.
    pub(super) fn leased(cx: CallContext<'_>, ledger: &Ledger, longest_lease: Duration) -> Supply {
        let silence = match ledger.ghost() {
            Amount::ZERO => Duration::ZERO,
            _ => LONGEST_SILENCE.min(longest_lease / 4),
        };
        let opens = cx.opens();
        Supply::new(SupplySource::Leased {
            until: Time::ZERO,
            granted: Amount::ZERO,
            opens,
            silent_until: opens + silence,
            unclaimed: Amount::from_micros(ledger.ghost().as_micros() / UNCLAIMED),
        })
    }

    fn new(source: SupplySource) -> Supply {
        Supply { source, is_asked: false, is_counted_above: None, wants_news: true }
    }

    pub(super) fn is_leased(&self) -> bool {
        matches!(self.source, SupplySource::Leased { .. })
    }

    /// When the lease ends that it is handed out of; never where it is configured.
    pub(super) fn until(&self) -> Time {
        match self.source {
            SupplySource::Configured => Time::MAX,
            SupplySource::Leased { until, .. } => until,
        }
    }

    /// Whether the node above was asked for it.
    pub(super) fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Nothing of the lease from above is handed out any more: the node above is asked as if it had not been.
    pub(super) fn forgo(&mut self) {
        self.is_asked = false;
        if let SupplySource::Leased { granted, .. } = &mut self.source {
            *granted = Amount::ZERO;
        }
    }

    /// Whether the leader of the node above is known to be the one that granted what leaders of this node had before.
    pub(super) fn is_counted_above(&self) -> bool {
        self.is_counted_above == Some(true)
    }

    /// The demand of all below has changed.
    pub(super) fn note_wants(&mut self) {
        self.wants_news = true;
    }

    /// When the node above may be asked at the latest, if it has not been.
    pub(super) fn due_above(&self) -> Option<Time> {
        match self.source {
            SupplySource::Leased { silent_until, .. } if !self.is_asked => Some(silent_until),
            _ => None,
        }
    }

    /// The length that a lease of `length`, counted from `basis`, may have; nothing if there is nothing to hand
    /// out.
    ///
    /// A shorter one is cut to whole eighths of `length`, so that the same is granted for a while and renewals need
    /// not say how long they are; or by whole steps, where an eighth would be too much.
    pub(super) fn length(
        &self,
        now: Time,
        basis: Time,
        (length, step): (Duration, Option<Duration>),
        drift: Drift,
    ) -> Option<Duration> {
        let SupplySource::Leased { until, .. } = self.source else { return Some(length) };
        if until <= now {
            return None;
        }
        let longest = drift.length_until(basis, until);
        if longest >= length {
            return Some(length);
        }
        let step = step.unwrap_or(length / 8);
        let steps = (length - longest).as_nanos().div_ceil(step.as_nanos().max(1));
        let cut = u32::try_from(steps).ok().and_then(|steps| step.checked_mul(steps));
        let whole = length.saturating_sub(cut.unwrap_or(length));
        Some(if whole.is_zero() { longest } else { whole }).filter(|length| !length.is_zero())
    }
}

// === impl Resource ===

impl Resource {
    /// Whether the capacity comes from the node above.
    pub(crate) fn is_leased(&self) -> bool {
        self.supply.is_leased()
    }

    /// Counts what leaders of this node before have left in use, as the node above says with its first grant to a leader that
    /// has no record of it.
    pub(crate) fn inherit(&mut self, before: (Amount, Time)) {
        let (amount, end) = before;
        if self.is_leased() && self.ledger.total() == 0 && self.ledger.ghost_end() < end {
            self.ledger.haunt(Ghost::new(Part { amount, end }, Part::default()));
        }
    }

    /// The leader of the node above is the one that granted what leaders of this node had before, or another. If it counts
    /// no more than `counted`, which is less than what has been claimed here of a gauge, nobody above counts the units in
    /// flight: whoever has them keeps its lease until that ends, and no longer.
    pub(crate) fn note_grantor(
        &mut self,
        now: Time,
        is_the_same: bool,
        counted: Option<Amount>,
        drift: Drift,
    ) {
        let is_first = self.supply.is_counted_above.is_none();
        let is_same = *self.supply.is_counted_above.get_or_insert(is_the_same);
        let is_less = counted.is_some_and(|counted| u128::from(counted.as_micros()) < self.ledger.lent())
            && self.ledger.rules().keep(Rule::ShownIsAll);
        if !is_first || is_same || !is_less || !self.may_have_units_out() {
            return;
        }
        let end = drift.grantor_end(now, self.terms.lease_length);
        let claimants =
            self.holders.children().iter_slots().filter(|(_, child)| child.claimed != Claimed::Nothing);
        let claimants: Vec<Slot> = claimants.map(|(slot, _)| slot).collect();
        for slot in claimants {
            self.holders.at_mut(slot).claimed = Claimed::Less;
            self.claims.silence(slot, end);
        }
    }

    /// The node above allows this much from here on. Until `learns_until` it learns what is out, [`Time::MAX`] where it has
    /// not said, if it does.
    pub(crate) fn lease(&mut self, allowance: Allowance, learns_until: Option<Time>) {
        if self.learning.set_above(learns_until) {
            self.owe_all();
        }
        if let SupplySource::Leased { until, granted, .. } = &mut self.supply.source {
            *until = allowance.until;
            *granted = allowance.capacity.unwrap_or(Amount::MAX);
            let limit = self.limit();
            // Who was granted something is renewed with its next heartbeat; who was granted nothing waits for this.
            self.pusher.resume();
            let is_owed = self.pusher.listeners().is_anybody_owed();
            self.pusher.unsettle_if(self.ledger.limit() != limit || is_owed);
            if limit > self.ledger.limit() {
                self.pusher.shortage_mut().note_raise();
            }
            self.ledger.set_limit(limit);
            self.divide();
        }
    }

    /// The most that may be out: what the template says, or the lease from above. Where no template covers the resource it is
    /// nothing, whatever the node above grants.
    pub(super) fn limit(&self) -> Option<Amount> {
        match self.supply.source {
            _ if !self.hands_out() => Some(Amount::ZERO),
            SupplySource::Leased { granted, .. } => Some(granted),
            SupplySource::Configured => self.terms.policy.is_bounded().then(|| self.terms.shared()),
        }
    }

    /// Whether a template covers the resource.
    fn hands_out(&self) -> bool {
        let is_leased = self.is_leased() && !self.ledger.rules().keep(Rule::CoveredLease);
        self.terms.is_covered() || is_leased
    }

    /// The template says from here on that the sum is limited: below another node the capacity is a lease.
    pub(super) fn ask_for_lease(&mut self, cx: CallContext<'_>) {
        if cx.config.parent.is_some() && !self.is_leased() {
            self.supply = Supply::leased(cx, &self.ledger, self.terms.lease_length);
            // The node above knows what is out.
            self.learning.end_at(cx.since);
            self.supply.forgo();
        }
    }

    /// Whether the node above may be asked.
    pub(crate) fn speaks(&self, now: Time) -> bool {
        match self.supply.source {
            SupplySource::Configured => false,
            SupplySource::Leased { opens, silent_until, unclaimed, .. } => {
                let claimed = now >= opens && self.ledger.ghost() <= unclaimed;
                self.supply.is_asked || now >= silent_until || claimed
            }
        }
    }

    /// The node above is asked from here on. Returns whether it was not before.
    pub(crate) fn ask_above(&mut self) -> bool {
        !std::mem::replace(&mut self.supply.is_asked, true)
    }

    /// Whether what is wanted has changed since this was last asked.
    pub(crate) fn take_wants_news(&mut self) -> bool {
        std::mem::take(&mut self.supply.wants_news)
    }

    /// The wants of all below together, as the buckets of their demand curves: no more than a report may have.
    pub(crate) fn bands(&self, most_buckets: usize) -> Bands {
        let mut bands = Bands::new();
        for priority in self.holders.shares().priorities().filter(|_| self.hands_out()) {
            let curve = self.holders.shares().curve(priority);
            bands.extend(curve.demands(priority).map(|demand| Band {
                priority,
                subclients: demand.weight,
                wants: demand.wants,
            }));
        }
        if bands.is_empty() {
            bands.push(Band::NOTHING);
        }
        aggregate::fitted(bands, most_buckets)
    }

    /// The amounts that those below have shown to have from earlier leaders, as far and as long as the node above
    /// counts them for certain. Before that one has granted something, nothing else is out that is known.
    pub(crate) fn inherited(&self, now: Time, config: &NodeConfig) -> Vec<(Amount, Time)> {
        let shown = self.outstanding().saturating_sub(self.ledger.ghost());
        let end = self.ledger.ghost_end();
        if !config.rules.keep(Rule::InheritShown) {
            return vec![(self.outstanding(), end)];
        }
        if !config.rules.keep(Rule::InheritLasting) {
            return vec![(shown, end)];
        }
        self.claims.counted_above(now, shown)
    }

    /// The amount that may be in use below, in all.
    pub(crate) fn outstanding(&self) -> Amount {
        Amount::from_micros(u64::try_from(self.ledger.total()).unwrap_or(u64::MAX))
    }

    /// Divides what can be handed out: the limit without what may be out and is not known to whom, and without what
    /// claimants do not want of their claims where nobody else can have that.
    pub(super) fn reshare(&mut self) {
        self.pusher.unsettle();
        self.divide();
    }

    /// The same where nobody has to hear of it.
    pub(super) fn divide(&mut self) {
        if self.holders.shares().policy().is_bounded()
            && let Some(amount) = self.shareable()
        {
            let idle = |(slot, kept): (Slot, Amount)| kept.saturating_sub(self.kept(slot));
            let idle = self.claims.all_deferred().map(idle).fold(Amount::ZERO, Amount::saturating_add);
            let amount = amount.saturating_sub(idle);
            self.holders.set_capacity(amount, self.terms.legacy_max_fraction.of(amount));
        }
    }

    /// The sum that grants can still reach, or that they may reach again. A successor of the node above, which leases less than may be
    /// out, counts what is left from before by itself, and not as a part of the lease: the claimants share all of that.
    fn shareable(&self) -> Option<Amount> {
        let is_beside = self.supply.is_counted_above == Some(false) && self.ledger.in_debt();
        if is_beside { self.ledger.limit() } else { self.ledger.shareable() }
    }
}
