//! Windows, as the driver sees to them.

use lessor_proto::{ResourceId, Time};

use super::Driver;

// === impl Driver ===

impl Driver {
    /// Looks at the keys that were used or refused, and at those for which it is time.
    pub(super) fn look_at_windows(&mut self, now: Time) {
        let are_called = std::mem::take(&mut self.are_windows_called);
        if !are_called && now < self.windows.next_deadline() {
            return;
        }
        for keys in &self.window_keys {
            // Whoever stops asks for nothing more.
            let is_own = |id: &ResourceId| self.stopping.is_some() || self.open.contains_key(id);
            self.windows.hear(now, keys, is_own, &mut self.session);
        }
        self.windows.observe(now, &mut self.session);
    }
}
