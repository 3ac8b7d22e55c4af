//! One resource: its template, who wants how much of it, and who is charged for what.
//!
//! The share of a holder follows from the wants of all; what it is granted is its share as far as the ledger has room. A
//! report updates the wants, credits what it promises, and is answered in the same step, in O(log n) of the number of
//! holders.
//!
//! While it is *learning*, after a start, whatever may still be out from before counts as charged: holders get back what
//! they show, within the capacity, and nobody else gets anything.

mod agenda;
mod answer;
mod child;
mod children;
mod slab;
mod status;

use std::sync::Arc;

use lessor_algorithms::{Policy, Shares};
use lessor_proto::message::{Ask, Has, Refusal, Report};
use lessor_proto::{Amount, ResourceId, Time};

use self::child::{Child, Demands};
use self::children::Children;
use self::slab::Slot;
use crate::config::NodeConfig;
use crate::ledger::{Account, Ledger};
use crate::repository::Template;

pub(crate) use self::answer::{Reply, SOON};
pub(crate) use self::children::{Holder, Life};
pub use self::status::{HolderStatus, ResourceStatus};

/// One resource and everybody who holds or wants some of it.
#[derive(Debug)]
pub struct Resource {
    id: ResourceId,
    /// Absent when the repository does not cover it any more: nothing is granted, and it goes when its leases have.
    template: Option<Arc<Template>>,
    /// The last template it had.
    terms: Arc<Template>,
    shares: Shares,
    ledger: Ledger,
    children: Children,
    learning_until: Time,
    /// When it was last asked for.
    touched: Time,
    duplicates: u64,
}

/// What stays the same for every report of one ask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reign<'a> {
    pub(crate) config: &'a NodeConfig,
    /// When this leader began.
    pub(crate) since: Time,
    /// The number for a session that begins now, never used before in this reign.
    pub(crate) session: u64,
}

// === impl Resource ===

impl Resource {
    pub(crate) fn new(now: Time, id: ResourceId, template: Arc<Template>, reign: Reign<'_>) -> Resource {
        let learning = reign.config.drift.stretch(template.learning);
        Resource {
            id,
            shares: Shares::new(template.policy, template.capacity.as_f64()),
            ledger: Ledger::new(limit(&template)),
            children: Children::new(reign.config.hash_seed),
            learning_until: reign.since + learning,
            touched: now,
            duplicates: 0,
            terms: Arc::clone(&template),
            template: Some(template),
        }
    }

    /// Changes the template; absent: the repository does not cover the resource any more.
    pub(crate) fn set_template(&mut self, template: Option<Arc<Template>>) {
        if let Some(template) = &template {
            self.shares.set_policy(template.policy);
            self.shares.set_capacity(template.capacity.as_f64());
            self.ledger.set_limit(limit(template));
            self.terms = Arc::clone(template);
        } else {
            self.shares.set_policy(Policy::FairShare);
            self.shares.set_capacity(0.0);
            self.ledger.set_limit(Some(Amount::ZERO));
        }
        self.template = template;
    }

    /// Whether the report would be taken, with nothing changed if not.
    pub(crate) fn admit(&self, ask: &Ask, report: &Report, reign: Reign<'_>) -> Result<(), Refusal> {
        let holder = holder(ask, report, reign.config.epoch);
        let demands = Demands::from_bands(&report.bands);
        let bands = self.shares.bands()
            + demands.iter().filter(|demand| !self.shares.has_band(demand.priority)).count();
        exhausted(|| format!("priorities of {:?}", self.id), bands, reign.config.message.bands_per_resource)?;
        if self.children.locate(holder).is_some() {
            return Ok(());
        }
        let count = self.children.len() + 1;
        exhausted(|| format!("clients of {:?}", self.id), count, reign.config.clients_per_resource)?;
        let lives = self.children.lives(holder).count() + 1;
        let what = || {
            format!("lives of {:?} that hold {:?} at once, for want of an echoed lease", ask.holder, self.id)
        };
        exhausted(what, lives, reign.config.lives_per_client)
    }

    /// Takes a report and answers it.
    pub(crate) fn report(&mut self, now: Time, ask: &Ask, report: &Report, reign: Reign<'_>) -> Reply {
        self.touched = now;
        let holder = holder(ask, report, reign.config.epoch);
        let slot = match self.children.locate(holder) {
            Some(slot) => {
                self.heard(now, slot, ask, report, reign);
                slot
            }
            None => self.welcome(now, holder, ask, report, reign),
        };
        let reply = self.answer(now, slot, reign);
        self.children.schedule(slot, self.terms.refresh_interval);
        reply
    }

    /// The holder has promised to use nothing any more.
    pub(crate) fn release(&mut self, holder: Holder<'_>) {
        let slot = match holder.life {
            Life::Incarnation(_) => self.children.locate(holder),
            _ => self.children.dispensable(holder),
        };
        if let Some(slot) = slot {
            self.forget(slot);
        }
    }

    /// Lets end what has ended.
    pub(crate) fn advance(&mut self, now: Time) {
        while let Some(slots) = self.children.due(now) {
            for slot in slots {
                self.look_after(now, slot);
            }
        }
    }

    /// When there is something to let end.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.children.deadline()
    }

    /// Whether it can be forgotten: nobody holds or wants any of it, and it was not asked for during a whole lease.
    pub(crate) fn is_idle(&self, now: Time) -> bool {
        self.children.len() == 0 && now >= self.idle_from()
    }

    pub(crate) fn idle_from(&self) -> Time {
        self.touched + self.terms.lease_length
    }

    pub(crate) fn template(&self) -> Option<&Arc<Template>> {
        self.template.as_ref()
    }

    /// Whether what is out from before the start may still be in use.
    pub(crate) fn is_learning(&self, now: Time) -> bool {
        now < self.learning_until && self.shares.policy().is_bounded()
    }

    /// A report of a known child: credit what it promises, then take its wants.
    fn heard(&mut self, now: Time, slot: Slot, ask: &Ask, report: &Report, reign: Reign<'_>) {
        let Resource { children, ledger, .. } = self;
        let child = children.at_mut(slot);
        ledger.expire(&mut child.account, now);
        if let Some((seq, held)) = promise(report, &child.account, reign.config.epoch) {
            ledger.acknowledge(&mut child.account, seq, held);
        }
        child.provisional = false;
        if child.superseded {
            child.superseded = false;
            self.duplicates += 1;
        }
        let shown = report.has.as_ref().map(|has| has.capacity);
        if self.children.at_mut(slot).hear(now, ask.report_id, shown) {
            self.set_demands(slot, Demands::from_bands(&report.bands));
        }
    }

    /// The first report of a life.
    fn welcome(
        &mut self,
        now: Time,
        holder: Holder<'_>,
        ask: &Ask,
        report: &Report,
        reign: Reign<'_>,
    ) -> Slot {
        let refresh = self.terms.refresh_interval;
        let others: Vec<Slot> = self.children.lives(holder).collect();
        for &slot in &others {
            self.children.at_mut(slot).superseded = true;
            self.children.schedule(slot, refresh);
        }
        let session = match holder.life {
            Life::Incarnation(incarnation) => incarnation,
            _ => reign.session,
        };
        let mut child = Child::new(now, holder, session, Demands::from_bands(&report.bands));
        child.hear(now, ask.report_id, report.has.as_ref().map(|has| has.capacity));
        child.provisional = !others.is_empty();
        let slot = self.children.insert(child);
        for demand in self.children.at(slot).demands.iter() {
            self.shares.insert(&demand);
        }
        if let Some(has) = report.has.as_ref().filter(|_| self.is_learning(now)) {
            self.claim(slot, has, reign.config.epoch);
        }
        slot
    }

    /// What a holder has from an earlier reign is charged to it, as far as the capacity goes.
    fn claim(&mut self, slot: Slot, has: &Has, epoch: u64) {
        if has.order.is_none_or(|order| order.epoch != epoch) {
            let child = self.children.at_mut(slot);
            self.ledger.claim(&mut child.account, has.capacity, self.learning_until);
        }
    }

    fn set_demands(&mut self, slot: Slot, demands: Demands) {
        let child = self.children.at_mut(slot);
        if child.demands == demands && !child.withdrawn {
            return;
        }
        if !child.withdrawn {
            for demand in child.demands.iter() {
                self.shares.remove(&demand);
            }
        }
        child.withdrawn = false;
        child.demands = demands;
        for demand in child.demands.iter() {
            self.shares.insert(&demand);
        }
    }

    /// A child whose time on the agenda has come.
    fn look_after(&mut self, now: Time, slot: Slot) {
        let refresh = self.terms.refresh_interval;
        let child = self.children.at_mut(slot);
        self.ledger.expire(&mut child.account, now);
        if child.account.is_empty() {
            self.forget(slot);
            return;
        }
        if child.superseded && !child.withdrawn && now >= child.basis + refresh * 2 {
            child.withdrawn = true;
            for demand in child.demands.iter() {
                self.shares.remove(&demand);
            }
        }
        self.children.schedule(slot, refresh);
    }

    fn forget(&mut self, slot: Slot) {
        let mut child = self.children.remove(slot);
        self.ledger.close(&mut child.account);
        if !child.withdrawn {
            for demand in child.demands.iter() {
                self.shares.remove(&demand);
            }
        }
    }
}

/// Who sends `report`, and which life of it.
pub(crate) fn holder<'a>(ask: &'a Ask, report: &'a Report, epoch: u64) -> Holder<'a> {
    let life = match (ask.incarnation, &report.has) {
        (Some(incarnation), _) => Life::Incarnation(incarnation),
        (None, None) => Life::New,
        (None, Some(has)) => match (has.order, <[u8; 8]>::try_from(has.token.as_slice())) {
            (Some(order), Ok(session)) if order.epoch == epoch => Life::Session(u64::from_le_bytes(session)),
            _ => Life::Unnamed(has),
        },
    };
    Holder { kind: ask.kind, name: ask.holder.as_str(), life }
}

/// What a report promises: to use no more than so much under all grants up to that one.
fn promise(report: &Report, account: &Account, epoch: u64) -> Option<(u64, Amount)> {
    let has = report.has.as_ref()?;
    let held = report.held.unwrap_or(has.capacity);
    match has.order {
        Some(order) if order.epoch == epoch => Some((order.seq, held)),
        Some(_) => None,
        None => Some((account.oldest_of(has.capacity)?.into(), held)),
    }
}

fn limit(template: &Template) -> Option<Amount> {
    template.policy.is_bounded().then_some(template.capacity)
}

fn exhausted(what: impl Fn() -> String, count: usize, limit: usize) -> Result<(), Refusal> {
    if count > limit {
        return Err(Refusal::Exhausted { what: what(), count, limit });
    }
    Ok(())
}
