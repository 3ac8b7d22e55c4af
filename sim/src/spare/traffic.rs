//! Patterns of traffic: the times at which requests come, and to which client.

use std::fmt;
use std::time::Duration;

use lessor_proto::Time;

use super::{BEGIN, SpareRun};
use crate::rng::Rng;

/// A pattern of requests. Rates hold for a while and then change; while they hold, requests come at random.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpareTraffic {
    /// 60 % of the capacity, evenly.
    Poisson,
    /// Each client is busy for two seconds of twenty on average, by a heavy-tailed law, and has been so for ever; 60 % in all,
    /// 50 % of up to ten.
    OnOff,
    /// The rate of each client goes up and down by 90 % within a minute, each at its own time; 60 % in all.
    Diurnal,
    /// Every other five seconds one client takes 60 % of the capacity, each time another; the others take 30 % in all.
    Hot,
    /// All begin at one instant after a pause; 95 % in all.
    Wake,
}

/// The rate of one client.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrafficStretch {
    /// Requests a second.
    rate: f64,
    until: Time,
    is_on: bool,
}

/// The time for which all are asleep.
const ASLEEP: Duration = Duration::from_secs(10);
/// From when a client becomes busy until it does again, in seconds on average, and for which part of that it is busy.
const TURN: f64 = 20.0;
const BUSY: f64 = 0.1;
/// The time for which one is hot, in seconds.
const HOT: u64 = 5;
/// A minute in steps of half a second.
const STEPS: u64 = 120;
const STEP: Duration = Duration::from_millis(500);

// === impl SpareTraffic ===

impl SpareTraffic {
    /// All of them, in the order of the table.
    pub const ALL: [SpareTraffic; 5] = [
        SpareTraffic::Poisson,
        SpareTraffic::OnOff,
        SpareTraffic::Diurnal,
        SpareTraffic::Hot,
        SpareTraffic::Wake,
    ];

    /// When requests begin to count.
    pub(super) fn counts_from(self) -> Time {
        match self {
            SpareTraffic::Wake => Time::ZERO + ASLEEP,
            _ => Time::ZERO + BEGIN,
        }
    }

    /// The stretch with which a client begins.
    pub(super) fn begin(self) -> TrafficStretch {
        TrafficStretch { rate: 0.0, until: Time::ZERO, is_on: true }
    }

    /// The next stretch of a client, after `before`, which is over.
    fn next(self, run: &SpareRun, client: usize, before: TrafficStretch, rng: &mut Rng) -> TrafficStretch {
        let (capacity, count) = (run.capacity as f64, run.clients as f64);
        let from = before.until;
        match self {
            SpareTraffic::Poisson => {
                TrafficStretch { rate: 0.6 * capacity / count, until: Time::MAX, is_on: true }
            }
            SpareTraffic::OnOff => {
                let is_first = from == Time::ZERO;
                let is_on = if is_first { rng.fraction() < BUSY } else { !before.is_on };
                let load = if run.clients <= 10 { 0.5 } else { 0.6 };
                let rate = if is_on { load * capacity / count / BUSY } else { 0.0 };
                let mean = TURN * if is_on { BUSY } else { 1.0 - BUSY };
                let lasts = if is_first { rest_of_pareto(mean, rng) } else { pareto(mean, rng) };
                TrafficStretch { rate, until: from + lasts, is_on }
            }
            SpareTraffic::Diurnal => {
                let phase = (client as u64 * STEPS / run.clients as u64) + steps(from);
                let wave = phase.rem_euclid(STEPS) as f64 / STEPS as f64;
                // Up and down in straight lines.
                let height = 1.0 - 4.0 * (wave - 0.5).abs();
                let rate = 0.6 * capacity / count * (1.0 + 0.9 * height);
                TrafficStretch { rate, until: from + STEP, is_on: true }
            }
            SpareTraffic::Hot => {
                let turn = from.as_nanos() / (HOT * 1_000_000_000);
                let is_hot = turn % 2 == 1 && (turn / 2) as usize % run.clients == client;
                let others = 0.3 * capacity / (count - 1.0).max(1.0);
                let rate = if is_hot { 0.6 * capacity } else { others };
                TrafficStretch { rate, until: from + Duration::from_secs(HOT), is_on: is_hot }
            }
            SpareTraffic::Wake if from == Time::ZERO => {
                TrafficStretch { rate: 0.0, until: Time::ZERO + ASLEEP, is_on: false }
            }
            SpareTraffic::Wake => {
                TrafficStretch { rate: 0.95 * capacity / count, until: Time::MAX, is_on: true }
            }
        }
    }

    /// When the next request comes to a client after `now`, before `end`.
    pub(super) fn request(
        self,
        run: &SpareRun,
        client: usize,
        stretch: &mut TrafficStretch,
        (mut now, end): (Time, Time),
        rng: &mut Rng,
    ) -> Option<Time> {
        while now < end {
            if stretch.rate > 0.0 {
                let at = now + rng.exponential(Duration::from_secs_f64(1.0 / stretch.rate));
                if at < stretch.until {
                    return (at < end).then_some(at);
                }
            }
            now = stretch.until;
            *stretch = self.next(run, client, *stretch, rng);
        }
        None
    }
}

impl fmt::Display for SpareTraffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SpareTraffic::Poisson => "poisson",
            SpareTraffic::OnOff => "on/off",
            SpareTraffic::Diurnal => "diurnal",
            SpareTraffic::Hot => "hot",
            SpareTraffic::Wake => "wake",
        })
    }
}

fn steps(time: Time) -> u64 {
    time.as_nanos() / u64::try_from(STEP.as_nanos()).unwrap_or(u64::MAX)
}

/// A time with a heavy tail, of exponent 1.5, that is `mean` seconds on average.
fn pareto(mean: f64, rng: &mut Rng) -> Duration {
    let chance = 1.0 - rng.fraction();
    seconds(mean / 3.0 / cube_root(chance * chance))
}

/// The rest of such a time at a moment that lies anywhere in it. The rest is less than the least such time, a
/// third of the mean, one time in three, and above has the exponent 0.5.
fn rest_of_pareto(mean: f64, rng: &mut Rng) -> Duration {
    let chance = 1.0 - rng.fraction();
    let tail = 2.0 / 3.0 / chance;
    seconds(if tail < 1.0 { mean * (1.0 - chance) } else { mean / 3.0 * tail * tail })
}

/// Ten days at most: longer than any run.
fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.min(1e6))
}

/// By Newton's method, which gives the same on every machine.
fn cube_root(number: f64) -> f64 {
    let mut root = number.max(1e-30).sqrt().max(1e-10);
    for _ in 0..60 {
        root = (2.0 * root + number / (root * root)) / 3.0;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots_are_cube_roots() {
        for root in [1e-6, 0.1, 0.5, 1.0] {
            let found = cube_root(root * root * root);
            assert!((found - root).abs() < root * 1e-9, "{found} and not {root}");
        }
    }

    #[test]
    fn a_rest_is_what_is_left_of_a_time() {
        // Of as many clients as are busy, one time in three less than a third of the mean is left, and half the time more
        // than 16 ninths of that.
        let mut rng = Rng::new(1);
        let mut rests: Vec<f64> = (0..100_000).map(|_| rest_of_pareto(3.0, &mut rng).as_secs_f64()).collect();
        rests.sort_by(f64::total_cmp);
        assert!((rests[33_333] - 1.0).abs() < 0.02, "{}", rests[33_333]);
        assert!((rests[50_000] - 16.0 / 9.0).abs() < 0.04, "{}", rests[50_000]);
    }

    #[test]
    fn each_pattern_has_its_load() {
        for (traffic, load) in SpareTraffic::ALL.into_iter().zip([0.6, 0.6, 0.6, 0.6, 0.95]) {
            let (run, mut rng) = (SpareRun::of(100, traffic), Rng::new(1));
            let end = Time::ZERO + Duration::from_secs(110);
            let begin = traffic.counts_from();
            let mut count = 0;
            for client in 0..run.clients {
                let (mut stretch, mut now) = (traffic.begin(), Time::ZERO);
                while let Some(at) = traffic.request(&run, client, &mut stretch, (now, end), &mut rng) {
                    now = at;
                    count += u64::from(at >= begin);
                }
            }
            let found = count as f64 / end.since(begin).as_secs_f64() / run.capacity as f64;
            assert!((found - load).abs() < 0.15, "{traffic}: {found} and not {load}");
        }
    }
}
