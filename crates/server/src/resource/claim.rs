//! Claims: what holders show of what they have from earlier leaders, as far as it is believed.
//!
//! Once for each holder, with the first report that shows something, and for a node once for all its leaders. What is claimed is taken out of
//! the ghost, so all claims together are no more than was out; each one alone is no more than its token says. What a
//! claimant gives up later is free, or goes back to the ghost: then it does not matter to others who lied.
//!
//! So claim those who say which life of theirs speaks, and which leader they speak to. Of others [`super::poller`] tells.

use std::time::Duration;

use lessor_proto::message::{Ask, Has, HolderKind, Report};
use lessor_proto::{Amount, Epoch, Time};

use super::holders::{Child, Claimed};
use super::identity::holder;
use super::slab::Slot;
use super::{CallContext, Resource};
use crate::config::{Claims, NodeConfig};
use crate::ledger::{Ceiling, GhostOrigin};
use crate::mutation::Rule;
use crate::repository::{Kind, Legacy, Template};
use crate::token::{Bearer, Doubt, PolledLease};

/// Whether a report shows that the holder has something from an epoch before `epoch`.
pub(crate) fn shows_earlier(report: &Report, epoch: Epoch) -> bool {
    report.has.as_ref().is_some_and(|has| is_earlier(has, epoch))
}

/// Whether it is something from an epoch before `epoch`.
fn is_earlier(has: &Has, epoch: Epoch) -> bool {
    has.capacity > Amount::ZERO && has.order.is_some_and(|order| order.epoch < epoch)
}

/// Whether what those have who draw no incarnation counts until they are heard of.
pub(super) fn counts_until_heard(terms: &Template) -> bool {
    matches!(terms.legacy, Legacy::Sticky { .. })
}

/// The Unix time, in seconds, at which the lease ends that a poller shows: the least of what it says and its token.
pub(super) fn ends_at(has: &Has) -> u64 {
    PolledLease::read(&has.token).map_or(has.expiry, |lease| lease.expiry.min(has.expiry))
}

/// The time by which the dates of servers that follow each other may differ, beside the margin of charges: a lease of which no more
/// is left may be over. Whoever keeps to its refresh interval shows more.
const DATES_APART: Duration = Duration::from_secs(1);

/// The longest time for which a lease is believed to last by what its holder says, who may say anything.
pub(super) const MOST_SHOWN: Duration = Duration::from_secs(3_600);

// === impl CallContext ===

impl CallContext<'_> {
    /// When claims open: no leader of an earlier epoch acts any more.
    pub(crate) fn opens(&self) -> Time {
        self.config.record.as_ref().map_or(self.since, |record| record.opens(self.since, self.config.drift))
    }

    /// Whether nobody knows until when a leader before this one may grant out of what was out under it: there is no record, or
    /// it does not tell.
    fn is_unsure(&self) -> bool {
        self.config.record.as_ref().is_none_or(|record| record.unsure)
    }
}

/// Whether a lease of the epoch `epoch` may be a part of what is out by the record: below another node nothing is that was
/// granted before the line of succession which the record is of. That one charges it to whoever bore the name before.
pub(super) fn is_of_record(epoch: Epoch, config: &NodeConfig) -> bool {
    let first = config.record.as_ref().map_or(Epoch::default(), |record| record.first_epoch);
    config.parent.is_none() || epoch >= first || !config.rules.keep(Rule::ClaimInLine)
}

/// The part of what the bearer shows of an earlier epoch that is believed, and who granted it.
fn believed(bearer: &Bearer<'_>, has: &Has, config: &NodeConfig) -> Result<(Amount, GhostOrigin), Doubt> {
    if has.capacity == Amount::ZERO {
        return Ok((Amount::ZERO, GhostOrigin::Earlier));
    }
    let Some(order) = has.order.filter(|order| order.epoch < config.epoch) else {
        return Err(Doubt::NotEarlier);
    };
    let Some(keys) = &config.keys else {
        let trusted = config.trust_claims && config.record.is_some();
        return if trusted { Ok((has.capacity, origin(order.epoch, config))) } else { Err(Doubt::Missing) };
    };
    if !config.rules.keep(Rule::TokenCheck) {
        return Ok((has.capacity, origin(order.epoch, config)));
    }
    let content = keys.open(bearer, &has.token)?;
    if content.order.epoch >= config.epoch {
        return Err(Doubt::NotEarlier);
    }
    if !is_of_record(content.order.epoch, config) {
        return Err(Doubt::BeforeRecord);
    }
    let origin = origin(content.order.epoch, config);
    if !config.rules.keep(Rule::TokenAmount) {
        return Ok((has.capacity, origin));
    }
    Ok((content.amount.min(has.capacity), origin))
}

/// Whether the leader of the epoch `epoch`, which charged something, is the last one.
pub(super) fn origin(epoch: Epoch, config: &NodeConfig) -> GhostOrigin {
    let last = config.record.as_ref().map_or(Epoch::default(), |record| record.epoch);
    if epoch == last { GhostOrigin::Last } else { GhostOrigin::Earlier }
}

// === impl Resource ===

impl Resource {
    /// Charges a holder for what it has from an earlier epoch: out of what is known to be out, or while learning as
    /// far as the capacity goes.
    pub(super) fn claim(
        &mut self,
        now: Time,
        slot: Slot,
        has: &Has,
        held: Option<Amount>,
        cx: CallContext<'_>,
    ) {
        if has.order.is_some_and(|order| order.epoch == cx.config.epoch) {
            return;
        }
        let held = held.unwrap_or(has.capacity);
        if self.is_learning(now) {
            if now < cx.opens() || self.has_ended(now, slot, has, cx) {
                return;
            }
            return self.learn_of(now, slot, has, held, cx);
        }
        // Without a record nobody knows how long a leader before may go on: what is out may be in use again below it.
        let ended = now >= self.ledger.ghost_end() || now < cx.opens() || cx.is_unsure();
        // Those who draw no incarnation claim in two steps.
        let may_claim = self.holders.at(slot).flags.incarnated;
        if ended || has.order.is_none() || !may_claim {
            return;
        }
        if self.is_late(cx) {
            let end = cx.config.drift.grantor_end(now, self.remaining(slot, has));
            return self.claims.silence(slot, end);
        }
        if has.order.is_some_and(|order| !is_of_record(order.epoch, cx.config)) {
            self.holders.at_mut(slot).claimed = Claimed::Less;
            return self.claims.doubt(Doubt::BeforeRecord);
        }
        let child = self.holders.at(slot);
        let (claimed, origin) = match believed(&self.bearer(child, cx.config), has, cx.config) {
            Ok(believed) => believed,
            Err(doubt) => return self.claims.doubt(doubt),
        };
        if claimed < has.capacity {
            self.claims.doubt(Doubt::TooLarge);
        }
        // Who takes it for a rate by now may have given back a part of a unit.
        let claimed = self.in_whole_units(claimed);
        // All that it may have used so far is known from here on, and what it gives back of it is free.
        let taken = self.charge(slot, |ledger, account| ledger.claim(account, claimed, 0, origin));
        let is_all = taken >= claimed || !cx.config.rules.keep(Rule::LineIsPart);
        self.holders.at_mut(slot).claimed = if is_all { Claimed::All } else { Claimed::Less };
        self.claims.honour(has.capacity);
        if cx.config.claims == Claims::Deferred {
            self.claims.defer(slot, taken);
        }
        if self.is_leased() {
            self.note_certain(claimed, has, cx);
        }
        self.acknowledge(slot, 0, held);
    }

    /// The time for which those below the holder at `slot`, or it itself, may go on with what it shows.
    fn remaining(&self, slot: Slot, has: &Has) -> Duration {
        let shown = has.lasts.map(|lasts| lasts.remaining.min(MOST_SHOWN));
        match self.holders.at(slot).kind {
            HolderKind::Client => shown.unwrap_or(self.terms.lease_length),
            // A new leader of a node says for how long counts for certain what it inherited; those below it may go on with more,
            // for longer.
            HolderKind::Node => shown.unwrap_or_default().max(self.terms.lease_length),
        }
    }

    /// Whether the lease that a holder shows has ended, whatever it still uses of that: it may be somebody else's meanwhile, who
    /// has not been heard yet. Doorman's clients show the last one for as long as they get no other, and it has ended by its
    /// date, which those show too who forget everything else; what is sticky counts whatever clocks say.
    fn has_ended(&self, now: Time, slot: Slot, has: &Has, cx: CallContext<'_>) -> bool {
        if !cx.config.rules.keep(Rule::LearnRunning) {
            return false;
        }
        if self.holders.at(slot).flags.incarnated {
            return has.capacity == Amount::ZERO && has.lasts.is_none();
        }
        let apart = DATES_APART.min(self.terms.lease_length / 8);
        !counts_until_heard(&self.terms) && cx.date.until(now, ends_at(has)) <= apart
    }

    /// Charges a holder that has been heard before for what it has from an earlier epoch, if it has not claimed yet: what was
    /// heard first may have been sent before the election, by a leader of the node before this one, and have come late.
    pub(super) fn claim_late(&mut self, now: Time, slot: Slot, report: &Report, cx: CallContext<'_>) {
        let Some(has) = report.has.as_ref().filter(|_| shows_earlier(report, cx.config.epoch)) else {
            return;
        };
        let can_claim = self.holders.at(slot).claimed == Claimed::Nothing
            && !self.is_learning(now)
            && !self.is_late(cx)
            && cx.config.rules.keep(Rule::ClaimLate);
        if can_claim {
            self.claim(now, slot, has, report.held, cx);
        }
    }

    /// Looks whether the holder uses units of a gauge under a grant of an earlier epoch that it could not claim. Units in flight
    /// outlast a smaller lease for as long as that is renewed. So it is told nothing until they have ended by themselves.
    pub(super) fn look_at_use(&mut self, now: Time, slot: Slot, report: &Report, cx: CallContext<'_>) {
        let child = self.holders.at(slot);
        let (Some(has), Some(held)) = (&report.has, report.held) else { return };
        let charge = child.account().charge();
        if held <= charge || !child.flags.incarnated || !self.may_have_units_out() {
            return self.claims.count_use(slot);
        }
        // The grantor of this epoch has counted what it granted. A node also holds what those below have from before, which
        // it prolongs no more than this one does.
        let is_lacking = shows_earlier(report, cx.config.epoch) && held.min(has.capacity) > charge;
        if !is_lacking || !cx.config.rules.keep(Rule::UnitsCounted) {
            return;
        }
        let lasts = has.lasts;
        let remaining = lasts.map_or(Duration::ZERO, |lasts| lasts.remaining.min(MOST_SHOWN));
        let end = cx.config.drift.grantor_end(now, remaining.max(self.terms.lease_length));
        self.claims.await_end_of_use(slot, end);
    }

    /// Whether the node above, which has a new leader too, was shown what is out below before this claim. Units in flight
    /// outlast the lease that they were taken under for as long as that is renewed, and nobody would count them there. So
    /// their holder keeps the lease until that ends, and no longer.
    fn is_late(&self, cx: CallContext<'_>) -> bool {
        self.is_leased()
            && self.may_have_units_out()
            && self.supply.is_asked()
            && !self.supply.is_counted_above()
            && cx.config.rules.keep(Rule::ShownIsAll)
    }

    /// Looks at the length of the lease that a holder shows of an earlier epoch. While the server learns, it goes
    /// on for as long as others like it may last. A node below another one leaves the holder what it cannot claim,
    /// which that one charges to a leader before this one: also where the record says that nothing is out, as it
    /// says so of its own line of succession. Pollers are left it by [`Resource::keep_lease`].
    pub(super) fn look_at(&mut self, now: Time, slot: Slot, has: &Has, cx: CallContext<'_>) {
        self.learn_as_shown(now, has, cx);
        let Some(lasts) = has.lasts.filter(|_| is_earlier(has, cx.config.epoch)) else { return };
        if !self.holders.at(slot).flags.incarnated {
            return;
        }
        let record = cx.config.record.as_ref();
        let is_all =
            !cx.config.rules.keep(Rule::LineIsPart) && record.is_some_and(|record| record.knows(&self.id));
        if self.is_leased() && !is_all || record.is_some_and(|record| record.unsure) {
            let until = cx.config.drift.grantor_end(now, lasts.remaining.min(MOST_SHOWN));
            self.claims.show(now, slot, has.capacity, until);
        }
    }

    /// While the server learns, it goes on for as long as others like the lease may last that a holder shows of an earlier epoch.
    pub(super) fn learn_as_shown(&mut self, now: Time, has: &Has, cx: CallContext<'_>) {
        if let Some(length) = self.length_to_learn(now, has, cx) {
            let authority = cx.config.record.as_ref().map_or(Duration::ZERO, |record| record.authority);
            let until = cx.config.drift.grantor_end(cx.since, length.saturating_add(authority));
            self.learning.extend_as_shown(length, until);
        }
    }

    /// The length of the lease that a holder shows of an earlier epoch, while the server learns how long those may be.
    fn length_to_learn(&self, now: Time, has: &Has, cx: CallContext<'_>) -> Option<Duration> {
        let learns = self.is_learning(now) && cx.config.rules.keep(Rule::LearnAsShown);
        let lasts = has.lasts.filter(|_| learns && is_earlier(has, cx.config.epoch))?;
        Some(lasts.length.min(MOST_SHOWN))
    }

    /// Whether the holder at `slot` has more from an earlier life of this node than `amount`, and for longer than until `now`:
    /// it is not told of so little.
    pub(super) fn has_more(&self, now: Time, slot: Slot, amount: Amount) -> bool {
        self.claims.has_shown_more(now, slot, amount) && self.holders.at(slot).claimed != Claimed::All
    }

    /// Until when a report has to wait at the longest, as what it shows is charged beyond what a successor would read, or lasts
    /// for longer: until the record says that it is not known what is out, and how long that may last.
    pub(crate) fn waits_to_learn(
        &mut self,
        now: Time,
        ask: &Ask,
        report: &Report,
        cx: CallContext<'_>,
    ) -> Option<Time> {
        let is_other = |has: &&Has| has.order.is_none_or(|order| order.epoch != cx.config.epoch);
        let has = report.has.as_ref().filter(|has| has.capacity > Amount::ZERO).filter(is_other)?;
        let length = self.length_to_learn(now, has, cx).unwrap_or_default();
        let waits = self.is_learning(now)
            && (!cx.says_unknown.is_of(self.id.is_floor()) || cx.learnt_longest.of(&self.id) < length)
            && cx.config.rules.keep(Rule::LearnWritten)
            && self.holders.children().locate(holder(ask, report, cx.config)).is_none();
        if waits {
            self.learn_as_shown(now, has, cx);
        }
        waits.then_some(self.learning.until())
    }

    /// Whether what a report claims has to wait until the record says that it outlasts what is left from before.
    pub(crate) fn waits_for_room(
        &mut self,
        now: Time,
        ask: &Ask,
        report: &Report,
        cx: CallContext<'_>,
    ) -> bool {
        let is_ended = now >= self.ledger.ghost_end() || cx.is_unsure() || self.is_learning(now);
        if is_ended || now < cx.opens() || !self.says_of_rest() {
            return false;
        }
        let known = self.holders.children().locate(holder(ask, report, cx.config));
        let claims_late = cx.config.rules.keep(Rule::ClaimLate);
        if known.is_some_and(|slot| self.holders.at(slot).claimed != Claimed::Nothing || !claims_late) {
            return false;
        }
        let (Some(incarnation), Some(has)) = (ask.incarnation, &report.has) else { return false };
        let (node, name) = (&*cx.config.name, ask.holder.as_str());
        let bearer = Bearer { node, kind: ask.kind, holder: name, incarnation, resource: &self.id };
        let claimed = has.order.and_then(|_| believed(&bearer, has, cx.config).ok());
        claimed.is_some_and(|(claimed, origin)| self.lacks_room(claimed, origin))
    }

    /// Whether the record may say that something is left from before.
    pub(super) fn says_of_rest(&self) -> bool {
        let says = |ceiling: Ceiling| ceiling.lasting < ceiling.total;
        self.ledger.ghost() > Amount::ZERO && self.ledger.ceiling().is_some_and(says)
    }

    /// Whether a claim does not fit beside what is left from before. Then the next write makes room for it.
    pub(super) fn lacks_room(&mut self, claimed: Amount, origin: GhostOrigin) -> bool {
        let room = self.ledger.lacks_room(claimed, origin);
        self.claims.wait_for(room);
        room > Amount::ZERO
    }

    /// A write has made the room for those who wait, or they say so again.
    pub(crate) fn forget_room(&mut self) {
        self.claims.forget_room();
    }

    /// The bearer of a token of the child.
    pub(super) fn bearer<'a>(&'a self, child: &'a Child, config: &'a NodeConfig) -> Bearer<'a> {
        Bearer {
            node: &config.name,
            kind: child.kind,
            holder: &child.name,
            incarnation: child.life.session,
            resource: &self.id,
        }
    }

    /// The part of its claim that a claimant may keep, as nobody else would have it if it was given up.
    pub(super) fn kept(&self, slot: Slot) -> Amount {
        let Some(kept) = self.claims.deferred(slot) else { return Amount::ZERO };
        let wants = self.holders.at(slot).demands().wants();
        let wants = match self.terms.kind {
            Kind::Rate => wants,
            Kind::Gauge => wants.ceil(),
        };
        kept.min(Amount::from_f64(wants))
    }

    /// Ends the deferral of claims: the part that claimants give up from here on is free, as everything from before
    /// has ended.
    pub(super) fn end_deferral(&mut self) {
        if !self.claims.is_any_deferred() {
            return;
        }
        let slots = self.claims.end_deferral();
        self.reshare();
        self.pusher.unsettle();
        for slot in slots {
            self.rank(slot);
        }
    }

    /// The child at `slot` has promised to use no more than `held` under all grants up to `seq`.
    pub(super) fn acknowledge(&mut self, slot: Slot, seq: u64, held: Amount) {
        let held = self.in_whole_units(held);
        self.give_up(slot, self.holders.at(slot).account().charge_after(seq, held));
        self.charge(slot, |ledger, account| ledger.acknowledge(account, seq, held));
    }

    /// The amount that is charged of a gauge for what a holder says: who has units a second, from when it was a rate, may have a
    /// part of one.
    pub(super) fn in_whole_units(&self, said: Amount) -> Amount {
        match self.counted() {
            Kind::Gauge => said.ceil_to_units(),
            Kind::Rate => said,
        }
    }

    /// Lets end what has ended of what the child at `slot` is charged for. It may have promised before to use less of
    /// everything else.
    pub(super) fn expire(&mut self, now: Time, slot: Slot) {
        self.give_up(slot, self.holders.at(slot).account().charge_at(now));
        self.charge(slot, |ledger, account| ledger.expire(account, now));
    }

    /// The child at `slot` is about to be charged for no more than `left`.
    fn give_up(&mut self, slot: Slot, left: Amount) {
        self.ledger.give_back(self.claims.give_up(slot, left));
    }
}
