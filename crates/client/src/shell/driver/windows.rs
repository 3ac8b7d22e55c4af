//! Windows, as the driver sees to them.

use std::sync::Arc;

use lessor_proto::{ResourceId, Time};

use super::Driver;
use crate::session::Session;
use crate::window::{WindowHolder, WindowKeys};

/// The windows of a client, which its task drives.
pub(super) struct DrivenWindows {
    pub(super) holder: WindowHolder,
    /// The keys that those are of.
    pub(super) keys: Vec<Arc<WindowKeys>>,
    /// Some of them should be looked at.
    pub(super) are_called: bool,
}

// === impl DrivenWindows ===

impl DrivenWindows {
    pub(super) fn new() -> DrivenWindows {
        DrivenWindows { holder: WindowHolder::new(), keys: Vec::new(), are_called: false }
    }

    /// Looks at the keys that were used or refused, and at those for which it is time; `is_own` are not to be leased for them.
    fn look(&mut self, now: Time, is_own: impl Fn(&ResourceId) -> bool, session: &mut Session) {
        let are_called = std::mem::take(&mut self.are_called);
        if !are_called && now < self.holder.next_deadline() {
            return;
        }
        for keys in &self.keys {
            self.holder.hear(now, keys, &is_own, session);
        }
        self.holder.observe(now, session);
    }
}

// === impl Driver ===

impl Driver {
    /// Looks at the windows, unless nothing has happened there.
    pub(super) fn look_at_windows(&mut self, now: Time) {
        // Whoever stops asks for nothing more.
        let is_own = |id: &ResourceId| self.stopping.is_some() || self.open.contains_key(id);
        self.windows.look(now, is_own, &mut self.session);
    }
}
