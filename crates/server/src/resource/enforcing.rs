//! The part of all clients that keeps to leases: the others let everything pass, which they are told with each grant. So they are
//! of a second limit that is tried. The grants are the same for all. What those others would have refused they count, and their
//! reports say it; a node says the sum of it to the node above.

use lessor_proto::message::{HolderKind, Report, Unenforced};

use super::Resource;
use super::holders::Child;
use super::slab::Slot;
use crate::repository::Template;

// === impl Resource ===

impl Resource {
    /// Whether the holder at `slot` is to let everything pass.
    pub(super) fn lets_pass(&self, slot: Slot) -> bool {
        let child = self.holders.at(slot);
        self.terms.lets_pass(child.kind, &child.name)
    }

    /// Whether the holder at `slot` is told that a second limit is tried.
    pub(super) fn tells_beside(&self, slot: Slot) -> bool {
        let child = self.holders.at(slot);
        self.terms.tells_beside(child.kind, child.flags.incarnated)
    }

    /// The template is another one than `before`: whoever listens is told whether it keeps to its lease, and whether a second
    /// limit is tried.
    pub(super) fn change_enforcing(&mut self, before: &Template) {
        let is_tried = |template: &Template| template.beside.is_some();
        if before.enforce == self.terms.enforce && is_tried(before) == is_tried(&self.terms) {
            return;
        }
        let told = |template: &Template, child: &Child| {
            let passes = template.lets_pass(child.kind, &child.name);
            (passes, template.tells_beside(child.kind, child.flags.incarnated))
        };
        let others = self.holders.children().iter_slots();
        let others = others.filter(|(_, child)| told(before, child) != told(&self.terms, child));
        let slots: Vec<Slot> = others.map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.pusher.owe(slot));
        let passing = self.holders.children().iter_slots();
        let passing = passing.filter(|(_, child)| self.terms.lets_pass(child.kind, &child.name));
        let silent = passing.filter(|&(slot, _)| !self.holders.counts_units(slot)).count();
        self.holders.tally_mut().set_silent(silent);
    }

    /// The units that were asked for while everything was let pass, as all below have said them.
    pub(crate) fn unenforced(&self) -> Unenforced {
        self.holders.unenforced()
    }

    /// A holder has come to `slot`, and has said nothing yet.
    pub(super) fn note_newcomer(&mut self, slot: Slot) {
        if self.lets_pass(slot) {
            self.holders.tally_mut().note_silent(true);
        }
    }

    /// The holder at `slot` is about to be forgotten. What it has said stays.
    pub(super) fn note_leaver(&mut self, slot: Slot) {
        if self.holders.counts_units(slot) {
            let tally = self.holders.tally_mut();
            tally.set_counting(slot, false);
            tally.set_below(slot, 0);
        } else if self.lets_pass(slot) {
            self.holders.tally_mut().note_silent(false);
        }
    }

    /// Takes up what the holder at `slot` says in a report that was not heard before.
    pub(super) fn hear_of_units(&mut self, slot: Slot, report: &Report) {
        let (is_node, counts) =
            (self.holders.at(slot).kind == HolderKind::Node, self.holders.counts_units(slot));
        // A node that says nothing has nobody silent any more.
        if report.unenforced.is_none() && !(is_node && counts) {
            return;
        }
        let said = report.unenforced.unwrap_or_default();
        let was_silent = !counts && self.lets_pass(slot);
        let tally = self.holders.tally_mut();
        tally.add(said);
        tally.set_counting(slot, true);
        if is_node {
            tally.set_below(slot, said.silent);
        } else if was_silent {
            tally.note_silent(false);
        }
    }
}
