//! Arrivals of requests: patterns, and the requests that they make.

use std::time::Duration;

use crate::rng::Rng;

/// The most requests of one run.
pub const MOST: usize = 1_000_000;

/// A request before it is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// In nanoseconds from the beginning.
    pub at: u64,
    /// The hits that it asks for.
    pub copies: u32,
    /// The least that is of use to it.
    pub min: u32,
}

/// When requests come. Written as [`super::BadPattern`] says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// The way in which they are spread.
    pub shape: Shape,
    /// When it begins.
    pub from: Duration,
    /// When it is over; without one it is not.
    pub until: Option<Duration>,
    /// For how long they come and for how long they do not, in turn; without this they always do.
    pub on_off: Option<(Duration, Duration)>,
}

/// The way in which requests are spread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A number of requests in each period, evenly.
    Steady(u32, Duration),
    /// A number of requests in each period on average, at random.
    Poisson(u32, Duration),
    /// A number of requests at once, at the beginning.
    Burst(u32),
    /// A number of requests at once, again and again after each period.
    Bursts(u32, Duration),
}

/// A run of more requests than there may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("more than {MOST} requests; wanted fewer, or a shorter time")]
pub struct TooMany;

/// All requests of `patterns` before `end`, in their order, each for `min` to `copies` hits. Those at random are drawn from
/// `seed`.
///
/// # Errors
/// When there are more than [`MOST`].
pub fn arrivals(
    patterns: &[Pattern],
    copies: u32,
    min: u32,
    end: u64,
    seed: u64,
) -> Result<Vec<Arrival>, TooMany> {
    let mut rng = Rng::new(seed);
    let mut times = Vec::new();
    for pattern in patterns {
        pattern.times(end, &mut rng, &mut times)?;
    }
    times.sort_unstable();
    Ok(times.into_iter().map(|at| Arrival { at, copies, min }).collect())
}

// === impl Pattern ===

impl Pattern {
    /// Adds its times before `end` to `times`.
    fn times(&self, end: u64, rng: &mut Rng, times: &mut Vec<u64>) -> Result<(), TooMany> {
        let until = self.until.map_or(end, |until| nanos(until).min(end));
        let (from, mut at) = (nanos(self.from), nanos(self.from));
        let mut steps = 0_u64;
        while at < until {
            let next = match self.shape {
                Shape::Steady(count, time) => from.saturating_add(part(time, steps + 1, count)),
                Shape::Bursts(_, every) => at.saturating_add(nanos(every)),
                Shape::Burst(_) => until,
                Shape::Poisson(count, time) => at.saturating_add(nanos(rng.exponential(time / count))),
            };
            let together = match self.shape {
                Shape::Burst(count) | Shape::Bursts(count, _) => count as usize,
                Shape::Steady(..) => 1,
                // It begins with a wait, not with a request.
                Shape::Poisson(..) => usize::from(steps > 0),
            };
            if self.is_on(at - from) {
                if times.len() + together > MOST {
                    return Err(TooMany);
                }
                times.extend(std::iter::repeat_n(at, together));
            }
            (at, steps) = (next, steps + 1);
            if steps > 100 * MOST as u64 {
                return Err(TooMany);
            }
        }
        Ok(())
    }

    fn is_on(&self, since: u64) -> bool {
        let on = |(on, off): (Duration, Duration)| since % nanos(on + off).max(1) < nanos(on);
        self.on_off.is_none_or(on)
    }
}

/// `steps` times the `count`th part of a time.
fn part(time: Duration, steps: u64, count: u32) -> u64 {
    let all = u128::from(nanos(time)) * u128::from(steps) / u128::from(count);
    u64::try_from(all).unwrap_or(u64::MAX)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::SECOND;
    use super::*;

    /// Checks when the requests come that `patterns` make in `seconds` seconds, in milliseconds.
    fn check(patterns: &[&str], seconds: u64, expected: &[u64]) {
        let parsed: Vec<Pattern> = patterns.iter().map(|text| text.parse().unwrap()).collect();
        let found = arrivals(&parsed, 3, 2, seconds * SECOND, 7).unwrap();
        let times: Vec<u64> = found.iter().map(|arrival| arrival.at / 1_000_000).collect();
        assert_eq!(times, expected, "{patterns:?}");
        assert!(found.iter().all(|arrival| (arrival.copies, arrival.min) == (3, 2)));
    }

    #[test]
    fn a_rate_is_spread_evenly_and_ends_before_its_end() {
        check(&["2/s"], 2, &[0, 500, 1000, 1500]);
        check(&["3/2s@1s..2s"], 9, &[1000, 1666]);
        check(&["1/s@7s.."], 9, &[7000, 8000]);
        check(&["1/s@..2s"], 9, &[0, 1000]);
    }

    #[test]
    fn bursts_come_at_once_and_again() {
        check(&["burst 3@2s"], 9, &[2000, 2000, 2000]);
        check(&["burst 3@2s"], 2, &[]);
        check(&["every 4s: 2@1s.."], 10, &[1000, 1000, 5000, 5000, 9000, 9000]);
    }

    #[test]
    fn a_pattern_pauses_and_goes_on() {
        check(&["2/s on 1s off 2s"], 5, &[0, 500, 3000, 3500]);
    }

    #[test]
    fn several_patterns_come_in_the_order_of_their_times() {
        check(&["1/2s", "burst 2@1s"], 4, &[0, 1000, 1000, 2000]);
    }

    #[test]
    fn random_requests_have_their_mean_and_depend_on_the_seed_alone() {
        let pattern: Pattern = "poisson 10/s".parse().unwrap();
        let draw = |seed| arrivals(std::slice::from_ref(&pattern), 1, 1, 1000 * SECOND, seed).unwrap();
        assert!((9_700..10_300).contains(&draw(1).len()), "{}", draw(1).len());
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn too_many_are_refused_before_they_fill_the_memory() {
        for text in ["1000000/s", "burst 4000000000", "every 1ns: 1 on 1ns off 1h", "poisson 4000000000/1ns"]
        {
            let pattern: Pattern = text.parse().unwrap();
            assert_eq!(arrivals(&[pattern], 1, 1, 3600 * SECOND, 1), Err(TooMany), "{text}");
        }
    }
}
