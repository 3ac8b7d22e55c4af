//! The burst of a limiter: the amount that may be saved up.

use std::time::Duration;

use lessor_proto::Amount;

use super::Limiter;

/// The amount that may be saved up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Burst {
    /// The amount that the rate brings in this time, or less if the grantor said less; absent: as the grantor said.
    /// Where that is less than a unit, one.
    Time(Option<Duration>),
    /// One unit for each whole part of this size that the rate has, and nothing without a whole one.
    Parts(Amount),
}

// === impl Burst ===

impl Burst {
    /// Whether that rate brings less than a unit in the burst.
    pub(super) fn is_small(self, rate: u64, said: Option<Duration>) -> bool {
        match self {
            Burst::Time(own) => rate > 0 && brings(rate, agreed(own, said)) < Amount::MICROS_PER_UNIT,
            Burst::Parts(_) => false,
        }
    }

    /// In millionths of a unit, where the grantor `said` so much; nothing without a rate.
    pub(super) fn micros(self, rate: u64, said: Option<Duration>) -> u64 {
        match self {
            Burst::Time(_) if rate == 0 => 0,
            Burst::Time(own) => match brings(rate, agreed(own, said)) {
                // Units are indivisible. What comes in while one lies there is kept, so that it may be fetched so late.
                burst if burst < Amount::MICROS_PER_UNIT => burst + Amount::MICROS_PER_UNIT,
                burst => burst,
            },
            Burst::Parts(part) => (rate / part.as_micros().max(1)).saturating_mul(Amount::MICROS_PER_UNIT),
        }
    }
}

/// The burst that may be saved up: less than the grantor `said` if the program has asked for less, and never
/// more.
fn agreed(own: Option<Duration>, said: Option<Duration>) -> Duration {
    own.into_iter().chain(said).min().unwrap_or(Limiter::DEFAULT_BURST)
}

/// The amount that `rate` brings in that time, in millionths of a unit.
fn brings(rate: u64, time: Duration) -> u64 {
    let income = u128::from(rate).saturating_mul(time.as_nanos()) / 1_000_000_000;
    u64::try_from(income).unwrap_or(u64::MAX)
}
