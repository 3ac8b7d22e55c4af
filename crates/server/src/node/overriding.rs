//! Overrides of operators, put in force at a node.
//!
//! A holder that is drained counts as one that wants nothing, whatever it says, as one does whose lease is recalled: what it has
//! stays charged until it acknowledges that, or its lease has ended. Holders that listen are told so, a slice of them at a time; others
//! when they ask again. When a drain is over a stream is ended, and its holder comes back and says everything again.

use lessor_proto::message::{Ask, BoundBy, HolderKind, Refusal, Report};
use lessor_proto::{Amount, ClientId, ResourceId, Time};

use super::{Node, Peer};
use crate::mutation::Rule;
use crate::overrides::{OverrideStatus, Overrides};

// === impl Node ===

impl Node {
    /// Puts these overrides in force, and no others.
    pub fn set_overrides(&mut self, now: Time, overrides: &Overrides) {
        let overrides = overrides.at(now);
        if overrides == self.orders.overrides {
            return;
        }
        let before = std::mem::replace(&mut self.orders.overrides, overrides);
        for id in self.resources.names() {
            if before.is_about(&id) || self.orders.overrides.is_about(&id) {
                self.set_terms(now, &id);
            }
        }
        let drains = |kind, holder: &ClientId| {
            [&before, &self.orders.overrides].iter().any(|all| all.drains_some_of(kind, holder.as_str()))
        };
        let streams = self.streams.peers.iter().filter(|(_, stream)| {
            !stream.drained.is_empty() || drains(stream.hello.kind, &stream.hello.holder)
        });
        self.streams.sweep = streams.map(|(peer, _)| (peer, None)).collect();
    }

    /// The overrides that are in force.
    #[must_use]
    pub fn overrides(&self) -> &Overrides {
        &self.orders.overrides
    }

    /// The same, as they stand.
    #[must_use]
    pub fn override_status(&self, now: Time) -> Vec<OverrideStatus> {
        self.orders.overrides.status(now)
    }

    /// Lets end those whose time has come.
    pub(super) fn end_overrides(&mut self, now: Time) {
        if self.orders.overrides.next_end().is_some_and(|end| end <= now) {
            let lasting = self.orders.overrides.clone();
            self.set_overrides(now, &lasting);
        }
    }

    /// Whether an override lets somebody have nothing of a resource.
    pub(super) fn is_drained(&self, kind: HolderKind, holder: &ClientId, id: &ResourceId) -> bool {
        self.orders.overrides.drains(kind, holder, id).is_some()
            && self.config.rules.keep(Rule::DrainedWantsNothing)
    }

    /// All lives of the holder that asks want nothing of that of which it is drained: the request may be an old one, by which
    /// they would count as before.
    pub(super) fn drain_those_who_poll(&mut self, now: Time, ask: &Ask) {
        for Report { resource: id, .. } in &ask.reports {
            if !self.is_drained(ask.kind, &ask.holder, id) {
                continue;
            }
            self.with(now, id, |resource, around| {
                for life in resource.lives_of(ask.holder.as_str()) {
                    if life.kind == ask.kind && life.peer.is_none() && resource.wants_some(life.slot) {
                        resource.revoke(now, life.slot, BoundBy::Override, around.cx, around.peers);
                    }
                }
            });
        }
    }

    /// The request that came on a stream as it counts, while its holder may be held back: the stream remembers of what.
    pub(super) fn held_back_on(&mut self, now: Time, peer: Peer, ask: Ask) -> Ask {
        let Some(held_back) = self.held_back(now, &ask) else { return ask };
        let is_drained = |report: &&Report| self.is_drained(ask.kind, &ask.holder, &report.resource);
        let drained: Vec<ResourceId> =
            ask.reports.iter().filter(is_drained).map(|report| report.resource.clone()).collect();
        if let Some(stream) = self.streams.peers.get_mut(peer) {
            drained.iter().for_each(|id| stream.drained.insert(id));
        }
        held_back
    }

    /// Whether a report is refused because its holder is drained and is to be told so. Of one that has something it is heard what
    /// it gives up.
    pub(super) fn check_drained(&self, ask: &Ask, report: &Report) -> Result<(), Refusal> {
        let id = &report.resource;
        let Some(drain) =
            self.orders.overrides.drains(ask.kind, &ask.holder, id).filter(|drain| drain.is_denied)
        else {
            return Ok(());
        };
        let shows_some = report.has.as_ref().is_some_and(|has| has.capacity > Amount::ZERO);
        let is_charged =
            self.resources.get(id).is_some_and(|resource| resource.is_charged(ask, report, &self.config));
        match shows_some || is_charged {
            true => Ok(()),
            false => Err(drain.refusal(&ask.holder, id)),
        }
    }

    /// Goes on with the first of the streams that have to be looked at: a slice of its resources.
    pub(super) fn work_sweep(&mut self, now: Time) {
        let Some((peer, after)) = self.streams.sweep.pop() else { return };
        let Some(stream) = self.streams.peers.get(peer) else { return };
        let (kind, holder) = (stream.hello.kind, stream.hello.holder.clone());
        if stream.drained.iter().any(|id| !self.is_drained(kind, &holder, id)) {
            // What it wants of that was not heard.
            return self.drop_stream(now, peer);
        }
        let slice = self.config.heartbeat_slice;
        let ids: Vec<ResourceId> = stream.attached.after(after.as_ref()).take(slice).cloned().collect();
        let is_new = |id: &&ResourceId| !stream.drained.contains(id) && self.is_drained(kind, &holder, id);
        let drained: Vec<ResourceId> = ids.iter().filter(is_new).cloned().collect();
        drained.iter().for_each(|id| self.drain_on(now, peer, id));
        if let Some(last) = ids.last().filter(|_| ids.len() == slice) {
            self.streams.sweep.push((peer, Some(last.clone())));
        }
    }

    /// The holder at the other end gets nothing of that any more.
    fn drain_on(&mut self, now: Time, peer: Peer, id: &ResourceId) {
        self.streams.waiting.forget(peer, Some(std::slice::from_ref(id)));
        if let Some(stream) = self.streams.peers.get_mut(peer) {
            stream.drained.insert(id);
        }
        self.with(now, id, |resource, around| {
            if let Some(slot) = resource.listener(peer) {
                resource.revoke(now, slot, BoundBy::Override, around.cx, around.peers);
            }
        });
    }
}
