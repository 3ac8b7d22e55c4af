//! The keys of windows in a session: asked for, told what is leased, looked at, given back. For whoever drives the session.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::{Amount, ResourceId, Time};

use super::keys::WindowKey;
use super::{Unserved, WindowKeys};
use crate::allowance::Allowance;
use crate::holding::{Fallback, HoldingConfig, Kind, Surplus};
use crate::session::{Change, Session};
use crate::table::{Table, hasher};

/// The interval at which it is asked which keys were used, as long as there are any.
const HEARD: Duration = Duration::from_millis(200);

/// The windows that a session holds, of any number of limits.
#[derive(Debug)]
pub struct WindowHolder {
    held: HeldKeys,
    /// When to look at which, by its place.
    looks: BTreeSet<(Time, usize)>,
    /// When to hear again which were used.
    next_hearing: Time,
}

/// Keys that are held, each in a place of its own as long as it is.
#[derive(Debug)]
struct HeldKeys {
    slots: Vec<Option<HeldKey>>,
    free: Vec<usize>,
    by_name: Table<usize>,
    hasher: RandomState,
}

#[derive(Debug)]
struct HeldKey {
    of: Arc<WindowKeys>,
    key: Arc<WindowKey>,
    next_look: Time,
    /// Nothing is granted any more; it is given back when nothing is in use.
    is_leaving: bool,
}

// === impl WindowHolder ===

impl WindowHolder {
    /// One that holds nothing.
    #[must_use]
    pub fn new() -> WindowHolder {
        WindowHolder { held: HeldKeys::new(), looks: BTreeSet::new(), next_hearing: Time::MAX }
    }

    /// Looks at those of `keys` that ask for it, and asks for those that are new. What is held for the program in another way,
    /// as `is_own` says, cannot be had. To be called when the waker of the keys was woken, and at
    /// [`WindowHolder::next_deadline`].
    pub fn hear(
        &mut self,
        now: Time,
        keys: &Arc<WindowKeys>,
        is_own: impl Fn(&ResourceId) -> bool,
        session: &mut Session,
    ) {
        for key in keys.take_looks() {
            let id = key.resource();
            match self.held.find(id) {
                Some(place) if self.held.at(place).is_some_and(|held| Arc::ptr_eq(&held.key, &key)) => {
                    self.look(now, place, session);
                }
                None if !is_own(id) => self.ask(now, keys, key, session),
                _ => key.window.bar(),
            }
        }
        let hears = !self.held.is_empty();
        self.next_hearing = if hears { now + HEARD } else { Time::MAX };
    }

    /// Lets a key use what a server allows, and says what is in use after that. Returns whether the change is about one of them.
    pub fn apply(&mut self, now: Time, change: &Change, session: &mut Session) -> bool {
        let Some(place) = self.held.find(&change.resource) else { return false };
        let Some(held) = self.held.at(place) else { return false };
        let window = &held.key.window;
        let fault = change.fault.clone().map(|fault| Unserved::Fault(Arc::new(fault)));
        window.explain(fault.or(change.learns_until.map(Unserved::Learning)));
        window.allow(now, change.allowance);
        // The limit is lowered, and the next report is not built: what is in use now is what it may say.
        session.set_in_use(now, &change.resource, Amount::from_units(window.in_use(now).into()));
        // Part of what it wants is at hand.
        self.look(now, place, session);
        true
    }

    /// Looks at those for which it is time, and gives back those that are idle.
    pub fn observe(&mut self, now: Time, session: &mut Session) {
        while let Some(&(at, place)) = self.looks.first()
            && at <= now
        {
            self.look(now, place, session);
        }
    }

    /// When to come back at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Time {
        self.looks.first().map_or(Time::MAX, |&(at, _)| at).min(self.next_hearing)
    }

    /// Grants nothing from here on. Each key is given back when nothing of it is in use; what is so longer than this process
    /// lives is left to its lease.
    pub fn leave(&mut self, now: Time, session: &mut Session) {
        for place in 0..self.held.slots.len() {
            if let Some(Some(held)) = self.held.slots.get_mut(place) {
                held.key.window.bar();
                held.is_leaving = true;
                self.look(now, place, session);
            }
        }
    }

    /// The program holds `resource` in another way from here on.
    pub fn yield_to_program(&mut self, now: Time, resource: &ResourceId) {
        if let Some(place) = self.held.find(resource)
            && let Some(held) = self.held.remove(place)
        {
            self.looks.remove(&(held.next_look, place));
            held.key.window.bar();
            held.key.window.allow(now, Allowance::NOTHING);
        }
    }

    /// Whether it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    fn ask(&mut self, now: Time, of: &Arc<WindowKeys>, key: Arc<WindowKey>, session: &mut Session) {
        let want = key.window.want(now, of.options().priority);
        let config = HoldingConfig {
            kind: Kind::Gauge,
            bands: want.bands,
            fallback: Fallback::Pessimistic,
            surplus: Surplus::Yield,
        };
        let id = key.resource().clone();
        session.add(now, id, config);
        let held = HeldKey { of: Arc::clone(of), key, next_look: want.next_look, is_leaving: false };
        let place = self.held.insert(held);
        self.looks.insert((want.next_look, place));
    }

    /// Looks at the key in `place`.
    fn look(&mut self, now: Time, place: usize, session: &mut Session) {
        let Some(held) = &mut self.held.slots[place] else { return };
        let mut want = held.key.window.want(now, held.of.options().priority);
        let is_over = match held.is_leaving {
            true => want.in_use == Amount::ZERO,
            false => want.is_idle && held.of.retire(now, &held.key),
        };
        if held.is_leaving {
            want.bands.iter_mut().for_each(|band| band.wants = 0.0);
        }
        let before = std::mem::replace(&mut held.next_look, want.next_look);
        let id = held.key.resource();
        session.set_use(now, id, want.in_use, want.bands);
        // Hardly any is ever let pass, and each key is looked at.
        let unenforced = held.key.window.unenforced_counts();
        if !unenforced.is_none() {
            session.set_unenforced(id, unenforced);
        }
        if is_over || held.is_leaving && !session.keeps_uses() {
            session.remove(now, id);
            self.looks.remove(&(before, place));
            self.held.remove(place);
        } else if before != want.next_look {
            self.looks.remove(&(before, place));
            self.looks.insert((want.next_look, place));
        }
    }
}

// === impl HeldKeys ===

impl HeldKeys {
    fn new() -> HeldKeys {
        HeldKeys { slots: Vec::new(), free: Vec::new(), by_name: Table::new(), hasher: hasher() }
    }

    fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len()
    }

    fn at(&self, place: usize) -> Option<&HeldKey> {
        self.slots.get(place)?.as_ref()
    }

    /// The place of a resource, if it is held.
    fn find(&self, resource: &ResourceId) -> Option<usize> {
        self.by_name.get(self.entry(resource)?).copied()
    }

    /// Adds a key that is not held, and returns its place.
    fn insert(&mut self, held: HeldKey) -> usize {
        let hash = hash(&self.hasher, held.key.resource());
        let place = self.free.pop().unwrap_or(self.slots.len());
        match self.slots.get_mut(place) {
            Some(free) => *free = Some(held),
            None => self.slots.push(Some(held)),
        }
        self.by_name.insert(hash, place, |&place| hash_at(&self.slots, &self.hasher, place));
        place
    }

    fn remove(&mut self, place: usize) -> Option<HeldKey> {
        let entry = self.at(place).and_then(|held| self.entry(held.key.resource()))?;
        self.by_name.take_out(entry, |&place| hash_at(&self.slots, &self.hasher, place));
        self.free.push(place);
        let held = self.slots[place].take();
        if self.is_empty() {
            *self = HeldKeys::new();
        }
        held
    }

    fn entry(&self, resource: &ResourceId) -> Option<usize> {
        let is_it = |&place: &usize| self.at(place).is_some_and(|held| held.key.resource() == resource);
        self.by_name.find(hash(&self.hasher, resource), is_it)
    }
}

fn hash(hasher: &RandomState, resource: &ResourceId) -> u32 {
    hasher.hash_one(resource.as_str()) as u32
}

fn hash_at(slots: &[Option<HeldKey>], hasher: &RandomState, place: usize) -> u32 {
    match &slots[place] {
        Some(held) => hash(hasher, held.key.resource()),
        None => unreachable!("there is a key in place {place}"),
    }
}

impl Default for WindowHolder {
    fn default() -> WindowHolder {
        WindowHolder::new()
    }
}
