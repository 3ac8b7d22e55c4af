//! An amount: an exact number of millionths.
//!
//! Ledgers add and subtract for months, so their amounts are integers; floating point stays at the wire and in the
//! algorithms. A millionth of a unit is the smallest amount there is, about 18 million million units the largest; up to
//! two thousand million units survive a double on the wire exactly.

use std::fmt;

/// An amount of capacity in millionths of a unit: units a second for a rate, units for a gauge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Amount(u64);

// === impl Amount ===

impl Amount {
    /// Nothing.
    pub const ZERO: Amount = Amount(0);
    /// The largest amount; greater numbers stop here.
    pub const MAX: Amount = Amount(u64::MAX);
    /// Millionths in a unit.
    pub const MICROS_PER_UNIT: u64 = 1_000_000;

    /// That many millionths.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Amount {
        Amount(micros)
    }

    /// That many whole units, stopping at [`Amount::MAX`].
    #[must_use]
    pub const fn from_units(units: u64) -> Amount {
        Amount(units.saturating_mul(Self::MICROS_PER_UNIT))
    }

    /// The greatest amount that is not above `value`, except that a value within a hundredth of a millionth (or within
    /// what a double of that size can tell) of the next one is taken for it: 0.3 is 300000 millionths. Negative numbers
    /// and NaN are nothing, large ones stop at [`Amount::MAX`].
    #[must_use]
    pub fn from_f64(value: f64) -> Amount {
        let micros = value * Self::MICROS_PER_UNIT as f64;
        let nearest = micros.round();
        // `as` saturates, and takes NaN for 0.
        if (micros - nearest).abs() <= 0.01_f64.max(nearest * 2.0 * f64::EPSILON) {
            Amount(nearest as u64)
        } else {
            Amount(micros.floor() as u64)
        }
    }

    /// In units.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / Self::MICROS_PER_UNIT as f64
    }

    /// In millionths.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The whole units in it.
    #[must_use]
    pub const fn floor_units(self) -> u64 {
        self.0 / Self::MICROS_PER_UNIT
    }

    /// The least number of whole units that it fits into, as an amount.
    #[must_use]
    pub const fn ceil_to_units(self) -> Amount {
        Amount(self.0.div_ceil(Self::MICROS_PER_UNIT).saturating_mul(Self::MICROS_PER_UNIT))
    }

    /// `self + other`, stopping at [`Amount::MAX`].
    #[must_use]
    pub const fn saturating_add(self, other: Amount) -> Amount {
        Amount(self.0.saturating_add(other.0))
    }

    /// `self - other`, or nothing where `other` is greater.
    #[must_use]
    pub const fn saturating_sub(self, other: Amount) -> Amount {
        Amount(self.0.saturating_sub(other.0))
    }
}

/// In units, without trailing zeros: `69.690721`.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (units, micros) = (self.0 / Self::MICROS_PER_UNIT, self.0 % Self::MICROS_PER_UNIT);
        if micros == 0 {
            return write!(f, "{units}");
        }
        let fraction = format!("{micros:06}");
        write!(f, "{units}.{}", fraction.trim_end_matches('0'))
    }
}

impl fmt::Debug for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn odd_numbers_stay_in_range() {
        assert_eq!(Amount::from_f64(f64::NAN), Amount::ZERO);
        assert_eq!(Amount::from_f64(-1.0), Amount::ZERO);
        assert_eq!(Amount::from_f64(f64::INFINITY), Amount::MAX);
        assert_eq!(Amount::from_f64(1e300), Amount::MAX);
    }

    #[test]
    fn a_part_of_a_unit_takes_a_whole_one() {
        let units = |micros| Amount::from_micros(micros).ceil_to_units().floor_units();
        assert_eq!([units(0), units(1), units(1_000_000), units(1_000_001)], [0, 1, 1, 2]);
        assert!(Amount::MAX.ceil_to_units() >= Amount::from_units(Amount::MAX.floor_units()));
    }

    #[test]
    fn rounds_down_but_forgives_the_last_bit() {
        assert_eq!(Amount::from_f64(0.3).as_micros(), 300_000);
        assert_eq!(Amount::from_f64(0.1 + 0.2).as_micros(), 300_000);
        assert_eq!(Amount::from_f64(200.0 / 3.0).as_micros(), 66_666_666);
    }

    #[test]
    fn reads_without_trailing_zeros() {
        assert_eq!(Amount::from_units(60).to_string(), "60");
        assert_eq!(Amount::from_f64(0.25).to_string(), "0.25");
        assert_eq!(Amount::from_micros(69_690_721).to_string(), "69.690721");
    }

    proptest! {
        // What a client echoes in `has` is recognised.
        #[test]
        fn survives_the_wire(micros in 0u64..1 << 51) {
            let amount = Amount::from_micros(micros);
            prop_assert_eq!(Amount::from_f64(amount.as_f64()), amount);
        }
    }
}
