//! The keys of windows in a session: asked for, told what is leased, looked at, given back. For whoever drives the session.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::{Amount, ResourceId, Time};

use super::keys::WindowKey;
use super::{Unserved, WindowKeys};
use crate::allowance::Allowance;
use crate::holding::{Fallback, HoldingConfig, Kind, Surplus};
use crate::session::{Change, Session};

/// The interval at which it is asked which keys were used, as long as there are any.
const HEARD: Duration = Duration::from_millis(200);

/// The windows that a session holds, of any number of limits.
#[derive(Debug)]
pub struct WindowHolder {
    held: BTreeMap<ResourceId, HeldKey>,
    /// When to look at which.
    looks: BTreeSet<(Time, ResourceId)>,
    /// When to hear again which were used.
    next_hearing: Time,
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
        WindowHolder { held: BTreeMap::new(), looks: BTreeSet::new(), next_hearing: Time::MAX }
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
            match self.held.get(id) {
                Some(held) if Arc::ptr_eq(&held.key, &key) => self.look(now, &key, session),
                None if !is_own(id) => self.ask(now, keys, key, session),
                _ => key.window.bar(),
            }
        }
        let hears = !self.held.is_empty();
        self.next_hearing = if hears { now + HEARD } else { Time::MAX };
    }

    /// Lets a key use what a server allows, and says what is in use after that. Returns whether the change is about one of them.
    pub fn apply(&mut self, now: Time, change: &Change, session: &mut Session) -> bool {
        let Some(held) = self.held.get(&change.resource) else { return false };
        let window = &held.key.window;
        let fault = change.fault.clone().map(|fault| Unserved::Fault(Arc::new(fault)));
        window.explain(fault.or(change.learns_until.map(Unserved::Learning)));
        window.allow(now, change.allowance);
        // The limit is lowered, and the next report is not built: what is in use now is what it may say.
        session.set_in_use(now, &change.resource, Amount::from_units(window.in_use(now).into()));
        // Part of what it wants is at hand.
        let key = Arc::clone(&held.key);
        self.look(now, &key, session);
        true
    }

    /// Looks at those for which it is time, and gives back those that are idle.
    pub fn observe(&mut self, now: Time, session: &mut Session) {
        while let Some((_, id)) = self.looks.first().filter(|(at, _)| *at <= now)
            && let Some(held) = self.held.get(id)
        {
            let key = Arc::clone(&held.key);
            self.look(now, &key, session);
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
        let keys: Vec<_> = self.held.values().map(|held| Arc::clone(&held.key)).collect();
        for key in keys {
            key.window.bar();
            if let Some(held) = self.held.get_mut(key.resource()) {
                held.is_leaving = true;
            }
            self.look(now, &key, session);
        }
    }

    /// The program holds `resource` in another way from here on.
    pub fn yield_to_program(&mut self, now: Time, resource: &ResourceId) {
        if let Some(held) = self.held.remove(resource) {
            self.looks.remove(&(held.next_look, resource.clone()));
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
        session.add(now, id.clone(), config);
        self.looks.insert((want.next_look, id.clone()));
        let held = HeldKey { of: Arc::clone(of), key, next_look: want.next_look, is_leaving: false };
        self.held.insert(id, held);
    }

    fn look(&mut self, now: Time, key: &Arc<WindowKey>, session: &mut Session) {
        let id = key.resource();
        let Some(held) = self.held.get_mut(id) else { return };
        let mut want = key.window.want(now, held.of.options().priority);
        self.looks.remove(&(held.next_look, id.clone()));
        let is_over = match held.is_leaving {
            true => want.in_use == Amount::ZERO,
            false => want.is_idle && held.of.retire(now, key),
        };
        if held.is_leaving {
            want.bands.iter_mut().for_each(|band| band.wants = 0.0);
        }
        session.set_in_use(now, id, want.in_use);
        session.set_bands(now, id, want.bands);
        if is_over || held.is_leaving && !session.keeps_uses() {
            session.remove(now, id);
            self.held.remove(id);
            return;
        }
        held.next_look = want.next_look;
        self.looks.insert((held.next_look, id.clone()));
    }
}

impl Default for WindowHolder {
    fn default() -> WindowHolder {
        WindowHolder::new()
    }
}
