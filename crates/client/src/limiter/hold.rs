//! A limiter that is held still between the question what there is and the taking, for who takes from several at once.

use std::sync::MutexGuard;

use lessor_proto::Time;

use super::central::Central;
use super::{Denied, Limiter, notify};

/// The bucket of a limiter under its lock: what there is room for can be taken, and nothing has to be given back. Meanwhile
/// others are served from their shards alone. Nothing else is locked under it but other limiters, in the order of their
/// [addresses](Limiter::address).
#[derive(Debug)]
pub(crate) struct Hold<'a> {
    limiter: &'a Limiter,
    /// Present until it is dropped.
    central: Option<MutexGuard<'a, Central>>,
    now: Time,
}

// === impl Limiter ===

impl Limiter {
    /// Holds it still until that is dropped.
    pub(crate) fn hold(&self, now: Time) -> Hold<'_> {
        Hold { limiter: self, central: Some(self.take_over()), now }
    }

    /// By which several are put in order.
    pub(crate) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

// === impl Hold ===

impl Hold<'_> {
    /// Units that can be taken at once, up to `most`.
    ///
    /// # Errors
    /// If that is less than `least`; which then counts as denied.
    pub(crate) fn room(&mut self, least: u32, most: u32) -> Result<u32, Denied> {
        let now = self.now;
        let room = match &mut self.central {
            Some(central) => central.room(least, most, now, &self.limiter.shards),
            None => unreachable!("it is held until it is dropped"),
        };
        if room.is_err() {
            self.limiter.shards.count_denied(least);
        }
        room
    }

    /// Takes units for which there is room.
    pub(crate) fn take(&mut self, n: u32) {
        if let Some(central) = &mut self.central {
            central.spend(n, &self.limiter.shards);
        }
    }

    /// Units that were wanted as well and were not there.
    pub(crate) fn lacks(&self, n: u32) {
        self.limiter.shards.count_denied(n);
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        if let Some(central) = self.central.take() {
            self.limiter.publish(&central, self.now);
            notify(central);
        }
    }
}
