//! One resource in a session: its holding, and when to speak of it next.

use std::sync::Arc;
use std::time::Duration;

use lessor_proto::message::{BoundBy, Grant, HolderKind, Order, Report};
use lessor_proto::{Amount, Drift, Epoch, ReportId, ResourceId, Time};

use super::{Change, Failure, Fault, SessionConfig, Transport};
use crate::allowance::Allowance;
use crate::domain::Policies;
use crate::holding::{Holding, HoldingConfig, Kind, Rung};
use crate::limiter::UnitWish;
use crate::mutation::HolderRule;

/// The shortest time after which a short grant is asked about again, whatever the server says.
pub(super) const SHORTEST_RETRY: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) resource: ResourceId,
    /// It is the floor of another resource, and the program does not hear of it.
    pub(super) is_floor: bool,
    pub(super) holding: Holding,
    pub(super) stage: Stage,
    /// When to ask, or to release, next.
    pub(super) due: Time,
    /// The exchange in flight that speaks of it.
    pub(super) exchange: Option<ReportId>,
    /// The refusals of it, and its last fault.
    pub(super) setbacks: Setbacks,
    asking: Asking,
    /// Its state on the stream.
    pub(super) streamed: Streamed,
    extras: GrantExtras,
    told: ToldProgram,
    /// The amount of the lease before something of it was given back: a rule taken out.
    given_back: Option<Amount>,
}

/// The refusals of what is asked for of a resource.
#[derive(Clone, Debug, Default)]
pub(super) struct Setbacks {
    /// A request with others was refused: ask for it alone until an answer comes.
    pub(super) alone: bool,
    /// The number of times in a row that it was refused when asked for alone.
    pub(super) refusals: u32,
    /// The last fault; nothing if the last answer was good.
    pub(super) fault: Option<Fault>,
}

/// The state of a resource as the program was told it.
#[derive(Clone, Debug)]
struct ToldProgram {
    allowance: Allowance,
    rung: Rung,
    fault: Option<Box<Fault>>,
    /// The version of the policies of its domains.
    version: u32,
    bound_by: Option<BoundBy>,
    /// The amount that the last change that was handed out allows.
    allowed: Amount,
}

/// The way in which a resource is asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Asking {
    /// Whether a server may know of us and this resource.
    known: bool,
    /// Whether the last report was hurried as an acknowledgement was wanted: the next one may not be.
    hurried: bool,
    refresh: Option<Duration>,
}

/// The rest of what grants of a resource have brought, beside the lease.
#[derive(Clone, Debug, Default)]
struct GrantExtras {
    /// The policies of its domains; absent: they may use all of it.
    domains: Option<Arc<Policies>>,
    /// The units that leaders of a node before this one may have left in use: absent of a client, and where nothing was said of it.
    predecessors: Option<Box<Predecessors>>,
}

/// The units of a resource that leaders of a node before this one may have left in use, by what the node above has said.
#[derive(Clone, Copy, Debug, Default)]
struct Predecessors {
    /// The amount of what is granted to the node that may be in use under them, and the time until which it may be.
    before: Option<(Amount, Time)>,
    /// When all is over that they had.
    earlier: Option<Time>,
}

/// The state of a resource on the stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Streamed {
    /// The last report that spoke of it.
    pub(super) said: ReportId,
    /// No grant of it counts from a report before this one; absent until something was reported.
    pub(super) floor: Option<ReportId>,
    /// The last grant of it that came down this stream, adopted or not: what a renewal is about.
    pub(super) granted: Option<Granted>,
    /// The wish of its limiter, where units are asked for.
    pub(super) wish: UnitWish,
    /// Units that came down this stream.
    pub(super) units: u64,
    /// Those of them that were to be kept.
    pub(super) kept: u64,
    /// The interval at which to renew the last grant: thrice within the lease, so that one heartbeat may be lost
    /// with its stream.
    pub(super) pace: Option<Duration>,
}

/// A grant that came down the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    pub(super) order: Order,
    pub(super) length: Duration,
    pub(super) capacity: Amount,
    /// A renewal of it is one of the lease: it was adopted, or the lease of that number was shown in its place.
    pub(super) is_held: bool,
}

/// The life of an entry.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Stage {
    /// Asked for.
    Open,
    /// Nothing is used any more, and a server may still count it.
    Leaving {
        /// Releases that failed.
        failures: u32,
        /// When the server stops counting without one.
        end: Time,
        /// It was opened again: ask as soon as the release is answered, not before, because a late release would take
        /// the later lease with it.
        again: Option<Box<HoldingConfig>>,
    },
}

// === impl Entry ===

impl Entry {
    pub(super) fn new(now: Time, resource: ResourceId, config: HoldingConfig) -> Entry {
        Entry {
            resource,
            is_floor: false,
            holding: Holding::new(config),
            stage: Stage::Open,
            due: now,
            exchange: None,
            setbacks: Setbacks::default(),
            asking: Asking::default(),
            streamed: Streamed::default(),
            extras: GrantExtras::default(),
            told: ToldProgram::nothing(),
            given_back: None,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    pub(super) fn allowance(&self, now: Time) -> Allowance {
        if self.is_open() { self.holding.allowance(now) } else { Allowance::NOTHING }
    }

    pub(super) fn rung(&self, now: Time) -> Rung {
        if self.is_open() { self.holding.rung(now) } else { Rung::Waiting }
    }

    /// The way in which it is held, or will be when what was released is confirmed.
    pub(super) fn config(&mut self) -> &mut HoldingConfig {
        match &mut self.stage {
            Stage::Leaving { again: Some(config), .. } => config,
            _ => self.holding.config(),
        }
    }

    /// Brings the next report forward if there is something to say; `spaced` is when the least spacing allows one.
    /// What a node frees step by step is news to those above it; a client frees its units all the time, and tells of them
    /// when it is asked to: of those of a window, which come back by age, each time.
    pub(super) fn expedite(&mut self, now: Time, spaced: Time, kind: HolderKind) {
        if self.holding.ack_is_due(now) {
            self.due = self.due.min(if self.asking.hurried { spaced.max(now) } else { now });
        } else if self.holding.demand_is_news(now, Transport::Poll)
            || (kind == HolderKind::Node || self.holding.yields_by_age()) && self.holding.promise_fell(now)
        {
            self.due = self.due.min(spaced.max(now));
        }
    }

    /// Brings the next report on a stream forward if there is something to say, and it is not being refused.
    pub(super) fn hasten(&mut self, now: Time, spaced: Time) {
        let (holding, at) = (&self.holding, spaced.max(now));
        if self.setbacks.refusals > 0 || self.due <= at {
            return;
        }
        // A node has many bands to compare, so its demand comes last.
        if holding.ack_is_due(now)
            || holding.promise_fell(now)
            || holding.demand_is_news(now, Transport::Stream)
        {
            self.due = at;
        }
    }

    /// It is spoken of in report `id` on a stream, and again when there is something to say.
    pub(super) fn told_up(&mut self, id: ReportId) {
        self.asking.known = true;
        self.due = Time::MAX;
        self.streamed.said = id;
        self.streamed.floor.get_or_insert(id);
        // Once it is shown, the grantor counts the lease where its own grant of that number would be.
        if let Some(granted) = &mut self.streamed.granted {
            let is_it = self.holding.order() == Some(granted.order);
            granted.is_held |= is_it && self.holding.amount() <= granted.capacity;
        }
    }

    /// The grantor has taken up report `basis`, and will count from no older one.
    pub(super) fn taken_up(&mut self, basis: ReportId) {
        self.streamed.floor = self.streamed.floor.map(|floor| floor.max(basis));
        // A report that was refused is due again.
        if self.streamed.said <= basis && self.due == Time::MAX {
            self.setbacks.clear();
        }
    }

    /// The grantor renews what it granted, counted from report `basis`. What it does not renew is to be reported in full,
    /// if it was reported before; unless there is nothing to be said of it.
    pub(super) fn renewed_up(&mut self, now: Time, basis: ReportId, renewed: bool, spaced: Time) {
        self.taken_up(basis);
        if renewed {
            self.setbacks.fault.take_if(|_| self.setbacks.refusals == 0);
        } else if self.streamed.said <= basis && !self.setbacks.alone && !self.holding.is_over(now) {
            self.due = self.due.min(spaced.max(now));
        }
    }

    /// Gives back what the next report does not hold any more. The program has to hear of that, and say what is in use, before
    /// the report is built. Returns whether anything was given back.
    pub(super) fn give_back(&mut self, config: &SessionConfig, transport: Transport) -> bool {
        if !config.rules.keep(HolderRule::UseReadAfter) {
            return false;
        }
        let before = self.holding.amount();
        self.holding.give_back_surplus(transport);
        let is_less = self.holding.amount() < before;
        if is_less && !config.rules.keep(HolderRule::PromiseKept) {
            self.given_back = Some(before);
        }
        is_less
    }

    /// The program hears that it may use so much from here on. What it has taken before that is not known until it says so.
    pub(super) fn handed_out(&mut self, allowance: Allowance, config: &SessionConfig) {
        let allowed = allowance.capacity.unwrap_or(Amount::MAX);
        let before = std::mem::replace(&mut self.told.allowed, allowed);
        let is_looked_at = [HolderRule::UseReadAfter, HolderRule::UnitsHeld];
        let is_client = config.kind == HolderKind::Client;
        if allowed < before && is_client && is_looked_at.iter().all(|&rule| config.rules.keep(rule)) {
            self.holding.presume_in_use(before);
        }
    }

    /// Makes the report to the grantor at `now`; the promise holds from here on.
    pub(super) fn report(&mut self, now: Time, epoch: Option<Epoch>, config: &SessionConfig) -> Report {
        if !config.rules.keep(HolderRule::UseReadAfter) {
            self.holding.give_back_surplus(Transport::Poll);
        }
        let mut report = self.holding.report(now, &self.resource, epoch);
        let has_units = self.holding.has_units(now) && config.rules.keep(HolderRule::UnitsAreUnits);
        report.integer = Some(has_units || self.holding.config().kind == Kind::Gauge);
        if config.kind == HolderKind::Client && !self.is_floor && self.holding.config().kind == Kind::Rate {
            report.domains = Some(self.extras.version());
        }
        if let Some(before) = self.given_back.take() {
            self.holding.break_promise(before);
        }
        report
    }

    /// The report that spoke of it was refused: it goes alone, and after a wait if it went alone.
    pub(super) fn refused(&mut self, now: Time, wait: Option<Duration>, why: &str) {
        self.due = now + wait.unwrap_or_default();
        self.setbacks.refuse(wait.is_some(), why);
    }

    /// It is spoken of in exchange `id`.
    pub(super) fn exchanged(&mut self, now: Time, id: ReportId) {
        self.asking.hurried = self.holding.ack_is_due(now);
        self.asking.known = true;
        self.exchange = Some(id);
    }

    /// The grant that answers the report sent at `sent` has been looked at. `spread` from 0 to 1 sets the next refresh in
    /// the last tenth of the interval.
    pub(super) fn renewed(&mut self, now: Time, sent: Time, plan: &Plan) {
        self.setbacks.clear();
        let mut wait = plan.refresh.mul_f64(0.9 + plan.spread / 10.0);
        // A lease that its grantor cut short must still be renewed in time.
        if let Some(end) = self.holding.end(now) {
            wait = wait.min(end.since(sent).mul_f64(2.0 / 3.0));
        }
        self.asking.refresh = Some(plan.refresh);
        self.due = sent + wait.max(plan.spacing.min(plan.refresh));
        if !plan.eager {
            // As those who are told so by a short refresh interval.
            let hurry = self.holding.is_ack_wanted() || plan.retry.is_some() && self.holding.is_short(now);
            self.due = if hurry { self.due.min(sent + plan.spacing) } else { self.due };
            return;
        }
        if let Some(retry) = plan.retry
            && self.holding.is_short(now)
        {
            self.due = self.due.min(now + retry.max(SHORTEST_RETRY));
        }
        self.expedite(now, sent + plan.spacing, plan.kind);
    }

    /// Nothing is used from here on. Returns whether a release is due.
    pub(super) fn leave(&mut self, now: Time) -> bool {
        if let Stage::Leaving { again, .. } = &mut self.stage {
            *again = None;
            return true;
        }
        let end = self.holding.end(now).unwrap_or(now);
        self.stage = Stage::Leaving { failures: 0, end, again: None };
        self.due = now;
        self.setbacks.fault = None;
        self.asking.known
    }

    /// A release failed. Returns whether to go on trying, up to `most` times: as long as a server may count something,
    /// or, without end, if somebody waits to ask again.
    pub(super) fn may_still_release(&mut self, now: Time, most: u32) -> bool {
        let Stage::Leaving { failures, end, again } = &mut self.stage else { return true };
        *failures += 1;
        again.is_some() || (now < *end && *failures < most)
    }

    pub(super) fn refresh(&self) -> Option<Duration> {
        self.asking.refresh
    }

    /// The change since the program was last told, when `allowance` may be used and comes from `rung`.
    pub(super) fn change(&mut self, allowance: Allowance, rung: Rung) -> Option<Change> {
        let (version, bound_by) = (self.extras.version(), self.holding.bound_by());
        let fault = self.setbacks.fault.as_ref();
        if !self.told.tell((allowance, rung, version, bound_by), fault) {
            return None;
        }
        let (resource, fault, domains) =
            (self.resource.clone(), self.setbacks.fault.clone(), self.extras.domains.clone());
        let learns_until = self.holding.learns_until();
        Some(Change { resource, allowance, rung, fault, learns_until, bound_by, domains })
    }

    /// Takes up the policies of domains that came with a grant, if any did.
    pub(super) fn take_policies(&mut self, grant: &Grant) -> Result<(), Fault> {
        self.extras.take_policies(grant)
    }

    /// Takes up what came with a grant of what earlier leaders of this node may have left in use, by our clock.
    pub(super) fn take_before(&mut self, now: Time, grant: &Grant, drift: Drift) {
        self.extras.take_before(now, grant, drift);
    }

    /// The amount that earlier leaders of this node may have left in use, and the time until which it may be.
    pub(super) fn before(&self) -> Option<(Amount, Time)> {
        self.extras.predecessors.as_ref()?.before
    }

    /// When all is over that earlier leaders of this node had, if that is known.
    pub(super) fn earlier(&self) -> Option<Time> {
        self.extras.predecessors.as_ref()?.earlier
    }

    /// The policies of its domains.
    pub(super) fn policies(&self) -> Option<&Arc<Policies>> {
        self.extras.domains.as_ref()
    }
}

// === impl GrantExtras ===

impl GrantExtras {
    /// Takes up the policies of domains that came with a grant, if any did; whether the grant was adopted does not matter,
    /// as policies have no order. Those that cannot be leave the ones before in force.
    fn take_policies(&mut self, grant: &Grant) -> Result<(), Fault> {
        let Some(wire) = &grant.domains else { return Ok(()) };
        let policies = Policies::from_wire(wire);
        let malformed = |bad| Failure::Malformed(format!("malformed answer: domains: {bad}"));
        self.domains = policies.map_err(malformed)?.map(Arc::new);
        Ok(())
    }

    /// Takes up what came with a grant of what earlier leaders of this node may have left in use, by our clock.
    fn take_before(&mut self, now: Time, grant: &Grant, drift: Drift) {
        if grant.before.is_none() && grant.earlier.is_none() {
            return;
        }
        let predecessors = self.predecessors.get_or_insert_default();
        if let Some(before) = grant.before {
            predecessors.before = Some((before.amount, drift.grantor_end(now, before.remaining)));
        }
        // Whatever was said once stays true, whoever serves now.
        let earlier = grant.earlier.map(|remaining| drift.grantor_end(now, remaining));
        predecessors.earlier = predecessors.earlier.into_iter().chain(earlier).min();
    }

    /// The version of the policies of its domains; 0 if there are none.
    fn version(&self) -> u32 {
        self.domains.as_ref().map_or(0, |policies| policies.version())
    }
}

// === impl Setbacks ===

impl Setbacks {
    /// It was not refused.
    fn clear(&mut self) {
        (self.alone, self.refusals) = (false, 0);
    }

    /// It was refused, and `was_alone` in that.
    fn refuse(&mut self, was_alone: bool, why: &str) {
        self.alone = true;
        if was_alone {
            self.refusals = self.refusals.saturating_add(1);
            self.fault = Some(Fault::Failed(Failure::Refused(why.to_owned())));
        }
    }
}

// === impl ToldProgram ===

impl ToldProgram {
    /// The program was told nothing.
    fn nothing() -> ToldProgram {
        ToldProgram {
            allowance: Allowance::NOTHING,
            rung: Rung::Waiting,
            fault: None,
            version: 0,
            bound_by: None,
            allowed: Amount::ZERO,
        }
    }

    /// The state is this. Returns whether that is news, of which the program hears then.
    fn tell(
        &mut self,
        (allowance, rung, version, bound_by): (Allowance, Rung, u32, Option<BoundBy>),
        fault: Option<&Fault>,
    ) -> bool {
        let told = (self.allowance, self.rung, self.version, self.bound_by);
        if told == (allowance, rung, version, bound_by) && self.fault.as_deref() == fault {
            return false;
        }
        let (fault, allowed) = (fault.cloned().map(Box::new), self.allowed);
        *self = ToldProgram { allowance, rung, fault, version, bound_by, allowed };
        true
    }
}

/// The part of an answer that is about the next report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) kind: HolderKind,
    pub(super) refresh: Duration,
    pub(super) retry: Option<Duration>,
    pub(super) eager: bool,
    pub(super) spacing: Duration,
    pub(super) spread: f64,
}

impl Plan {
    /// The plan by `grant`, in an answer whose plan is `self`.
    pub(super) fn with(self, grant: &Grant) -> Plan {
        Plan { refresh: grant.refresh_interval, ..self }
    }
}
