//! Policies of domains go along with a grant to those who know of domains and have another version: when they ask first,
//! and when the policies have changed. Doorman's clients, and nodes, are never told.

use std::sync::Arc;

use lessor_client::domain::{Policies, Scope};
use lessor_proto::message::{DomainReport, Down, Hello, HolderKind, Report};
use lessor_proto::{Time, wire};

use super::Resource;
use super::child::Knows;
use super::slab::Slot;
use crate::domain_sync::{DomainsStatus, SharedDomains};
use crate::node::{Peer, Peers};
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
        self.children.at_mut(slot).knows = knows;
    }

    /// The holder at `slot`, which listens, is to be told if it has other policies.
    pub(super) fn owe_domains(&mut self, slot: Slot) {
        if self.children.at(slot).knows == Knows::Others {
            self.streaming.owe(slot);
        }
    }

    /// What goes along with the next grant to the holder at `slot`.
    pub(super) fn tell_of_domains(&mut self, slot: Slot) -> Option<Arc<wire::DomainPolicies>> {
        let child = self.children.at_mut(slot);
        if child.knows != Knows::Others {
            return None;
        }
        // One that polls shows what it has with its next report, should this be lost.
        child.knows = Knows::These;
        let none = || Arc::new(lessor_client::domain::none());
        Some(self.terms.domains.as_ref().map_or_else(none, |domains| domains.policies.to_wire()))
    }

    /// The holder that listens on `peer` says what its domains did; of those that are not shared there is nothing to be said.
    pub(crate) fn hear_of_hits(&mut self, now: Time, peer: Peer, hello: &Hello, report: DomainReport) {
        let Some(policies) = self.shared_policies() else { return };
        if hello.kind == HolderKind::Node || self.listener(peer).is_none() {
            return;
        }
        let id = &self.id;
        let sync =
            self.domain_sync.get_or_insert_with(|| Box::new(SharedDomains::new(now, id.clone(), policies)));
        sync.hear(now, peer, hello, report);
    }

    /// Tells those who listen what domains did elsewhere, as far as it is time for that and their streams take it.
    pub(crate) fn tell_of_hits(&mut self, now: Time, peers: &mut Peers) {
        let Some(sync) = &mut self.domain_sync else { return };
        sync.advance(now);
        while let Some(peer) = sync.next_due(now) {
            match peers.takes(peer, &self.id) {
                true => sync.news(now, peer).into_iter().for_each(|news| {
                    peers.say(peer, Down::Domains(Box::new(news)));
                }),
                false => sync.put_off(peer),
            }
        }
    }

    /// The stream of `peer` takes something again.
    pub(crate) fn resume_hits(&mut self, now: Time, peer: Peer, peers: &mut Peers) {
        if let Some(sync) = &mut self.domain_sync {
            sync.resume(now, peer);
        }
        self.tell_of_hits(now, peers);
    }

    /// What clients tell each other, if they do, with at most `most` domains one by one.
    pub(super) fn domains_status(&self, now: Time, most: usize) -> Option<DomainsStatus> {
        self.domain_sync.as_ref().map(|sync| sync.status(now, most))
    }

    /// When there is something to tell.
    pub(super) fn wake_of_domains(&self) -> Option<Time> {
        self.domain_sync.as_ref().and_then(|sync| sync.wake())
    }

    fn shared_policies(&self) -> Option<Arc<Policies>> {
        let policies = self.terms.domains.as_ref().map(|domains| &domains.policies)?;
        (policies.scope() == Scope::Shared).then(|| Arc::clone(policies))
    }

    /// The template is another one than `before`: whoever knew its policies has to be told of others.
    pub(super) fn change_domains(&mut self, now: Time, before: &Template) {
        if version(before) == version(&self.terms) {
            return;
        }
        match (self.shared_policies(), &mut self.domain_sync) {
            (Some(policies), Some(sync)) => sync.follow(now, policies),
            (None, sync) => *sync = None,
            (Some(_), None) => {}
        }
        let slots: Vec<Slot> = self.children.iter_slots().map(|(slot, _)| slot).collect();
        for slot in slots {
            let child = self.children.at_mut(slot);
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
