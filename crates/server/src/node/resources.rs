//! The resources of a node by name, and when each has to be looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use lessor_proto::{ResourceId, Time};

use super::{Node, call_context};
use crate::resource::{CallContext, Resource};
use crate::streams::Peers;

/// All resources that somebody has asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Resources {
    entries: BTreeMap<ResourceId, ResourceEntry>,
    /// When resources have to be looked at, with their names.
    timeline: BTreeSet<(Time, ResourceId)>,
    /// Whether some resource has ever shared its capacity with another.
    coupled: bool,
    /// Holders of all of them together.
    holdings: usize,
    /// Those of which nobody had or wanted any when they were last called.
    vacant: BTreeSet<ResourceId>,
    /// Those that had holders which may make room, when they were last called.
    idling: BTreeSet<ResourceId>,
}

/// One of them.
#[derive(Clone, Debug)]
struct ResourceEntry {
    resource: Resource,
    /// The other one with which it shares its capacity.
    floor_pair: Option<ResourceId>,
    /// Where it stands on the timeline.
    booked: Option<Time>,
    /// Its holders, as they are counted among all.
    counted: usize,
    /// Whether it stands among those of which nobody has or wants any.
    is_vacant: bool,
    /// Whether it stands among those that have holders which may make room.
    is_idling: bool,
}

/// The surroundings of a call of a resource: what its node knows, and where what it says goes.
pub(super) struct Surroundings<'a> {
    pub(super) cx: CallContext<'a>,
    pub(super) peers: &'a mut Peers,
}

// === impl ResourceEntry ===

impl ResourceEntry {
    /// Whether the resource does not stand where it belongs on the timeline.
    fn is_displaced(&self) -> bool {
        self.booked != self.resource.wake()
    }

    /// Counts its holders among `all`.
    fn count(&mut self, all: &mut usize) {
        let counted = self.resource.holder_count();
        *all = *all - self.counted + counted;
        self.counted = counted;
    }

    /// Notes it among those that have holders which may make room, if it has any.
    fn note_idling(&mut self, idling: &mut BTreeSet<ResourceId>) {
        let is_idling = self.resource.has_idlers();
        if is_idling != self.is_idling {
            self.is_idling = is_idling;
            match is_idling {
                true => _ = idling.insert(self.resource.id().clone()),
                false => _ = idling.remove(self.resource.id()),
            }
        }
    }

    /// Notes it among those that are vacant, if it is.
    fn note_vacant(&mut self, vacant: &mut BTreeSet<ResourceId>) {
        let is_vacant = self.resource.is_vacant();
        if is_vacant && !self.is_vacant {
            vacant.insert(self.resource.id().clone());
        }
        self.is_vacant = is_vacant;
    }
}

// === impl Resources ===

impl Resources {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Holders of all of them together, each as often as it holds one.
    pub(super) fn holdings(&self) -> usize {
        self.holdings
    }

    /// Calls no more than `most` of them, those that come after one, and counts their holders anew, as time has passed for each.
    /// Returns the last, if there are more.
    pub(super) fn pass(
        &mut self,
        after: Option<&ResourceId>,
        most: usize,
        mut call: impl FnMut(&ResourceId, &mut Resource),
    ) -> Option<ResourceId> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = self.entries.range_mut::<ResourceId, _>((from, Bound::Unbounded));
        let mut last = None;
        for (id, entry) in rest.by_ref().take(most) {
            call(id, &mut entry.resource);
            entry.count(&mut self.holdings);
            last = Some(id);
        }
        last.filter(|_| rest.next().is_some()).cloned()
    }

    /// A resource of which nobody has or wants any, if there is one.
    pub(super) fn pop_vacant(&mut self) -> Option<ResourceId> {
        while let Some(id) = self.vacant.pop_first() {
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            entry.is_vacant = false;
            if entry.resource.is_vacant() {
                return Some(id);
            }
        }
        None
    }

    /// The next behind `before`, in order, of those that have holders which may make room; the first of all without one.
    pub(super) fn next_idling(&self, before: Option<&ResourceId>) -> Option<ResourceId> {
        let from = before.map_or(Bound::Unbounded, Bound::Excluded);
        self.idling.range::<ResourceId, _>((from, Bound::Unbounded)).next().cloned()
    }

    /// The resource is asked for: it makes no room before it was called again.
    pub(super) fn keep(&mut self, id: &ResourceId) {
        if !self.vacant.is_empty()
            && let Some(entry) = self.entries.get_mut(id).filter(|entry| entry.is_vacant)
        {
            entry.is_vacant = false;
            self.vacant.remove(id);
        }
    }

    pub(super) fn contains(&self, id: &ResourceId) -> bool {
        self.entries.contains_key(id)
    }

    pub(super) fn get(&self, id: &ResourceId) -> Option<&Resource> {
        self.entries.get(id).map(|entry| &entry.resource)
    }

    /// The resource of that name.
    pub(super) fn find(&self, name: &str) -> Option<(&ResourceId, &Resource)> {
        self.entries.get_key_value(name).map(|(id, entry)| (id, &entry.resource))
    }

    /// The resource, to change it. What changes when it has to be looked at is to be followed by
    /// [`Resources::reschedule`].
    pub(super) fn get_mut(&mut self, id: &ResourceId) -> Option<&mut Resource> {
        self.entries.get_mut(id).map(|entry| &mut entry.resource)
    }

    /// The names, in order.
    pub(super) fn names(&self) -> Vec<ResourceId> {
        self.entries.keys().cloned().collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&ResourceId, &Resource)> + Clone {
        self.entries.iter().map(|(id, entry)| (id, &entry.resource))
    }

    /// Those that come after a name, in order; all of them if that is absent.
    pub(super) fn after<'a>(
        &'a self,
        name: Option<&ResourceId>,
    ) -> impl Iterator<Item = (&'a ResourceId, &'a Resource)> + use<'a> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        self.entries.range::<ResourceId, _>((from, Bound::Unbounded)).map(|(id, entry)| (id, &entry.resource))
    }

    pub(super) fn insert(&mut self, id: ResourceId, resource: Resource, floor_pair: Option<ResourceId>) {
        self.coupled |= floor_pair.is_some();
        let entry = ResourceEntry {
            resource,
            floor_pair,
            booked: None,
            counted: 0,
            is_vacant: false,
            is_idling: false,
        };
        self.entries.insert(id, entry);
    }

    pub(super) fn remove(&mut self, id: &ResourceId) -> Option<Resource> {
        let ResourceEntry { resource, booked, counted, .. } = self.entries.remove(id)?;
        self.holdings -= counted;
        self.vacant.remove(id);
        self.idling.remove(id);
        if let Some(at) = booked {
            self.timeline.remove(&(at, id.clone()));
        }
        Some(resource)
    }

    /// The other resource with which one shares its capacity.
    pub(super) fn floor_pair(&self, id: &ResourceId) -> Option<&ResourceId> {
        // Hardly ever any, and asked for after each report.
        if !self.coupled {
            return None;
        }
        self.entries.get(id)?.floor_pair.as_ref()
    }

    /// The resource shares its capacity with `floor_pair` from here on.
    pub(super) fn set_floor_pair(&mut self, id: &ResourceId, floor_pair: Option<ResourceId>) {
        self.coupled |= floor_pair.is_some();
        if let Some(entry) = self.entries.get_mut(id) {
            entry.floor_pair = floor_pair;
        }
    }

    /// Puts a resource where it belongs on the timeline.
    pub(super) fn reschedule(&mut self, id: &ResourceId) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        let wake = entry.resource.wake();
        if entry.booked == wake {
            return;
        }
        if let Some(at) = std::mem::replace(&mut entry.booked, wake) {
            self.timeline.remove(&(at, id.clone()));
        }
        if let Some(at) = wake {
            self.timeline.insert((at, id.clone()));
        }
    }

    /// The first resource on the timeline whose time has come.
    pub(super) fn next_due(&self, now: Time) -> Option<ResourceId> {
        self.timeline.first().filter(|(at, _)| *at <= now).map(|(_, id)| id.clone())
    }

    /// When the first resource has to be looked at.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.timeline.first().map(|&(at, _)| at)
    }
}

// === impl Node ===

impl Node {
    /// Calls a resource at `now`, after what has ended there by then has: whoever keeps something about it hears of what has
    /// changed, and it is looked at again when it is time. Nothing if there is no such resource.
    pub(super) fn with<T>(
        &mut self,
        now: Time,
        id: &ResourceId,
        call: impl FnOnce(&mut Resource, Surroundings<'_>) -> T,
    ) -> Option<T> {
        self.with_advanced(now, id, |resource, around| {
            resource.advance(now);
            call(resource, around)
        })
    }

    /// The same of a resource that nothing has to end at, or that was advanced to `now` before.
    pub(super) fn with_advanced<T>(
        &mut self,
        now: Time,
        id: &ResourceId,
        call: impl FnOnce(&mut Resource, Surroundings<'_>) -> T,
    ) -> Option<T> {
        let outcome = self.call(id, call)?;
        self.follow(now, id);
        Some(outcome)
    }

    /// The same where nothing changes that anybody else keeps, or what does may be told with the next call.
    pub(super) fn with_unsaid<T>(
        &mut self,
        id: &ResourceId,
        call: impl FnOnce(&mut Resource, Surroundings<'_>) -> T,
    ) -> Option<T> {
        let outcome = self.call(id, call)?;
        self.resources.reschedule(id);
        Some(outcome)
    }

    /// The same of a resource that is asked: it stays where it is on the timeline, unless its answer has moved it.
    pub(super) fn with_asked<T>(
        &mut self,
        now: Time,
        id: &ResourceId,
        call: impl FnOnce(&mut Resource, Surroundings<'_>) -> Option<T>,
    ) -> Option<T> {
        let cx = call_context(&self.config, &self.marks, &self.tenure, &self.current_call);
        let entry = self.resources.entries.get_mut(id)?;
        let answer = call(&mut entry.resource, Surroundings { cx, peers: &mut self.streams.peers });
        entry.count(&mut self.resources.holdings);
        entry.note_vacant(&mut self.resources.vacant);
        entry.note_idling(&mut self.resources.idling);
        let is_displaced = answer.is_some() && entry.is_displaced();
        if entry.resource.has_waited() {
            self.counters.measured.take_from(entry.resource.waited());
        }
        // Nobody keeps anything about the resources of a node that is alone.
        let is_alone = self.marks.is_none() && self.parent.is_none() && !self.resources.coupled;
        if !is_alone || entry.resource.has_news() {
            self.sync(now, id);
        }
        if is_displaced {
            self.resources.reschedule(id);
        }
        answer
    }

    /// Calls a resource, and leaves it to the caller to let [others know](Node::follow).
    pub(super) fn call<T>(
        &mut self,
        id: &ResourceId,
        call: impl FnOnce(&mut Resource, Surroundings<'_>) -> T,
    ) -> Option<T> {
        let cx = call_context(&self.config, &self.marks, &self.tenure, &self.current_call);
        let entry = self.resources.entries.get_mut(id)?;
        let outcome = call(&mut entry.resource, Surroundings { cx, peers: &mut self.streams.peers });
        entry.count(&mut self.resources.holdings);
        entry.note_vacant(&mut self.resources.vacant);
        entry.note_idling(&mut self.resources.idling);
        if entry.resource.has_waited() {
            self.counters.measured.take_from(entry.resource.waited());
        }
        if entry.resource.take_forgot_all() {
            self.streams.peers.renew_soon();
        }
        Some(outcome)
    }

    /// Those who keep something about a resource hear of what has changed there, and it is looked at when it is time.
    pub(super) fn follow(&mut self, now: Time, id: &ResourceId) {
        self.sync(now, id);
        self.resources.reschedule(id);
    }
}
