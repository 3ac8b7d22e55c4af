//! Uses of a limit on windows: the real window of one holder, and its uses as they count, whatever the window thinks of them.

use std::collections::VecDeque;
use std::time::Duration;

use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::mutation::HolderRules;
use lessor_client::internals::window::{ExactWindow, WindowWant};
use lessor_proto::message::Unenforced;
use lessor_proto::{Amount, Drift, Time};

use super::Used;
use crate::clock::Clock;

/// A window, and the uses that were made of it.
#[derive(Debug)]
pub(crate) struct WindowUses {
    window: ExactWindow,
    /// The window, as operators have said it.
    length: Duration,
    /// The uses that count, in millionths, each until its window has passed in real time.
    made: VecDeque<(Time, u64)>,
}

// === impl WindowUses ===

impl WindowUses {
    /// One of which nothing was used, asked for first at `local`.
    pub(crate) fn new(local: Time, length: Duration, drift: Drift, rules: HolderRules) -> WindowUses {
        WindowUses { window: ExactWindow::with_rules(drift, rules, local), length, made: VecDeque::new() }
    }

    pub(super) fn allow(&self, local: Time, allowance: Allowance) {
        self.window.allow(local, allowance);
    }

    pub(super) fn in_use(&self, local: Time) -> Amount {
        Amount::from_units(self.window.in_use(local).into())
    }

    pub(super) fn used(&self, now: Time, clock: Clock) -> Vec<Used> {
        let counts = self.made.iter().filter(|(until, _)| now < *until);
        counts.map(|&(until, micros)| Used { micros, until: clock.at(until) }).collect()
    }

    /// A use, if it is to be had, when the clock of the machine shows `local`.
    pub(crate) fn make(&mut self, now: Time, local: Time) -> bool {
        self.made.retain(|(until, _)| now < *until);
        let passed = self.window.unenforced();
        // What is let pass is no use: it counts in no window.
        let is_made = self.window.try_acquire(1, || local).is_ok() && self.window.unenforced() == passed;
        if is_made {
            self.made.push_back((now + self.length, Amount::MICROS_PER_UNIT));
        }
        is_made
    }

    /// The uses that were asked for while everything was let pass.
    pub(super) fn unenforced(&self) -> Unenforced {
        self.window.unenforced_counts()
    }

    /// The statement of a driver about it.
    pub(crate) fn want(&self, local: Time, priority: i64) -> WindowWant {
        self.window.want(local, priority)
    }
}
