//! Policies of domains go along with a grant to those who know of domains and have another version: when they ask first,
//! and when the policies have changed. Doorman's clients, and nodes, are never told.

use std::sync::Arc;

use lessor_client::internals::domain::Policies;
use lessor_proto::message::Report;
use lessor_proto::wire;

use super::Resource;
use super::holders::Knows;
use super::slab::Slot;
use crate::repository::Template;

// === impl Resource ===

impl Resource {
    /// The holder at `slot` shows which policies it has.
    pub(super) fn hear_of_domains(&mut self, slot: Slot, report: &Report) {
        let version = version(&self.terms);
        let knows = match report.domains {
            None => Knows::Nothing,
            Some(has) if has == version => Knows::These,
            Some(_) => Knows::Others,
        };
        self.holders.at_mut(slot).knows = knows;
    }

    /// The holder at `slot`, which listens, is to be told if it has other policies.
    pub(super) fn owe_domains(&mut self, slot: Slot) {
        if self.holders.at(slot).knows == Knows::Others {
            self.pusher.owe(slot);
        }
    }

    /// Returns the policies of domains to go along with the next grant to the holder at `slot`.
    pub(super) fn tell_of_domains(&mut self, slot: Slot) -> Option<Arc<wire::DomainPolicies>> {
        let child = self.holders.at_mut(slot);
        if child.knows != Knows::Others {
            return None;
        }
        // One that polls shows what it has with its next report, should this be lost.
        child.knows = Knows::These;
        let none = || Arc::new(lessor_client::internals::domain::none());
        Some(self.terms.domains.as_ref().map_or_else(none, |domains| domains.policies.to_wire()))
    }

    /// The policies of its domains, where clients share them.
    pub(crate) fn shared_policies(&self) -> Option<Arc<Policies>> {
        self.terms.shared_policies()
    }

    /// The template is another one than `before`: whoever knew its policies has to be told of others.
    pub(super) fn change_domains(&mut self, before: &Template) {
        if version(before) == version(&self.terms) {
            return;
        }
        let slots: Vec<Slot> = self.holders.children().iter_slots().map(|(slot, _)| slot).collect();
        for slot in slots {
            let child = self.holders.at_mut(slot);
            if child.knows == Knows::These {
                child.knows = Knows::Others;
            }
            self.owe_domains(slot);
        }
    }
}

/// The version of the policies of a template; 0 if it has none.
fn version(template: &Template) -> u32 {
    template.domains.as_ref().map_or(0, |domains| domains.policies.version())
}
