//! Chance, from a seed: the same on every machine, so without logarithms.

use std::time::Duration;

use rand::{Rng as _, SeedableRng};
use rand_pcg::Pcg64;

/// The chance of one simulation.
#[derive(Clone, Debug)]
pub struct Rng {
    seed: u64,
    numbers: Pcg64,
}

// === impl Rng ===

impl Rng {
    /// The one that falls as `seed` says.
    #[must_use]
    pub fn new(seed: u64) -> Rng {
        Rng { seed, numbers: Pcg64::seed_from_u64(seed) }
    }

    /// The seed that it falls by.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.numbers.next_u64()
    }

    /// A number below `bound`; 0 if there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.numbers.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `least` to `most`.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least).saturating_add(1))
    }

    /// An index into something of that length.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True `thousandths` times in a thousand.
    pub fn chance(&mut self, thousandths: u32) -> bool {
        thousandths > 0 && self.below(1000) < thousandths.into()
    }

    /// A time from `least` up to `most`.
    pub fn time(&mut self, least: Duration, most: Duration) -> Duration {
        Duration::from_nanos(self.between(nanos(least), nanos(most)))
    }

    /// From 0 up to but not including 1.
    pub fn fraction(&mut self) -> f64 {
        (self.numbers.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A time that is `mean` on average, exponentially distributed: von Neumann's method, which only compares.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        let mut whole = 0;
        loop {
            let first = self.fraction();
            let (mut last, mut falls) = (first, 0_u32);
            loop {
                let next = self.fraction();
                if next > last {
                    break;
                }
                last = next;
                falls += 1;
            }
            if falls.is_multiple_of(2) {
                return Duration::from_nanos(((f64::from(whole) + first) * nanos(mean) as f64) as u64);
            }
            whole += 1;
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_has_its_mean_and_its_tail() {
        let mut rng = Rng::new(1);
        let times: Vec<f64> =
            (0..100_000).map(|_| rng.exponential(Duration::from_secs(2)).as_secs_f64()).collect();
        let mean = times.iter().sum::<f64>() / 100_000.0;
        let tail = times.iter().filter(|&&time| time > 6.0).count();
        assert!((1.98..2.02).contains(&mean), "{mean}");
        // e^-3 is 4.98 %.
        assert!((4_700..5_300).contains(&tail), "{tail}");
    }
}
