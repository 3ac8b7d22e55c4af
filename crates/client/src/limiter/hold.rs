//! A limiter that is held still between the question what there is and the taking, for who takes from several at once.

use std::sync::MutexGuard;

use lessor_proto::Time;

use super::central::Central;
use super::{Denied, Limiter, notify};

/// The bucket of a limiter under its lock: what there is room for can be taken, and nothing has to be given back. Meanwhile
/// others are served from their shards alone. Nothing else is locked under it but other limiters, in the order of their
/// [addresses](Limiter::address), and for a moment the second limit that is tried beside it.
#[derive(Debug)]
pub(crate) struct Hold<'a> {
    limiter: &'a Limiter,
    /// Present until it is dropped.
    central: Option<MutexGuard<'a, Central>>,
    now: Time,
    /// The units that there are of those that there is room for; absent: all of them.
    there: Option<u32>,
}

// === impl Limiter ===

impl Limiter {
    /// Holds it still until that is dropped.
    pub(crate) fn hold(&self, now: Time) -> Hold<'_> {
        Hold { limiter: self, central: Some(self.take_over()), now, there: None }
    }

    /// By which several are put in order.
    pub(crate) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

// === impl Hold ===

impl Hold<'_> {
    /// Units that can be taken at once, up to `most`; all of these where everything is let pass.
    ///
    /// # Errors
    /// If that is less than `least`; which then counts as denied.
    pub(crate) fn room(&mut self, least: u32, most: u32) -> Result<u32, Denied> {
        let now = self.now;
        let room = match &mut self.central {
            Some(central) => central.room(least, most, now, &self.limiter.shards),
            None => unreachable!("it is held until it is dropped"),
        };
        if self.limiter.passing.is_on() {
            self.there = Some(room.unwrap_or(0));
            return Ok(most);
        }
        if room.is_err() {
            self.limiter.shards.count_denied(least);
        }
        room
    }

    /// Takes units for which there is room.
    pub(crate) fn take(&mut self, n: u32) {
        // What is not there passes.
        let there = self.there.map_or(n, |there| there.min(n));
        if n > there {
            self.limiter.shards.count_denied(n - there);
            self.limiter.passing.count(n - there);
        }
        if let Some(central) = &mut self.central {
            central.spend(there, &self.limiter.shards);
        }
        self.limiter.pass_on(n, || self.now);
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
