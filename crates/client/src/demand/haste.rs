//! Knocks: reports of demand before the next look, at the first refusal and when a client has fallen quiet.
//!
//! A *knock* says what is certain so far, `sure = (N - 2 sqrt N) / w` of the N attempts in the last w: a
//! Poisson process of that mean shows as many one time in forty. One knock is under way at a time, and one that
//! brought nothing is not repeated within a second, unless what is sure rose by a tenth. A tenth of a second after the
//! last knock it is looked whether more is certain.
//!
//! *Quiet* is the same the other way round: a span w with N attempts bounds the mean by `(N + 2 sqrt N + 4) / w`, and a
//! program that wants over twice that is quiet. So a large rate has ended after a twentieth of a second, and a small one
//! after half a second. A program that comes at intervals is not quiet in between: a span counts only if it is at
//! least twice the longest interval within its last activity.

use std::time::Duration;

use lessor_proto::{Amount, Time};

use super::peak::{LONGEST_QUIET, Peak};

/// The spans over which attempts are sure enough.
const SURE: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_secs(1),
];
/// The spans over which quiet is heard, whatever came at intervals before only over the last of them.
const QUIET: [Duration; 4] =
    [Duration::from_millis(50), Duration::from_millis(100), Duration::from_millis(200), LONGEST_QUIET];
/// The time from a knock to the look after it, and between two looks while it may have become quiet.
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
pub enum KnockGate {
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

    /// When it is to be looked whether more is certain than at the last refusal, after `now`.
    pub(super) fn after(&self, now: Time) -> Option<Duration> {
        self.refused.map(|at| at + SOON).filter(|&at| at > now).map(|at| at.since(now))
    }

    /// More came: the next refusal is the first one again.
    pub(super) fn open(&mut self) {
        self.last = None;
    }

    pub(super) fn gate(&self, now: Time, sure: Amount) -> KnockGate {
        match self.last {
            None => KnockGate::Open,
            Some(knock) if now.since(knock.at) >= PAUSE => KnockGate::Open,
            Some(knock) if now.since(knock.at) < ANSWERED => KnockGate::Knocked,
            Some(knock) if sure.as_f64() > knock.sure.as_f64() * 1.1 => KnockGate::Open,
            Some(_) => KnockGate::Shut,
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

/// The mean that is certainly not exceeded at `now`, if that is less than half of `wants`.
pub(super) fn quiet(now: Time, peak: &Peak, wants: Amount) -> Option<Amount> {
    let counts = |&span: &Duration| span == LONGEST_QUIET || span >= peak.interval() * 2;
    let mut bounds = QUIET.iter().copied().filter(counts).map(|span| bound(now, peak, span));
    bounds.find(|bound| bound * 2.0 < wants.as_f64()).map(Amount::from_f64)
}

/// Whether what came in the shortest span may be the beginning of quiet.
pub(super) fn may_be_quiet(now: Time, peak: &Peak, wants: Amount) -> bool {
    bound(now, peak, QUIET[0]) < wants.as_f64()
}

/// The mean that is certainly not exceeded, by what came in the last `span`.
fn bound(now: Time, peak: &Peak, span: Duration) -> f64 {
    let units = peak.last(now, span) as f64;
    (units + 2.0 * units.sqrt() + 4.0) / span.as_secs_f64()
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
    fn quiet_is_heard_the_sooner_the_more_was_wanted() {
        let heard = |rate: u64| {
            let (peak, wants) = (steady(rate, 1_000), Amount::from_units(rate));
            (0..1_000).find(|&millis| quiet(at(1_000 + millis), &peak, wants).is_some())
        };
        assert_eq!(heard(1_000), Some(36));
        assert_eq!(heard(200), Some(45));
        assert_eq!(heard(40), Some(425));
        assert_eq!(heard(10), None);
        let peak = steady(200, 1_000);
        assert_eq!(quiet(at(1_500), &peak, Amount::from_units(200)), Some(Amount::from_units(80)));
        assert!(!may_be_quiet(at(1_000), &peak, Amount::from_units(200)));
        assert!(may_be_quiet(at(1_045), &peak, Amount::from_units(200)));
    }

    #[test]
    fn it_is_not_quiet_between_two_batches() {
        let mut peak = Peak::new(Duration::from_millis(50));
        let wants = Amount::from_units(1_000);
        for batch in 0..20 {
            peak.count(Attempts { at: at(batch * 150), units: 150 });
            let interval = batch * 150..batch * 150 + 150;
            assert!(
                batch < 2 || interval.into_iter().all(|millis| quiet(at(millis), &peak, wants).is_none())
            );
        }
        // Two batches did not come.
        assert!(quiet(at(19 * 150 + 349), &peak, wants).is_none());
        assert!(quiet(at(19 * 150 + 350), &peak, wants).is_some());
    }

    #[test]
    fn a_knock_that_brought_nothing_is_repeated_after_a_second_or_for_a_tenth_more() {
        let mut knocks = Knocks::default();
        let units = Amount::from_units;
        assert_eq!(knocks.gate(at(0), units(0)), KnockGate::Open);
        knocks.knock(at(0), units(100));
        assert_eq!(knocks.gate(at(100), units(200)), KnockGate::Knocked);
        assert_eq!(knocks.gate(at(300), units(105)), KnockGate::Shut);
        assert_eq!(knocks.gate(at(300), units(120)), KnockGate::Open);
        assert_eq!(knocks.gate(at(1_000), units(100)), KnockGate::Open);
        knocks.knock(at(1_000), units(100));
        knocks.open();
        assert_eq!(knocks.gate(at(1_001), units(100)), KnockGate::Open);
    }
}
