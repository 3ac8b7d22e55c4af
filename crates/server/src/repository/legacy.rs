//! What becomes of holders that draw no incarnation: Doorman's clients and servers.
//!
//! Doorman's Go client never lets its lease end while it reaches no server: it goes on with what it had. How that is met
//! is for the operator to say, resource by resource.

use std::time::Duration;

use lessor_proto::Amount;

use super::problem::{Field, Problem};

/// What becomes of holders that draw no incarnation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Legacy {
    /// Their reports are refused.
    Deny,
    /// What they have counts until its lease has ended, as with everybody. One that is cut off and goes on regardless is
    /// outside the promise from then on.
    #[default]
    Expire,
    /// What they have counts until they are heard of again or give it back, and for `hold` at the longest.
    Sticky {
        /// After so long without a word they are certainly dead. Not shorter than the lease.
        hold: Duration,
    },
}

/// A part of a whole, in millionths of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fraction(u32);

/// How long what Doorman's clients have counts under [`Legacy::Sticky`] if nothing else is said.
pub const LEGACY_HOLD: Duration = Duration::from_secs(3_600);

const WANTED: &str = "a number from 0 to 1";
const WHOLE: u32 = 1_000_000;

// === impl Legacy ===

impl Legacy {
    /// How long a lease of `length` counts if nothing is heard of its holder.
    #[must_use]
    pub fn counted(self, length: Duration) -> Duration {
        match self {
            Legacy::Sticky { hold } => hold.max(length),
            Legacy::Deny | Legacy::Expire => length,
        }
    }
}

// === impl Fraction ===

impl Fraction {
    /// All of it.
    pub const ALL: Fraction = Fraction(WHOLE);

    /// What a `legacy_max_fraction` says, to the millionth below.
    ///
    /// # Errors
    /// When that is not from 0 to 1.
    pub fn check(value: f64) -> Result<Fraction, Problem> {
        let found = match value {
            _ if !value.is_finite() => "is not finite",
            _ if value < 0.0 => "is negative",
            _ if value > 1.0 => "is more than all of it",
            _ => return Ok(Fraction((value * f64::from(WHOLE)) as u32)),
        };
        Err(Problem::Number { field: Field::LegacyMaxFraction, value, found, wanted: WANTED })
    }

    /// So much of `amount`, rounded down.
    #[must_use]
    pub fn of(self, amount: Amount) -> Amount {
        let part = u128::from(amount.as_micros()) * u128::from(self.0) / u128::from(WHOLE);
        Amount::from_micros(u64::try_from(part).expect("a part is not more than the whole"))
    }

    /// As a number from 0 to 1.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_a_part_rounded_down() {
        let third = Fraction::check(1.0 / 3.0).unwrap();
        assert_eq!(third.of(Amount::from_units(100)), Amount::from_micros(33_333_300));
        assert_eq!(Fraction::ALL.of(Amount::MAX), Amount::MAX);
        assert_eq!(Fraction::check(1.0), Ok(Fraction::ALL));
        for value in [-0.1, 1.1, f64::NAN] {
            assert!(Fraction::check(value).is_err(), "{value}");
        }
    }

    #[test]
    fn only_a_sticky_lease_counts_for_longer_than_it_lasts() {
        let (minute, hour) = (Duration::from_secs(60), LEGACY_HOLD);
        assert_eq!(Legacy::Expire.counted(minute), minute);
        assert_eq!(Legacy::Sticky { hold: hour }.counted(minute), hour);
        assert_eq!(Legacy::Sticky { hold: hour }.counted(hour * 2), hour * 2);
    }
}
