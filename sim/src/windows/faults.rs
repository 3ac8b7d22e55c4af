//! Faults in a world of windows: holders die and come back, are not heard of for a while, or stand still, with their
//! clocks or without; servers are lost, and the next one knows nothing of what they granted.

use std::time::Duration;

use lessor_proto::{Epoch, Time};

use super::holder::SimulatedHolder;
use super::stations::HolderStation;
use super::world::{ROOT, WindowsEvent, WindowsWorld, node_config};
use crate::net::{Endpoint, NetMessage};

/// A holder that stands still.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standstill {
    until: Time,
    /// The time that its clock does not show.
    lost: Duration,
}

// === impl Standstill ===

impl Standstill {
    /// When it goes on.
    pub(super) fn until(self) -> Time {
        self.until
    }
}

// === impl WindowsWorld ===

impl WindowsWorld {
    /// Lets something go wrong, and something else a while later.
    pub(super) fn go_wrong(&mut self) {
        self.report.faults += 1;
        let slot = self.rng.index(self.run.holders);
        let holder = self.slots[slot];
        let lasts = self.rng.time(Duration::ZERO, self.run.lease() + self.run.window);
        match self.rng.below(10) {
            0..=2 => self.reborn(slot),
            3 | 4 => {
                // All that is said waits, in its order.
                let until = &mut self.holders[holder].unheard_until;
                *until = (*until).max(self.now + lasts);
            }
            5..=7 => self.stand_still(holder, lasts),
            8 => self.lose_server(ROOT),
            _ if self.run.leaves > 0 => {
                let leaf = 1 + self.rng.index(self.run.leaves);
                self.lose_server(leaf);
            }
            _ => self.lose_server(ROOT),
        }
        let next = self.now + self.rng.exponential(self.run.window / 4);
        if next < self.phases.calm_from {
            self.queue.put(next, WindowsEvent::Fault);
        }
    }

    /// A holder dies with all that it has, and another process takes its place, which has its name.
    fn reborn(&mut self, slot: usize) {
        let before = self.slots[slot];
        self.holders[before].holder = None;
        let home = self.net.home(Endpoint::Holder(before));
        let holder = self.net.add_holder(home);
        self.slots[slot] = holder;
        let life = SimulatedHolder::new(&self.run, slot, self.now, &mut self.rng);
        self.holders.push(HolderStation::new(life));
        self.attend(holder);
    }

    fn stand_still(&mut self, holder: usize, lasts: Duration) {
        if self.holders[holder].still.is_some() {
            return;
        }
        let is_shown = self.rng.chance(500);
        let until = self.now + lasts;
        let Some(found) = &mut self.holders[holder].holder else { return };
        if !is_shown {
            found.stop_clock(self.now);
        }
        let lost = if is_shown { Duration::ZERO } else { lasts };
        self.holders[holder].still = Some(Standstill { until, lost });
        self.queue.put(until, WindowsEvent::GoesOn(holder));
    }

    /// A holder that stood still goes on. Where its clock did so too, the date shows that.
    pub(super) fn go_on(&mut self, holder: usize) {
        let Some(Standstill { lost, .. }) = self.holders[holder].still.take() else { return };
        if let Some(found) = &mut self.holders[holder].holder {
            found.go_on(self.now, lost);
        }
        self.attend(holder);
    }

    /// A server is lost, and another one begins that knows nothing of what it granted.
    fn lose_server(&mut self, node: usize) {
        for message in self.net.lose(node) {
            match message {
                NetMessage::Down(to, event) => self.deliver(to, event),
                NetMessage::Up(from, action) => self.send(from, action),
            }
        }
        self.epoch += 1;
        let config = node_config(&self.run, node, Epoch(self.epoch));
        self.net.begin(self.now, node, config, self.run.repository());
        self.serve(node);
    }
}
