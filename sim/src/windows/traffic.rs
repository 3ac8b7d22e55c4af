//! The requests that come to holders of a window.

use std::fmt;

use lessor_proto::Time;

use super::WindowsRun;
use crate::rng::Rng;

/// The requests that come to holders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowsTraffic {
    /// At random at all holders alike: so many hundredths of what may be used.
    Even(u32),
    /// At random at one of them.
    One(u32),
    /// At random at one of them, which is another after each third of a window.
    Moving(u32),
    /// As many as may be used at each holder at one moment, once a window and a twentieth, in which all of them are free again.
    Bursts,
}

// === impl WindowsTraffic ===

impl WindowsTraffic {
    /// The moment of the next request at `holder`, or requests, and how many.
    pub(super) fn next(
        self,
        run: &WindowsRun,
        holder: usize,
        (begin, now): (Time, Time),
        rng: &mut Rng,
    ) -> Option<(Time, u32)> {
        let mean = |percent: u32, holders: usize| {
            run.window.mul_f64(100.0 * holders as f64 / f64::from(percent) / f64::from(run.limit))
        };
        match self {
            WindowsTraffic::Even(percent) => Some((now + rng.exponential(mean(percent, run.holders)), 1)),
            WindowsTraffic::One(_) if holder > 0 => None,
            WindowsTraffic::One(percent) => Some((now + rng.exponential(mean(percent, 1)), 1)),
            WindowsTraffic::Moving(percent) => {
                let stretch = run.window / 3;
                let mut at = now;
                // The next moment at which it is the turn of this one.
                loop {
                    let turn = at.since(begin).as_nanos() / stretch.as_nanos();
                    let end = begin + stretch * u32::try_from(turn + 1).unwrap_or(u32::MAX);
                    if turn % run.holders as u128 != holder as u128 {
                        at = end;
                        continue;
                    }
                    let next = at + rng.exponential(mean(percent, 1));
                    if next < end {
                        return Some((next, 1));
                    }
                    at = end;
                }
            }
            WindowsTraffic::Bursts => {
                let every = run.window + run.window / 20;
                let turn = now.since(begin).as_nanos() / every.as_nanos();
                Some((begin + every * u32::try_from(turn + 1).unwrap_or(u32::MAX), run.limit))
            }
        }
    }
}

impl fmt::Display for WindowsTraffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            WindowsTraffic::Even(percent) => format!("even, {percent} %"),
            WindowsTraffic::One(percent) => format!("one, {percent} %"),
            WindowsTraffic::Moving(percent) => format!("moving, {percent} %"),
            WindowsTraffic::Bursts => "bursts".to_owned(),
        };
        f.pad(&text)
    }
}
