//! What to ask for next, learned from what was attempted.
//!
//! Time is cut into windows. What was attempted in a window, granted or not, together with what waits at its end, is
//! what the window wanted; the demand follows the greatest want of the last few windows, so a rise counts at once and a
//! fall when the last window that wanted more is forgotten. On top comes a little headroom, so that growth shows as
//! growth.
//!
//! A program that does one thing after the other attempts no more than it is granted. So a window that ends with somebody
//! waiting wanted twice what it was granted, at least: the demand grows until the limiter is not what holds it up.
//!
//! Noise does not travel: while the stated demand lies between what was wanted and twice the headroom above it, it
//! stays. So a constant load leads to one statement; a step up is stated within one window, a step down one window after
//! the windows that are remembered.
//!
//! ```
//! use lessor_client::demand::{Estimator, Options};
//! use lessor_client::limiter::Usage;
//! use lessor_proto::{Amount, Time};
//!
//! let second = |s: u64| Time::from_nanos(s * 1_000_000_000);
//! let mut demand = Estimator::new(Options::default());
//! assert_eq!(demand.wants(), Amount::from_units(1)); // the floor
//! demand.observe_rate(second(0), Usage::default());
//! let wants = demand.observe_rate(second(1), Usage { attempted: 200, granted: 1, waiting: 0 });
//! assert_eq!(wants, Amount::from_units(220));
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use lessor_proto::{Amount, Time};

use crate::{gauge, limiter};

/// How the demand is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The shortest time over which a rate is measured.
    pub window: Duration,
    /// For how many windows a want is remembered; at least one.
    pub windows: u32,
    /// How much more than was wanted is asked for, in per cent.
    pub headroom_percent: u32,
    /// What is asked for at least, also by one who is idle.
    pub floor: Amount,
    /// What is asked for at most.
    pub most: Amount,
}

/// Watches use and says what we want next.
#[derive(Clone, Debug)]
pub struct Estimator {
    options: Options,
    /// Said by the program; nothing is measured then.
    fixed: Option<Amount>,
    stated: Amount,
    /// The running window's beginning, and what had been asked for and settled until then.
    begun: Option<(Time, Settled)>,
    /// The greatest want in the running window, for a gauge.
    running_peak: Amount,
    /// What the last windows wanted and when they ended, oldest first; greater ones only, so the first is the greatest.
    peaks: VecDeque<(Time, Amount)>,
}

/// Units since the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Settled {
    /// Granted or denied: attempted and not waiting any more.
    all: u64,
    granted: u64,
}

// === impl Options ===

impl Default for Options {
    /// Windows of a second, remembered for three; 10 % headroom; from one unit to anything.
    fn default() -> Options {
        Options {
            window: Duration::from_secs(1),
            windows: 3,
            headroom_percent: 10,
            floor: Amount::from_units(1),
            most: Amount::MAX,
        }
    }
}

// === impl Estimator ===

impl Estimator {
    /// An estimator that saw nothing yet and asks for the floor.
    #[must_use]
    pub fn new(options: Options) -> Estimator {
        Estimator {
            options,
            fixed: None,
            stated: options.floor.min(options.most),
            begun: None,
            running_peak: Amount::ZERO,
            peaks: VecDeque::new(),
        }
    }

    /// Asks for `wants` from here on, up to the most, whatever is used; `None` goes back to measuring.
    pub fn set(&mut self, wants: Option<Amount>) {
        self.fixed = wants;
    }

    /// What to ask for.
    #[must_use]
    pub fn wants(&self) -> Amount {
        self.fixed.map_or(self.stated, |wants| wants.min(self.options.most))
    }

    /// Learns what a limiter's counters read at `now`, and returns what to ask for. To be called about once a window;
    /// the first call only begins one.
    pub fn observe_rate(&mut self, now: Time, usage: limiter::Usage) -> Amount {
        let all = usage.attempted.saturating_sub(usage.waiting);
        let settled = Settled { all, granted: usage.granted };
        let Some((begun, before)) = self.begun else {
            self.begun = Some((now, settled));
            return self.wants();
        };
        let wanted = settled.all.saturating_sub(before.all).saturating_add(usage.waiting);
        // Of a window that still runs, what it wanted at least.
        let elapsed = now.since(begun);
        let mut want = per_second(wanted, elapsed.max(self.options.window));
        if elapsed >= self.options.window {
            if usage.waiting > 0 {
                // Who does one thing after the other attempts no more than it is granted, however much it could use.
                let doubled =
                    settled.granted.saturating_sub(before.granted).saturating_add(1).saturating_mul(2);
                want = want.max(per_second(doubled, elapsed));
            }
            self.begun = Some((now, settled));
            self.close_window(now, want);
        }
        self.state(now, want, Amount::from_micros(1));
        self.wants()
    }

    /// Learns how a gauge was used until `now`, and returns what to ask for, in whole units. Every
    /// [`gauge::Gauge::usage`] must come here, since its peak begins anew each time.
    pub fn observe_gauge(&mut self, now: Time, usage: gauge::Usage) -> Amount {
        let (begun, _) = *self.begun.get_or_insert((now, Settled::default()));
        self.running_peak = self.running_peak.max(Amount::from_units(usage.peak));
        let want = self.running_peak;
        if now.since(begun) >= self.options.window {
            self.begun = Some((now, Settled::default()));
            self.running_peak = Amount::from_units(usage.in_use.saturating_add(usage.waiting));
            self.close_window(now, want);
        }
        self.state(now, want, Amount::from_units(1));
        self.wants()
    }

    fn close_window(&mut self, now: Time, want: Amount) {
        while self.peaks.back().is_some_and(|&(_, less)| less <= want) {
            self.peaks.pop_back();
        }
        self.peaks.push_back((now, want));
    }

    /// States what follows from the remembered wants and the running one, if it differs enough; in multiples of
    /// `grain`.
    fn state(&mut self, now: Time, running: Amount, grain: Amount) {
        let Options { window, windows, headroom_percent, floor, most } = self.options;
        let memory = window.saturating_mul(windows.max(1));
        while self.peaks.len() > 1 && self.peaks.front().is_some_and(|&(at, _)| now.since(at) >= memory) {
            self.peaks.pop_front();
        }
        let peak = self.peaks.front().map_or(running, |&(_, want)| want.max(running));
        let least = peak.max(floor).min(most);
        let greatest = above(peak, headroom_percent.saturating_mul(2), grain).max(floor).min(most);
        if self.stated < least || self.stated > greatest {
            self.stated = above(peak, headroom_percent, grain).max(floor).min(most);
        }
    }
}

/// `units` in `time`, as a rate.
fn per_second(units: u64, time: Duration) -> Amount {
    let micro_nanos = u128::from(Amount::from_units(units).as_micros()) * 1_000_000_000;
    Amount::from_micros(u64::try_from(micro_nanos / time.as_nanos().max(1)).unwrap_or(u64::MAX))
}

/// `amount` and so many per cent more, rounded up to a multiple of `grain`.
fn above(amount: Amount, percent: u32, grain: Amount) -> Amount {
    let more = u128::from(amount.as_micros()) * (100 + u128::from(percent));
    let grain = u128::from(grain.as_micros());
    let rounded = more.div_ceil(100 * grain) * grain;
    Amount::from_micros(u64::try_from(rounded).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
