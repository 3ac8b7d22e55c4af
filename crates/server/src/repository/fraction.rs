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

    /// Whether it is in this part of all names. A name that is in a part is in every greater one.
    #[must_use]
    pub fn has(self, name: &[u8]) -> bool {
        let hash = blake3::hash(name);
        let first = hash.as_bytes().first_chunk().map_or(0, |first| u32::from_le_bytes(*first));
        u64::from(first) * u64::from(WHOLE) < u64::from(self.0) << 32
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

    #[test]
    fn a_part_of_all_names_is_in_every_greater_part() {
        let fraction = |value| Fraction::check(Field::Enforce, value).unwrap();
        let parts = [Fraction::NONE, fraction(0.1), fraction(0.25), Fraction::HALF, Fraction::ALL];
        let names: Vec<String> = (0..10_000).map(|number| format!("web-{number}")).collect();
        let counts = parts.map(|part| names.iter().filter(|name| part.has(name.as_bytes())).count());
        for (part, count) in parts.into_iter().zip(counts) {
            assert!((part.as_f64() - count as f64 / 1e4).abs() < 0.02, "{counts:?}");
        }
        for pair in parts.windows(2) {
            assert!(names.iter().all(|name| !pair[0].has(name.as_bytes()) || pair[1].has(name.as_bytes())));
        }
    }
}
