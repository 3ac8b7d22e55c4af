//! Demands that count for less than their holders say, by the caps of a template: kept as they were said, so that a cap that changes
//! counts at once.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lessor_proto::message::{Band, Bands};

use super::holders::Demands;
use super::slab::Slot;
use super::{CallContext, Resource};
use crate::repository::Template;

/// The demands of those that are cut, as they were said.
#[derive(Clone, Debug, Default)]
pub(super) struct SaidDemands(BTreeMap<Slot, Bands>);

// === impl SaidDemands ===

impl SaidDemands {
    /// The holder at `slot` has said `bands`, which count as `terms` let them.
    fn note(&mut self, slot: Slot, bands: &Bands, terms: &Template) {
        match terms.capped(bands) {
            Cow::Owned(_) => _ = self.0.insert(slot, bands.clone()),
            Cow::Borrowed(_) => self.forget(slot),
        }
    }

    /// Whether the demands of the holder at `slot` count for less than it says.
    pub(super) fn is_cut(&self, slot: Slot) -> bool {
        self.0.contains_key(&slot)
    }

    pub(super) fn forget(&mut self, slot: Slot) {
        // Hardly ever any.
        if !self.0.is_empty() {
            self.0.remove(&slot);
        }
    }
}

// === impl Resource ===

impl Resource {
    /// The holder at `slot` has said `bands`.
    pub(super) fn note_said(&mut self, slot: Slot, bands: &Bands) {
        self.holders.said_mut().note(slot, bands, &self.terms);
    }

    /// The demands of the holder at `slot` as it said them.
    pub(super) fn said_by(&self, slot: Slot) -> Bands {
        self.holders.said().0.get(&slot).cloned().unwrap_or_else(|| bands(self.holders.at(slot).demands()))
    }

    /// Lets the demands of all holders count by the caps of the terms in force, if those before had others. Only those whose demands
    /// were cut before, or are now, stand elsewhere then.
    pub(super) fn cap_anew(&mut self, before: &Template, cx: CallContext<'_>) {
        let terms = std::sync::Arc::clone(&self.terms);
        if (before.most_priority, before.most_clients) == (terms.most_priority, terms.most_clients) {
            return;
        }
        let slots: Vec<Slot> = self.holders.children().iter_slots().map(|(slot, _)| slot).collect();
        let mut cut_before = std::mem::take(self.holders.said_mut()).0;
        for slot in slots {
            let cut = cut_before.remove(&slot);
            let was_cut = cut.is_some();
            let said = cut.unwrap_or_else(|| bands(self.holders.at(slot).demands()));
            let capped = terms.capped(&said);
            let is_cut = matches!(capped, Cow::Owned(_));
            if !was_cut && !is_cut {
                // It counts as it says, before and after.
                continue;
            }
            let demands = Demands::from_bands(&capped);
            drop(capped);
            // Where there are too many priorities it stays as it is until it is heard of again.
            let fits = self.bands_with(&demands) <= cx.config.message.bands_per_resource;
            if fits || self.holders.at(slot).demands().iter().any(|demand| exceeds(demand.priority, &terms)) {
                let moved = self.holders.restate(slot, demands);
                self.take_up(moved);
            }
            if is_cut {
                self.holders.said_mut().0.insert(slot, said);
            }
            self.rank(slot);
        }
    }
}

fn exceeds(priority: i64, terms: &Template) -> bool {
    terms.most_priority.is_some_and(|most| priority > most)
}

fn bands(demands: &Demands) -> Bands {
    let band = |demand: lessor_algorithms::Demand| Band {
        priority: demand.priority,
        subclients: demand.weight,
        wants: demand.wants,
    };
    demands.iter().map(band).collect()
}
