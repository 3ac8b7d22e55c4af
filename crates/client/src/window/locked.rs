//! A window that is a part of a request: locked until all parts have answered.

use std::sync::{Arc, MutexGuard};

use lessor_proto::{Drift, Time};

use super::{Attention, WindowKey, WindowRoom, WindowState, WindowWatch};
use crate::denied::Denied;
use crate::mutation::HolderRules;
use crate::passing::Passing;

/// A window under its lock, and the room that was found in it.
#[derive(Debug)]
pub(crate) struct LockedWindow<'a> {
    state: MutexGuard<'a, WindowState>,
    drift: Drift,
    rules: HolderRules,
    found: Option<WindowRoom>,
    passing: &'a Passing,
}

// === impl WindowKey ===

impl WindowKey {
    /// Locks the window. The clock must be read after that.
    pub(crate) fn locked(&self) -> LockedWindow<'_> {
        let window = &self.window;
        LockedWindow {
            state: window.lock(),
            drift: window.drift,
            rules: window.rules,
            found: None,
            passing: &window.passing,
        }
    }

    /// Watches the window: whoever waits so is called when its lease is larger, or units come back, and there is one for it.
    pub(crate) fn watch(&self) -> WindowWatch<'_> {
        self.window.watchers.watch()
    }

    /// The address of the window, as the order of those that are locked together.
    pub(crate) fn address(self: &Arc<WindowKey>) -> usize {
        Arc::as_ptr(self).addr()
    }
}

// === impl LockedWindow ===

impl LockedWindow<'_> {
    /// The uses that can be made at `now`, `most` at the most, if they are `least` or more; all of these where everything is let
    /// pass. Nothing is made.
    ///
    /// # Errors
    ///
    /// See [`Denied`].
    pub(crate) fn room(&mut self, now: Time, least: u32, most: u32) -> Result<u32, Denied> {
        self.state.asked = now;
        let waiting = self.state.queue.as_ref().map_or(0, |queue| queue.units());
        let room = match waiting {
            0 => self.state.room(now, least, self.drift, self.rules),
            waiting => Err(Denied::OthersWait { waiting }),
        };
        self.found = room.as_ref().ok().copied();
        if self.passing.is_on() { Ok(most) } else { room.map(|room| room.units.min(most)) }
    }

    /// Makes `n` uses of the room that was found, and says whether somebody should look at it.
    pub(crate) fn make(mut self, n: u32) -> Attention {
        let Some(room) = self.found.filter(|room| n > 0 && n <= room.units) else {
            if n == 0 || !self.passing.lets(n) {
                return Attention::None;
            }
            let now = self.state.asked;
            self.state.missing.refuse(now, n);
            let attention = self.state.missing_is_news();
            return self.state.call(attention);
        };
        self.state.take(n, room);
        self.passing.note_granted(n);
        let attention = self.state.used(n);
        self.state.call(attention)
    }

    /// Misses the `n` uses that were denied at `now`, and says whether somebody should look at it.
    pub(crate) fn miss(mut self, now: Time, n: u32, denied: &Denied) -> Attention {
        if let Denied::AboveBurst { .. } = denied {
            return Attention::None;
        }
        self.state.missing.refuse(now, n);
        let attention = self.state.missing_is_news();
        self.state.call(attention)
    }
}
