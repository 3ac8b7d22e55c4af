//! A rehearsal: a resource as it would be under another template, with the demands that there are and nothing granted.
//!
//! It is a resource like others, filled with copies of what holders want. So shares, levels and the demand for the node above are
//! read off the functions that decide about the resource itself, which is not touched.

use std::sync::Arc;
use std::time::Duration;

use compact_str::CompactString;
use lessor_client::internals::allowance::Allowance;
use lessor_proto::message::{Band, Bands, HolderKind};
use lessor_proto::{Amount, Epoch, Incarnation, ResourceId, Time};

use super::holders::{Child, Demands};
use super::identity::{Holder, Life};
use super::slab::Slot;
use super::{BandLevel, CallContext, Resource};
use crate::config::NodeConfig;
use crate::date::Date;
use crate::record::{Longest, Unknown};
use crate::repository::Template;
use crate::token::PollerLife;

/// A holder as a rehearsal is to know it.
#[derive(Clone, PartialEq, Debug)]
pub struct RehearsedHolder {
    /// Its id.
    pub name: CompactString,
    /// Whether a client or a node.
    pub kind: HolderKind,
    /// Whether it draws an incarnation.
    pub incarnated: bool,
    /// The demands as it said them.
    pub said: Bands,
    /// The amount that it is charged for.
    pub charge: Amount,
    /// When the last of that ends.
    pub ends: Option<Time>,
    /// The amount of its share as things stand.
    pub share: f64,
    /// Whether it hears at once what changes for it.
    pub listens: bool,
}

/// A resource under another template.
#[derive(Clone, Debug)]
pub(crate) struct Rehearsal {
    resource: Resource,
    /// Where the holders are, in the order in which they came.
    slots: Vec<Slot>,
}

// === impl Resource ===

impl Resource {
    /// The holders at `from` and in the slots after it, by slot, whose demands count.
    pub(crate) fn rehearsed_from(&self, from: Slot) -> impl Iterator<Item = (Slot, RehearsedHolder)> {
        let mut level = None;
        let counted = self.holders.children().iter_from(from).filter(|(_, child)| !child.is_withdrawn());
        counted.map(move |(slot, child)| {
            let holder = RehearsedHolder {
                name: child.name.clone(),
                kind: child.kind,
                incarnated: child.flags.incarnated,
                said: self.said_by(slot),
                charge: child.account().charge(),
                ends: child.account().last_end(),
                share: self.share_by(&mut level, child.demands()),
                listens: self.pusher.peer(slot).is_some(),
            };
            (slot, holder)
        })
    }

    /// The levels of its priorities, the greatest first.
    pub(crate) fn levels(&self) -> Vec<BandLevel> {
        self.division().bands
    }

    /// The step that its level is cut to, where that is done.
    pub(crate) fn level_step(&self) -> f64 {
        self.holders.step()
    }
}

// === impl Rehearsal ===

impl Rehearsal {
    /// The resource `id` under `template`, with these holders.
    pub(crate) fn new(
        now: Time,
        id: ResourceId,
        template: Arc<Template>,
        holders: &[RehearsedHolder],
        config: &NodeConfig,
    ) -> Rehearsal {
        let mut resource = Resource::new(now, id, template, context(now, config));
        let mut slots = Vec::with_capacity(holders.len());
        for (number, holder) in holders.iter().enumerate() {
            // Two lives of one id are two holders.
            let session = Incarnation(number as u64);
            let life = PollerLife { epoch: Epoch::default(), session };
            let demands = resource.demands_of(&holder.said);
            let known = match holder.incarnated {
                true => Life::Incarnation(session),
                false => Life::New,
            };
            let holder = Holder { kind: holder.kind, name: &holder.name, life: known };
            let (slot, _) = resource.holders.insert(Child::new(now, holder, life, demands));
            slots.push(slot);
        }
        Rehearsal { resource, slots }
    }

    /// The same where the level was cut to `step` before: nobody goes up a step too soon.
    pub(crate) fn at_step(mut self, step: f64) -> Rehearsal {
        self.resource.holders.set_step(step);
        self
    }

    /// The demands that the node above would be told, in at most so many buckets.
    pub(crate) fn bands(&self, most_buckets: usize) -> Bands {
        self.resource.bands(most_buckets)
    }

    /// Whether the capacity would come from the node above.
    pub(crate) fn is_leased(&self) -> bool {
        self.resource.is_leased()
    }

    /// The node above grants so much of it.
    pub(crate) fn lease(&mut self, granted: Amount) {
        if self.is_leased() {
            self.resource
                .lease(Allowance { capacity: Some(granted), until: Time::MAX, ..Allowance::NOTHING }, None);
        }
    }

    /// The amount of the share of the holder of that number.
    pub(crate) fn share(&self, number: usize) -> f64 {
        self.resource.share(self.resource.holders.at(self.slots[number]).demands())
    }

    /// The most that may be out; absent where that is not limited.
    pub(crate) fn limit(&self) -> Option<Amount> {
        self.resource.ledger.limit()
    }

    /// The levels of its priorities, the greatest first.
    pub(crate) fn levels(&self) -> Vec<BandLevel> {
        self.resource.levels()
    }
}

/// The context of a node of which nothing was ever out: `config` must say so.
fn context(now: Time, config: &NodeConfig) -> CallContext<'_> {
    let longest = Longest { lease: Duration::MAX, safe_lease: Duration::MAX };
    CallContext {
        config,
        since: now,
        led: now,
        longest,
        says_unknown: Unknown::Nothing,
        learnt_longest: longest,
        session: Incarnation::default(),
        caller: None,
        date: Date::default(),
    }
}

// === impl Resource: demands ===

impl Resource {
    /// The demands of a holder that says `said`, as far as they count.
    fn demands_of(&self, said: &[Band]) -> Demands {
        Demands::from_bands(&self.terms.capped(said))
    }
}
