//! A part of a whole.

use lessor_proto::Amount;

use super::problem::{Field, Problem};

/// A part of a whole, in millionths of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fraction(u32);

const WANTED: &str = "a number from 0 to 1";
const WHOLE: u32 = 1_000_000;

// === impl Fraction ===

impl Fraction {
    /// Nothing of it.
    pub const NONE: Fraction = Fraction(0);
    /// Nearly all of it.
    pub const NINE_TENTHS: Fraction = Fraction(WHOLE / 10 * 9);
    /// Half of it.
    #[cfg(test)]
    pub const HALF: Fraction = Fraction(WHOLE / 2);
    /// All of it.
    pub const ALL: Fraction = Fraction(WHOLE);

    /// Returns the fraction that `field` says, rounded down to the millionth.
    ///
    /// # Errors
    /// When that is not from 0 to 1.
    pub fn check(field: Field, value: f64) -> Result<Fraction, Problem> {
        let found = match value {
            _ if !value.is_finite() => "is not finite",
            _ if value < 0.0 => "is negative",
            _ if value > 1.0 => "is more than all of it",
            _ => return Ok(Fraction((value * f64::from(WHOLE)) as u32)),
        };
        Err(Problem::Number { field, value, found, wanted: WANTED })
    }

    /// This fraction of `amount`, rounded down.
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
        let check = |value| Fraction::check(Field::SpareToNodes, value);
        let third = check(1.0 / 3.0).unwrap();
        assert_eq!(third.of(Amount::from_units(100)), Amount::from_micros(33_333_300));
        assert_eq!(Fraction::ALL.of(Amount::MAX), Amount::MAX);
        assert_eq!((check(1.0), check(0.5)), (Ok(Fraction::ALL), Ok(Fraction::HALF)));
        for value in [-0.1, 1.1, f64::NAN] {
            assert!(check(value).is_err(), "{value}");
        }
    }
}
