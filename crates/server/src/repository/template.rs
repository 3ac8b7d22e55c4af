//! What is configured for the resources whose names match a glob, and what numbers it may hold.

use std::fmt;
use std::time::Duration;

use lessor_algorithms::Policy;
use lessor_proto::Amount;

use super::{BadGlob, Glob};

/// What is configured for the resources whose names match a glob.
///
/// Any value of this type can be made; a [`Repository`](super::Repository) takes only those that hold together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template {
    /// Which resources.
    pub glob: Glob,
    /// How much there is of each such resource, for all clients together; with [`Policy::Static`] for each of them.
    pub capacity: Amount,
    /// What a client falls back to.
    pub safe_capacity: SafeCapacity,
    /// For people. May be empty.
    pub description: String,
    /// Units a second, or units in flight.
    pub kind: Kind,
    /// How the capacity is shared.
    pub policy: Policy,
    /// How long a lease lasts. Not shorter than the refresh interval.
    pub lease_length: Duration,
    /// How long a client waits until it asks again.
    pub refresh_interval: Duration,
    /// How long after its start a server hands out only what was out before. Zero: not at all.
    pub learning: Duration,
}

/// What a client may use once its lease has ended and no server answers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SafeCapacity {
    /// The capacity divided by the number of clients.
    #[default]
    Dynamic,
    /// As much as it likes.
    Unlimited,
    /// So much each; with nothing, clients stop.
    Fixed(Amount),
}

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Kind {
    /// Units a second: queries, bytes.
    #[default]
    Rate,
    /// Whole units in flight: connections, copies.
    Gauge,
}

/// A field of a template, by its name in a configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Field {
    /// [`Template::glob`].
    IdentifierGlob,
    /// [`Template::capacity`].
    Capacity,
    /// [`Template::safe_capacity`].
    SafeCapacity,
    /// [`Template::lease_length`].
    LeaseLength,
    /// [`Template::refresh_interval`].
    RefreshInterval,
    /// [`Template::learning`].
    LearningModeDuration,
}

/// What is wrong with a template.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Problem {
    /// The glob is malformed.
    #[error("identifier_glob {text:?} is malformed: {bad}")]
    Glob {
        /// The glob.
        text: String,
        /// Why.
        bad: BadGlob,
    },
    /// An earlier template has the same glob, so this one would never be used.
    #[error("identifier_glob is that of template {} already", first + 1)]
    Duplicate {
        /// The index of that template.
        first: usize,
    },
    /// A number is out of bounds.
    #[error("{field} {value} {found}; wanted {wanted}")]
    Number {
        /// Whose number.
        field: Field,
        /// The number.
        value: f64,
        /// What is wrong with it: `is negative`.
        found: &'static str,
        /// What would be right.
        wanted: &'static str,
    },
    /// A lease would end before the client asks for the next.
    #[error("lease_length {} is shorter than refresh_interval {}", .lease.as_secs_f64(), .refresh.as_secs_f64())]
    LeaseShorterThanRefresh {
        /// The lease length.
        lease: Duration,
        /// The refresh interval.
        refresh: Duration,
    },
    /// A gauge has a fraction of a unit.
    #[error("{field} {amount} of a gauge is not whole; wanted whole units, or kind: rate")]
    Fraction {
        /// Whose amount.
        field: Field,
        /// The amount.
        amount: Amount,
    },
}

/// The largest number of units that an [`Amount`] can hold.
const MAX_UNITS: f64 = (u64::MAX / Amount::MICROS_PER_UNIT) as f64;
/// A year: longer is a mistake, and sums of so long times are far from overflowing.
const MAX_SECONDS: f64 = 365.0 * 86_400.0;

const UNITS_WANTED: &str = "a number from 0 to 18446744073709";
const SAFE_WANTED: &str = "a number from 0 to 18446744073709, or -1 for no limit";
const SECONDS_WANTED: &str = "whole seconds from 1 to 31536000 (a year)";
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
    pub(super) fn problems(&self) -> Vec<Problem> {
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

// === impl Field ===

impl Field {
    /// Its name in a configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Field::IdentifierGlob => "identifier_glob",
            Field::Capacity => "capacity",
            Field::SafeCapacity => "safe_capacity",
            Field::LeaseLength => "lease_length",
            Field::RefreshInterval => "refresh_interval",
            Field::LearningModeDuration => "learning_mode_duration",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl Problem ===

impl Problem {
    /// The field to look at.
    #[must_use]
    pub fn field(&self) -> Field {
        match self {
            Problem::Glob { .. } | Problem::Duplicate { .. } => Field::IdentifierGlob,
            Problem::Number { field, .. } | Problem::Fraction { field, .. } => *field,
            Problem::LeaseShorterThanRefresh { .. } => Field::LeaseLength,
        }
    }
}
