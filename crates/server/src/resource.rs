//! One resource: its template, who wants how much of it, and who is charged for what.
//!
//! The share of a holder follows from the wants of all; what it is granted is its share as far as the ledger has room. A
//! report updates the wants, credits what it promises, and is answered in the same step, in O(log n) of the number of
//! holders.
//!
//! Holders that listen on a stream are told what changes for them; the others find out when they ask.
//!
//! While it is *learning*, after a start, whatever may still be out from before counts as charged: holders get back what
//! they show, within the capacity, and nobody else gets anything.

mod admission;
mod aggregate;
mod answer;
mod batch;
mod books;
mod calendar;
mod certain;
mod claim;
mod claims;
mod context;
mod domains;
mod due;
mod earlier;
mod echoed;
mod enforcing;
mod explain;
mod feeding;
mod hearing;
mod holders;
mod identity;
mod idlers;
mod kind;
mod learning;
mod legacy;
mod lives;
mod need;
mod poller;
mod pressure;
mod push;
mod pusher;
mod rehearsal;
mod retry;
mod rotation;
mod said;
mod shortage;
mod shown;
mod slab;
mod spare;
mod status;
mod step;
mod streaming;
mod supply;
mod terms;
mod units;

use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::SharePolicy;
use lessor_proto::message::{Ask, Report};
use lessor_proto::{Amount, ReportId, ResourceId, Time};

use self::claims::GhostClaims;
use self::earlier::EarlierLeaders;
use self::holders::{Claimed, Holders, Moved};
use self::kind::CountedKind;
use self::learning::Learning;
use self::pusher::Pusher;
use self::spare::Lending;
use self::supply::Supply;
use self::terms::GrantTerms;
use crate::config::learning;
use crate::ledger::{Account, Ceiling, Ghost, Ledger, Part};
use crate::measured::Measurements;
use crate::mutation::Rule;
use crate::repository::Template;
use crate::streams::Peer;

pub(crate) use self::admission::takes_place;
pub(crate) use self::answer::Reply;
pub use self::books::{Books, ChildBook};
pub(crate) use self::calendar::earliest;
pub(crate) use self::claim::shows_earlier;
pub use self::claims::ClaimTally;
pub(crate) use self::context::CallContext;
pub use self::explain::{BandLevel, BandShare, Division, HolderExplanation};
pub use self::identity::ConnectionMark;
pub(crate) use self::identity::{Holder, Life, Sessions, holder, life};
pub(crate) use self::kind::check_kind;
pub(crate) use self::legacy::admit as admit_legacy;
pub(crate) use self::lives::RecalledLife;
pub use self::pressure::Pressure;
pub(crate) use self::pressure::Prominence;
use self::pressure::Saturation;
pub(crate) use self::push::Renewal;
pub(crate) use self::rehearsal::Rehearsal;
pub use self::rehearsal::RehearsedHolder;
pub(crate) use self::retry::{PROMPT, SOON};
pub(crate) use self::slab::Slot;
pub(crate) use self::status::RankedHolder;
pub use self::status::{HolderStatus, ResourceStatus};
pub use crate::domain_sync::{DomainStatus, DomainTierStatus, DomainsStatus};

/// One resource and everybody who holds or wants some of it.
#[derive(Clone, Debug)]
pub struct Resource {
    id: ResourceId,
    terms: GrantTerms,
    ledger: Ledger,
    /// Those who hold or want some of it.
    holders: Holders,
    supply: Supply,
    /// The kind of what may be out.
    counted: CountedKind,
    /// Those who listen, and what is to be done about them.
    pusher: Pusher,
    /// The holders to which capacity that nobody wants is lent.
    lending: Lending,
    learning: Learning,
    /// The claims of what is left from before.
    claims: GhostClaims,
    /// The leaders before the present ones, of this node and of those below.
    earlier: EarlierLeaders,
    saturation: Saturation,
}

// === impl Resource ===

impl Resource {
    pub(crate) fn new(now: Time, id: ResourceId, template: Arc<Template>, cx: CallContext<'_>) -> Resource {
        let drift = cx.config.drift;
        let leased = cx.config.parent.is_some() && template.policy.is_bounded();
        let limit =
            template.policy.is_bounded().then(|| if leased { Amount::ZERO } else { template.shared() });
        let mut ledger = Ledger::new(limit, cx.config.rules);
        let record = cx.config.record.as_ref();
        let (mut learning, mut supply) =
            (learning(&template, id.is_floor(), record, drift), Supply::configured());
        let mut longest = template.lease_length;
        let known = record.filter(|record| record.knows(&id));
        // Without a record nobody has led before one who keeps marks.
        let mut earlier_here = (record.is_none() && cx.config.marks).then_some(Time::ZERO);
        if let Some(record) = known {
            let mut ghost = record.ghost(&id, cx.since, drift);
            if !cx.config.rules.keep(Rule::FullGhost) {
                let end = cx.since + record.longest().of(&id) / 2;
                ghost = Ghost::new(Part { amount: ghost.amount(), end }, Part::default());
            }
            if !leased || cx.config.rules.keep(Rule::NodeGhost) {
                ledger.haunt(ghost);
            }
            earlier_here = Some(if ghost.amount() == Amount::ZERO { Time::ZERO } else { ghost.end() });
            ledger.advance(now);
            longest = record.longest().of(&id);
        }
        let is_believed = !cx.config.rules.keep(Rule::EmptyIsUnknown) && record.is_some();
        if leased || known.is_some() || record.is_none() && cx.config.marks || is_believed {
            learning = Duration::ZERO;
        }
        if leased {
            supply = Supply::leased(cx, &ledger, longest);
        }
        let counted = CountedKind::new(&id, &template, &ledger, cx.config);
        let mut resource = Resource {
            id,
            ledger,
            holders: Holders::new(now, &template, cx.config.hash_seed),
            supply,
            counted,
            pusher: Pusher::new(now),
            lending: Lending::default(),
            learning: Learning::new(cx.since, cx.since + learning),
            claims: GhostClaims::default(),
            earlier: EarlierLeaders::new(earlier_here),
            saturation: Saturation::default(),
            terms: GrantTerms::new(template),
        };
        resource.holders.share_part(&resource.terms);
        resource.divide();
        resource
    }

    /// Changes the template; absent: the repository does not cover the resource any more. Below another node its lease is given
    /// back then, as far as those below give theirs back.
    pub(crate) fn set_template(&mut self, template: Option<Arc<Template>>, cx: CallContext<'_>) {
        let had_one = self.terms.is_covered();
        let mut moves_ranks = true;
        if let Some(template) = template {
            self.holders.configure(&template);
            moves_ranks = !(had_one && template.is_but_for_capacity_and_caps(&self.terms));
            let before = self.terms.cover(template);
            self.change_domains(&before);
            self.change_enforcing(&before);
            self.change_kind(&before);
            self.cap_anew(&before, cx);
            if self.terms.policy.is_bounded() {
                self.ask_for_lease(cx);
            }
        } else {
            self.terms.uncover();
            self.holders.set_policy(SharePolicy::FairShare);
        }
        self.ledger.set_limit(self.limit());
        self.holders.share_part(&self.terms);
        self.reshare();
        if moves_ranks {
            for slot in self.pusher.listeners().slots() {
                self.rank(slot);
            }
        }
        self.pusher.resume();
        self.supply.note_wants();
    }

    /// Nobody gets more of it from here on: who has some keeps what is wanted of that, and newcomers get nothing. Or that is
    /// over.
    pub(crate) fn set_frozen(&mut self, is_frozen: bool) {
        if self.terms.freeze(is_frozen) != is_frozen {
            self.reshare();
            self.pusher.resume();
        }
    }

    /// Whether nobody gets more of it.
    pub(crate) fn is_frozen(&self) -> bool {
        self.terms.is_frozen() && self.ledger.rules().keep(Rule::FrozenGrowsNot)
    }

    /// No more than `limit` may be out from here on. Returns whether that is another limit.
    pub(crate) fn limit_to(&mut self, limit: Amount) -> bool {
        if self.ledger.limit().is_none_or(|before| before == limit) {
            return false;
        }
        self.ledger.set_limit(Some(limit));
        self.reshare();
        true
    }

    /// Takes a report and answers it; not if nothing can be granted.
    pub(crate) fn report(
        &mut self,
        now: Time,
        ask: &Ask,
        report: &Report,
        cx: CallContext<'_>,
    ) -> Option<Reply> {
        if let Some(reply) = self.keep_lease(now, ask, report, cx) {
            return Some(reply);
        }
        let is_stranger = self.is_stranger(ask, report, cx);
        let slot = self.hear(now, ask, report, cx)?;
        let mut reply = self.answer(now, slot, cx);
        if let Some(reply) = reply.as_mut().filter(|_| is_stranger) {
            // Or it could show that it is the holder from here on.
            reply.grant.token = Vec::new();
        }
        if let Some(reply) = &reply {
            self.prolong_shown(slot, report, reply, cx);
            self.note_poll(now, slot, reply);
        }
        let reply = reply.or_else(|| self.hold_over(now, ask, report, cx));
        self.holders.schedule(slot, &self.terms);
        self.rank(slot);
        self.note_shortage(now, slot);
        reply
    }

    /// The number of those who hold or want some of it.
    pub(crate) fn holder_count(&self) -> usize {
        self.holders.children().len()
    }

    /// The holder has promised to use nothing any more. Of one that draws no incarnation that is believed on the connection on
    /// which it began: on any other it may be a stranger who says so, and what is out ends with its lease.
    pub(crate) fn release(&mut self, holder: Holder<'_>, report_id: Option<ReportId>, cx: CallContext<'_>) {
        let slot = match holder.life {
            Life::Incarnation(_) => self.holders.children().locate(holder),
            // Of a node, only its leader gives back.
            Life::Leader { incarnation, .. } => self
                .holders
                .children()
                .locate(holder)
                .filter(|&slot| self.holders.at(slot).life.session == incarnation),
            _ => self
                .holders
                .children()
                .dispensable(holder)
                .filter(|&slot| self.is_on_its_connection(slot, cx)),
        };
        // A release that comes after a later report is about a life of the holding that is over.
        let Some(slot) = slot.filter(|&slot| !self.holders.at(slot).has_heard(report_id)) else { return };
        self.pusher.unsettle();
        let claims = self.ledger.ghost() > Amount::ZERO || self.claims.deferred(slot).is_some();
        if claims && self.holders.at(slot).claimed != Claimed::Nothing {
            // It stays known as long as it could claim again.
            self.acknowledge(slot, u64::MAX, Amount::ZERO);
            self.withdraw(slot);
            self.reshare();
            self.stop_telling(slot);
            self.holders.schedule(slot, &self.terms);
            return;
        }
        self.forget(slot);
    }

    /// Lets end what has ended.
    pub(crate) fn advance(&mut self, now: Time) {
        let before = self.ledger.total();
        if now >= self.ledger.ghost_end() {
            self.end_deferral();
            self.keep_echoed(now);
        }
        self.ledger.advance(now);
        self.let_end(now);
        if self.ledger.total() != before {
            self.reshare();
        }
        if !self.is_learning(now) && self.learning.tell_over() {
            self.owe_all();
        }
        self.pusher.advance(now);
        self.settle_kind();
        self.take_turns(now);
    }

    fn let_end(&mut self, now: Time) {
        while let Some(slots) = self.holders.due(now) {
            for slot in slots {
                self.look_after(now, slot);
            }
        }
    }

    /// When there is something to let end.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        earliest([self.holders.children().next_deadline(), self.holders.rotation().wake()])
    }

    /// Whether it can be forgotten: nobody holds or wants any of it, and it was not asked for during a whole lease.
    pub(crate) fn is_idle(&self, now: Time) -> bool {
        self.holders.children().len() == 0 && self.ledger.ghost() == Amount::ZERO && now >= self.idle_from()
    }

    pub(crate) fn idle_from(&self) -> Time {
        self.holders.untouched_from(self.terms.lease_length).max(self.ledger.ghost_end())
    }

    pub(crate) fn template(&self) -> Option<&Arc<Template>> {
        self.terms.covering()
    }

    /// The terms that its template says, or said last.
    pub(crate) fn terms(&self) -> &Template {
        &self.terms
    }

    /// The ledger of who is charged for what.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the streams on which nobody listens any more, since this was last asked.
    pub(crate) fn take_silent(&mut self) -> Vec<Peer> {
        self.pusher.take_silent()
    }

    /// Whether it has anything to say that nobody has asked for yet: of claims, of streams on which nobody listens any more, of
    /// those who are to be told more.
    pub(crate) fn has_news(&self) -> bool {
        self.pusher.has_silent() || self.claims.has_tally() || self.has_untold()
    }

    /// Whether waits have ended that nobody has taken yet.
    pub(crate) fn has_waited(&self) -> bool {
        self.pusher.shortage().has_waited()
    }

    /// The waits that have ended, and that nobody has taken yet.
    pub(crate) fn waited(&mut self) -> &mut Measurements {
        self.pusher.shortage_mut().waited()
    }

    /// Returns the outcomes of claims since this was last asked.
    pub(crate) fn take_claims(&mut self) -> ClaimTally {
        self.claims.take_tally()
    }

    /// Sets the most that may be out from here on, in all; absent: there are no marks.
    pub(crate) fn set_ceiling(&mut self, ceiling: Option<Ceiling>) {
        if self.ledger.set_ceiling(ceiling) {
            self.unsettle();
        }
    }

    /// Its mark allows for all that was missed.
    pub(crate) fn forget_lack(&mut self) {
        self.ledger.forget_lack();
    }

    /// The demand of all holders may have moved: those who listen and the node above are to be told.
    fn take_up(&mut self, moved: Moved) {
        if moved.0 {
            self.pusher.unsettle();
            self.supply.note_wants();
        }
    }

    /// Changes the charge of the holder at `slot`.
    fn charge<T>(&mut self, slot: Slot, change: impl FnOnce(&mut Ledger, &mut Account) -> T) -> T {
        self.holders.charge(slot, &mut self.ledger, change)
    }

    /// Those who listen may be due something else than they were told.
    pub(crate) fn unsettle(&mut self) {
        self.pusher.resume();
        self.pusher.unsettle_if(self.pusher.has_listeners());
    }

    /// The streams on which somebody listens.
    pub(crate) fn listening(&self) -> Vec<Peer> {
        let listeners = self.pusher.listeners();
        listeners.slots().into_iter().filter_map(|slot| listeners.peer(slot)).collect()
    }

    /// The holder that listens on `peer`.
    pub(crate) fn listener(&self, peer: Peer) -> Option<Slot> {
        self.pusher.listeners().slot(peer)
    }

    /// Whether those who listen are to be told what has changed for them.
    pub(crate) fn is_unsettled(&self, now: Time) -> bool {
        self.pusher.is_unsettled(now)
    }

    /// Those of `slots` who listen are told what is due to them, whatever they were told.
    fn owe(&mut self, slots: &[Slot]) {
        for &slot in slots {
            self.pusher.owe(slot);
            self.pusher.unsettle_if(self.pusher.listeners().is_owed(slot));
        }
    }
}
