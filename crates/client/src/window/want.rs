//! The want of a window: what a report says of it, and when to look again.
//!
//! Units that are spent or waited for are wanted as urgently as the program asks. Those that lie unused are kept at hand as long as the
//! key is asked for now and then, and wanted after everything that anybody wants: so they go to whoever needs them, for one message
//! in each direction, and stay where they were used last as long as nobody does.
//!
//! A fall of what is spent is told, as only the holder sees it: units are free by age. With that the grantor need not ask who
//! has something unused when somebody waits for it.

use std::time::Duration;

use lessor_proto::message::{Band, Bands};
use lessor_proto::{Amount, Drift, Time};

use super::{Attention, ExactWindow, WindowState};

/// The want of a window at a moment.
#[derive(Clone, PartialEq, Debug)]
pub struct WindowWant {
    /// The units that are spent or waited for, and those to be kept at hand besides.
    pub bands: Bands,
    /// The units in use, read in the same step.
    pub in_use: Amount,
    /// When to look again if nothing else happens; [`Time::MAX`] if there is nothing to see.
    pub next_look: Time,
    /// Nothing is in use, and nobody has asked for a while.
    pub is_idle: bool,
}

/// A key that was not asked for in this time keeps nothing at hand.
const SILENT: Duration = Duration::from_secs(10);
/// The uses of so long are wanted at hand, or as many as are in use, when less than half of that is.
const AHEAD: Duration = Duration::from_millis(250);
/// The time over which uses are counted for that.
const COUNTED: Duration = Duration::from_secs(1);
/// No holder wants more ahead than this part of the limit.
const MOST_AHEAD: u32 = 8;
/// A part of a window: at such intervals a holder looks what is free by age, within the bounds.
const LOOKS: u32 = 200;
const LOOK: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(200)];

// === impl ExactWindow ===

impl ExactWindow {
    /// The want at `now`, with `priority`.
    #[must_use]
    pub fn want(&self, now: Time, priority: i64) -> WindowWant {
        let mut state = self.lock();
        state.kept.end_until(now);
        state.attention = Attention::None;
        let in_use = state.kept.units();
        let waiting = state.queue.as_ref().map_or(0, |queue| queue.units());
        state.missing.forget_old(now, waiting > 0);
        let most = state.window.map_or(u64::MAX, |window| window.limit.into());
        let urgent = state.urgent();
        state.said = urgent;
        let is_silent = now.since(state.asked) >= SILENT;
        let at_hand = u64::from(if now < state.until { state.limit } else { 0 }).saturating_sub(urgent);
        let ahead = state.window.map_or(0, |window| {
            let hold = self.drift.outlasting(window.length);
            let counted = COUNTED.min(hold);
            let made = state.kept.kept_past((now + hold).earlier(counted));
            let expected = (Duration::from_secs(made.into()).as_secs_f64() * AHEAD.as_secs_f64()
                / counted.as_secs_f64()) as u32;
            // A key that has been used a lot is so again: with as many ahead as are in use it asks a few times, and not for each.
            u64::from(expected.max(in_use).min(window.limit / MOST_AHEAD))
        });
        let is_enough = at_hand >= ahead.div_ceil(2);
        state.quiet = if is_silent { 0 } else { state.quiet(at_hand, ahead, self.drift) };
        let kept = if is_enough { at_hand } else { ahead };
        let reserve = if is_silent { 0 } else { kept.min(most.saturating_sub(urgent)) };
        let is_idle = is_silent && in_use == 0 && waiting == 0;
        if in_use == 0 {
            state.kept.shrink();
        }
        let [least, longest] = LOOK;
        let pace = state.window.map_or(least, |window| (window.length / LOOKS).clamp(least, longest));
        let silent_at = if is_silent { Time::MAX } else { state.asked + SILENT };
        let free_at = state.kept.first_end().unwrap_or(Time::MAX);
        let forget_at = state.missing.forget_at();
        let next_look = silent_at.min(free_at).min(forget_at).max(now + pace);
        let band = |priority, wants: u64| Band { priority, subclients: 1, wants: wants as f64 };
        WindowWant {
            bands: [band(priority, urgent), band(Band::RESERVE, reserve)].into_iter().collect(),
            in_use: Amount::from_units(in_use.into()),
            next_look,
            is_idle,
        }
    }
}

// === impl WindowState ===

impl WindowState {
    /// The uses that may be made before it is looked at again, where so many units are at hand of those that are wanted: of them as
    /// many as leave enough for what is wanted by then, and a quarter of what is in use, so that what is said of that is about
    /// right. A use in a short window is looked at in any case, as it may be free before the next look that there is without it: at the
    /// latest when nobody has asked for a while.
    fn quiet(&self, at_hand: u64, ahead: u64, drift: Drift) -> u32 {
        let is_long = self.window.is_some_and(|window| drift.outlasting(window.length) > SILENT + LOOK[1]);
        let spare = (2 * at_hand).saturating_sub(ahead) / 3;
        if is_long { u32::try_from(spare).unwrap_or(u32::MAX).min(self.kept.units() / 4) } else { 0 }
    }

    /// Whether nothing is in use at `now`, and nobody has asked for a while or waits.
    pub(super) fn is_idle(&mut self, now: Time) -> bool {
        self.kept.end_until(now);
        self.queue.is_none() && self.kept.units() == 0 && now.since(self.asked) >= SILENT
    }
}
