//! Checks of a template by itself: the numbers that it may hold, and what does not go together.

use std::time::Duration;

use lessor_algorithms::rotation::Rotate;
use lessor_proto::{Amount, Drift};

use super::{Kind, LEAST_QUANTUM, SafeCapacity, Template};
use crate::repository::fraction::Fraction;
use crate::repository::legacy::Legacy;
use crate::repository::problem::{Field, Problem};

/// The largest number of units that an [`Amount`] can hold.
const MAX_UNITS: f64 = (u64::MAX / Amount::MICROS_PER_UNIT) as f64;
/// A year: longer is a mistake, and sums of so long times are far from overflowing.
const MAX_SECONDS: f64 = 365.0 * 86_400.0;

/// Clocks and the wakeups of waiting tasks are no finer than this.
const LEAST_BURST: Duration = Duration::from_millis(1);

/// A shorter window is over before anybody hears of a use in it.
const LEAST_WINDOW: Duration = Duration::from_millis(100);

const UNITS_WANTED: &str = "a number from 0 to 18446744073709";
const SAFE_WANTED: &str = "a number from 0 to 18446744073709, or -1 for no limit";
const SECONDS_WANTED: &str = "whole seconds from 1 to 31536000 (a year)";
const QUANTUM_WANTED: &str = "at least 100ms, and no more than a lease";
const HOLD_WANTED: &str = "at most a year";
const SAFE_LEASE_WANTED: &str = "at most a year";
const BURST_WANTED: &str = "at least 1ms, and no more than a lease";
const LEARNING_WANTED: &str = "whole seconds from 0 (no learning) to 31536000 (a year)";

// === impl Template ===

impl Template {
    /// The amount of a `capacity` of so many units.
    ///
    /// # Errors
    /// When that is negative, not finite or too large.
    pub fn check_capacity(units: f64) -> Result<Amount, Problem> {
        let problem =
            |found| Problem::Number { field: Field::Capacity, value: units, found, wanted: UNITS_WANTED };
        bounded(units, 0.0, MAX_UNITS).map(Amount::from_f64).map_err(problem)
    }

    /// The time in so many seconds, which have to be whole, for one of the three fields that hold times.
    ///
    /// # Errors
    /// When that is not whole, too short or too long.
    pub fn check_seconds(field: Field, seconds: f64) -> Result<Duration, Problem> {
        let (least, wanted) = match field {
            Field::LearningModeDuration => (0.0, LEARNING_WANTED),
            _ => (1.0, SECONDS_WANTED),
        };
        let whole =
            if seconds.fract() == 0.0 || !seconds.is_finite() { Ok(seconds) } else { Err("is not whole") };
        whole
            .and_then(|seconds| bounded(seconds, least, MAX_SECONDS))
            .map(|seconds| Duration::from_secs(seconds as u64))
            .map_err(|found| Problem::Number { field, value: seconds, found, wanted })
    }

    /// Everything that is wrong with this template on its own.
    pub(in crate::repository) fn problems(&self) -> Vec<Problem> {
        let times = [
            (Field::LeaseLength, self.lease_length),
            (Field::RefreshInterval, self.refresh_interval),
            (Field::LearningModeDuration, self.learning),
        ];
        let mut problems: Vec<Problem> = times
            .into_iter()
            .filter_map(|(field, time)| Template::check_seconds(field, time.as_secs_f64()).err())
            .collect();
        if self.lease_length < self.refresh_interval {
            let (lease, refresh) = (self.lease_length, self.refresh_interval);
            problems.push(Problem::LeaseShorterThanRefresh { lease, refresh });
        }
        if self.kind == Kind::Gauge {
            problems.extend(fraction(Field::Capacity, self.capacity));
            if let SafeCapacity::Fixed(amount) = self.safe_capacity {
                problems.extend(fraction(Field::SafeCapacity, amount));
            }
        }
        problems.extend(self.turn_problems());
        problems.extend(self.legacy_problems());
        problems.extend(self.spare_problem());
        problems.extend(self.floor_problems());
        problems.extend(self.burst_problem());
        problems.extend(self.domains_problem());
        problems.extend(self.enforce_problem());
        problems.extend(self.beside_problems());
        problems.extend(self.window_problems());
        problems.extend(self.workers_problem());
        problems
    }

    /// The problems with how units are taken in turns.
    fn turn_problems(&self) -> Vec<Problem> {
        let given = [(Field::Rotate, self.rotate.is_some()), (Field::Quantum, self.quantum.is_some())];
        let given = given.into_iter().filter(|&(_, given)| given);
        if self.kind == Kind::Rate {
            let (found, wanted) = ("is about whole units, and this is a rate", "kind: gauge");
            return given.map(|(field, _)| Problem::Misplaced { field, found, wanted }).collect();
        }
        if !self.policy.is_bounded() {
            let (found, wanted) =
                ("is about units that have to be shared", "FAIR_SHARE or PROPORTIONAL_SHARE");
            return given.map(|(field, _)| Problem::Misplaced { field, found, wanted }).collect();
        }
        match (self.quantum, self.rotate) {
            (Some(_), Some(Rotate::None)) => {
                let (found, wanted) = ("is how long a turn lasts", "rotate: fair or sticky");
                vec![Problem::Misplaced { field: Field::Quantum, found, wanted }]
            }
            (Some(value), _) if value < LEAST_QUANTUM => {
                let (found, wanted) = ("is too short", QUANTUM_WANTED);
                vec![Problem::Time { field: Field::Quantum, value, found, wanted }]
            }
            (Some(quantum), _) if quantum > self.lease_length => {
                vec![Problem::QuantumLongerThanLease { quantum, lease: self.lease_length }]
            }
            _ => Vec::new(),
        }
    }

    /// The problem with who keeps to leases, if there is one.
    fn enforce_problem(&self) -> Option<Problem> {
        let (found, wanted) =
            ("lets pass what a lease of a domain refuses", "domains of another scope than strict");
        let problem = Problem::Misplaced { field: Field::Enforce, found, wanted };
        (self.enforce < Fraction::ALL && self.leases_domains().is_some()).then_some(problem)
    }

    /// The problem with what is said about capacity that nobody wants, if there is one.
    fn spare_problem(&self) -> Option<Problem> {
        let (found, wanted) = match self.kind {
            Kind::Gauge => ("is about rates, and this is a gauge", "kind: rate"),
            Kind::Rate => ("is a part of what all share", "FAIR_SHARE or PROPORTIONAL_SHARE"),
        };
        let misplaced = self.kind == Kind::Gauge || !self.policy.is_bounded();
        let problem = Problem::Misplaced { field: Field::SpareToNodes, found, wanted };
        self.spare_to_nodes.filter(|_| misplaced).map(|_| problem)
    }

    /// The problems with what is said about capacity that is reserved.
    fn floor_problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.reserves() {
            let misplaced = match self.kind {
                Kind::Gauge => Some(("is about rates, and this is a gauge", "kind: rate")),
                Kind::Rate if !self.policy.is_bounded() => {
                    Some(("is a part of what all share", "FAIR_SHARE or PROPORTIONAL_SHARE"))
                }
                Kind::Rate => None,
            };
            let problem = |(found, wanted)| Problem::Misplaced { field: Field::SafeFraction, found, wanted };
            problems.extend(misplaced.map(problem));
        }
        match self.safe_lease {
            Some(safe) if safe < self.lease_length => {
                problems.push(Problem::SafeLeaseShorterThanLease { safe, lease: self.lease_length });
            }
            Some(value) if value.as_secs_f64() > MAX_SECONDS => {
                let (field, found) = (Field::SafeLease, "is too large");
                problems.push(Problem::Time { field, value, found, wanted: SAFE_LEASE_WANTED });
            }
            _ => {}
        }
        problems
    }

    /// The problem with what may be saved up, if there is one.
    fn burst_problem(&self) -> Option<Problem> {
        let (found, wanted) = ("is about rates, and this is a gauge", "kind: rate");
        if self.kind == Kind::Gauge && self.small_leases.is_some() {
            return Some(Problem::Misplaced { field: Field::SmallLeases, found, wanted });
        }
        let (field, value) = (Field::Burst, self.burst?);
        if self.kind == Kind::Gauge {
            return Some(Problem::Misplaced { field, found, wanted });
        }
        let found = match value {
            _ if value < LEAST_BURST => "is too short",
            _ if value > self.lease_length => "is longer than a lease",
            _ => return None,
        };
        Some(Problem::Time { field, value, found, wanted: BURST_WANTED })
    }

    /// The problems with the window in which each unit is a use.
    fn window_problems(&self) -> Vec<Problem> {
        let Some(window) = self.window else { return Vec::new() };
        let misplaced = |field, found, wanted| Problem::Misplaced { field, found, wanted };
        if self.kind == Kind::Rate {
            return vec![misplaced(Field::Window, "is about whole uses, and this is a rate", "kind: gauge")];
        }
        let mut problems = Vec::new();
        if !self.policy.is_bounded() {
            let wanted = "FAIR_SHARE or PROPORTIONAL_SHARE";
            problems.push(misplaced(Field::Window, "has a limit that all share", wanted));
        }
        for (field, is_given) in
            [(Field::Rotate, self.rotate.is_some()), (Field::Quantum, self.quantum.is_some())]
        {
            let found =
                "is about units that are given back, and those of a window are spent until it has passed";
            let is_misplaced = is_given && self.policy.is_bounded();
            problems.extend(is_misplaced.then(|| misplaced(field, found, "no window")));
        }
        if matches!(self.legacy, Legacy::Sticky { .. }) {
            let found = "is about clients that know of no windows, and are refused";
            problems.push(misplaced(Field::Legacy, found, "deny or expire"));
        }
        if self.capacity > Amount::from_units(u32::MAX.into()) {
            let (field, value) = (Field::Capacity, self.capacity.as_f64());
            let (found, wanted) = ("is too large for a window", "at most 4294967295 uses");
            problems.push(Problem::Number { field, value, found, wanted });
        }
        if window < LEAST_WINDOW {
            let (field, found, wanted) = (Field::Window, "is too short", "at least 100ms");
            problems.push(Problem::Time { field, value: window, found, wanted });
        }
        // A use is kept for longer than its window, as clocks err, and a lease is renewed before it must be.
        let least = Drift::DEFAULT.outlasting(window).saturating_add(self.refresh_interval * 2);
        let wanted =
            Duration::from_secs(least.as_nanos().div_ceil(1_000_000_000).try_into().unwrap_or(u64::MAX));
        if self.lease_length < wanted {
            problems.push(Problem::LeaseShorterThanWindow { lease: self.lease_length, window, wanted });
        }
        if self.learning < self.lease_length {
            problems.push(Problem::WindowForgotten { learning: self.learning, lease: self.lease_length });
        }
        problems
    }

    /// The problem with names that say how much there is, if there is one.
    fn workers_problem(&self) -> Option<Problem> {
        let (found, wanted) = match (self.kind, self.window) {
            (Kind::Rate, _) => ("is about whole units, and this is a rate", "kind: gauge"),
            (Kind::Gauge, Some(_)) => ("is about units that are given back", "no window"),
            (Kind::Gauge, None) => return None,
        };
        self.workers_in_name.then_some(Problem::Misplaced { field: Field::Workers, found, wanted })
    }

    /// The problem with there being policies of domains, if there is one.
    fn domains_problem(&self) -> Option<Problem> {
        let (found, wanted) = ("is about rates, and this is a gauge", "kind: rate");
        let misplaced = self.kind == Kind::Gauge && self.domains.is_some();
        misplaced.then_some(Problem::Misplaced { field: Field::Domains, found, wanted })
    }

    /// The problems with what is said about Doorman's clients.
    fn legacy_problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        match self.legacy {
            Legacy::Sticky { hold } if hold < self.lease_length => {
                problems.push(Problem::HoldShorterThanLease { hold, lease: self.lease_length });
            }
            Legacy::Sticky { hold } if hold.as_secs_f64() > MAX_SECONDS => {
                let (field, found) = (Field::LegacyHold, "is too large");
                problems.push(Problem::Time { field, value: hold, found, wanted: HOLD_WANTED });
            }
            _ => {}
        }
        if self.legacy_max_fraction < Fraction::ALL && !self.policy.is_bounded() {
            problems.push(Problem::Misplaced {
                field: Field::LegacyMaxFraction,
                found: "is a part of what all share",
                wanted: "FAIR_SHARE or PROPORTIONAL_SHARE",
            });
        }
        problems
    }
}

/// `value` if it lies between the two, or what is wrong with it.
fn bounded(value: f64, least: f64, most: f64) -> Result<f64, &'static str> {
    match value {
        _ if !value.is_finite() => Err("is not finite"),
        _ if value < 0.0 => Err("is negative"),
        _ if value < least => Err("is too short"),
        _ if value > most => Err("is too large"),
        _ => Ok(value),
    }
}

fn fraction(field: Field, amount: Amount) -> Option<Problem> {
    (amount != Amount::from_units(amount.floor_units())).then_some(Problem::Fraction { field, amount })
}

// === impl SafeCapacity ===

impl SafeCapacity {
    /// The safe capacity of so many units, -1 for no limit.
    ///
    /// # Errors
    /// When that is another negative number, not finite or too large.
    pub fn from_units(units: f64) -> Result<SafeCapacity, Problem> {
        if units.to_bits() == (-1.0_f64).to_bits() {
            return Ok(SafeCapacity::Unlimited);
        }
        let problem =
            |found| Problem::Number { field: Field::SafeCapacity, value: units, found, wanted: SAFE_WANTED };
        bounded(units, 0.0, MAX_UNITS).map(Amount::from_f64).map(SafeCapacity::Fixed).map_err(problem)
    }
}
