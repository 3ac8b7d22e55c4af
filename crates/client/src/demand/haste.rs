//! When a client speaks of its demand before its next look: at the first refusal, and when it has fallen quiet.
//!
//! A *knock* says what is certain after a tenth of a second, `sure = (N - 2 sqrt N) / w` of the N attempts in the last w: a
//! Poisson process of that mean shows as many one time in forty. One knock is under way at a time, and one that
//! brought nothing is not repeated within a second, unless what is sure rose by a tenth.
//!
//! *Quiet* is the same the other way round: half a second with N attempts bounds the mean by `(N + 2 sqrt N + 4) / 0.5`.

use std::time::Duration;

use lessor_proto::{Amount, Time};

use super::peak::Peak;

/// The spans over which attempts are sure enough.
const SURE: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];
/// The span over which quiet is heard.
const QUIET: Duration = Duration::from_millis(500);
/// So soon after a knock it is looked again whether more is certain.
pub const SOON: Duration = Duration::from_millis(100);
/// A knock that brought nothing is not repeated for so long.
const PAUSE: Duration = Duration::from_secs(1);
/// A knock has brought nothing if nothing came for so long.
const ANSWERED: Duration = Duration::from_millis(250);

/// The last knock.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Knocks {
    last: Option<Knock>,
    /// When it was, whatever came of it.
    refused: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct Knock {
    at: Time,
    sure: Amount,
}

/// Whether the limiter may knock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Door {
    /// It may: what is held may not be all that can be had.
    Open,
    /// It has knocked, and no answer can have come.
    Knocked,
    /// The last knock brought nothing, so this is all that can be had.
    Shut,
}

// === impl Knocks ===

impl Knocks {
    pub(super) fn knock(&mut self, now: Time, sure: Amount) {
        self.last = Some(Knock { at: now, sure });
        self.refused = Some(now);
    }

    /// Whether something was refused in the last second.
    pub(super) fn is_recent(&self, now: Time) -> bool {
        self.refused.is_some_and(|at| now.since(at) < PAUSE)
    }

    /// More came: the next refusal is the first one again.
    pub(super) fn open(&mut self) {
        self.last = None;
    }

    pub(super) fn door(&self, now: Time, sure: Amount) -> Door {
        match self.last {
            None => Door::Open,
            Some(knock) if now.since(knock.at) >= PAUSE => Door::Open,
            Some(knock) if now.since(knock.at) < ANSWERED => Door::Knocked,
            Some(knock) if sure.as_f64() > knock.sure.as_f64() * 1.1 => Door::Open,
            Some(_) => Door::Shut,
        }
    }
}

/// The mean that is certain at `now`.
pub(super) fn sure(now: Time, peak: &Peak) -> Amount {
    let rates = SURE.map(|span| {
        let units = peak.last(now, span) as f64;
        ((units - 2.0 * units.sqrt()) / span.as_secs_f64()).max(0.0)
    });
    Amount::from_f64(rates.into_iter().fold(0.0, f64::max))
}

/// The mean that is certainly not exceeded at `now`.
pub(super) fn bound(now: Time, peak: &Peak) -> Amount {
    let units = peak.last(now, QUIET) as f64;
    Amount::from_f64((units + 2.0 * units.sqrt() + 4.0) / QUIET.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::super::peak::Attempts;
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    fn steady(rate: u64, millis: u64) -> Peak {
        let mut peak = Peak::new(Duration::from_millis(50));
        let step = 1_000 / rate;
        (0..millis).step_by(step as usize).for_each(|m| peak.count(Attempts { at: at(m), units: 1 }));
        peak
    }

    #[test]
    fn what_is_sure_lies_below_the_mean_and_comes_near_to_it() {
        let peak = steady(200, 1_000);
        let sure = sure(at(1_000), &peak).as_f64();
        assert!((165.0..200.0).contains(&sure), "{sure}");
        let early = super::sure(at(100), &steady(200, 100)).as_f64();
        assert!((100.0..200.0).contains(&early), "{early}");
    }

    #[test]
    fn quiet_is_heard_after_half_a_second() {
        let peak = steady(200, 1_000);
        assert!(bound(at(1_000), &peak).as_f64() > 200.0);
        assert!(bound(at(1_500), &peak).as_f64() < 9.0);
    }

    #[test]
    fn a_knock_that_brought_nothing_is_repeated_after_a_second_or_for_a_tenth_more() {
        let mut knocks = Knocks::default();
        let units = Amount::from_units;
        assert_eq!(knocks.door(at(0), units(0)), Door::Open);
        knocks.knock(at(0), units(100));
        assert_eq!(knocks.door(at(100), units(200)), Door::Knocked);
        assert_eq!(knocks.door(at(300), units(105)), Door::Shut);
        assert_eq!(knocks.door(at(300), units(120)), Door::Open);
        assert_eq!(knocks.door(at(1_000), units(100)), Door::Open);
        knocks.knock(at(1_000), units(100));
        knocks.open();
        assert_eq!(knocks.door(at(1_001), units(100)), Door::Open);
    }
}
