//! A problem of a template, and the field to look at.

use std::fmt;
use std::time::Duration;

use lessor_proto::Amount;

use super::BadGlob;
#[cfg(doc)]
use super::Template;

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
    /// [`Template::rotate`].
    Rotate,
    /// [`Template::quantum`].
    Quantum,
    /// [`Template::window`].
    Window,
    /// [`Template::workers_in_name`].
    Workers,
    /// [`Template::legacy`].
    Legacy,
    /// The time for which [`Legacy::Sticky`](super::Legacy::Sticky) holds.
    LegacyHold,
    /// [`Template::legacy_max_fraction`].
    LegacyMaxFraction,
    /// [`Template::spare_to_nodes`].
    SpareToNodes,
    /// [`Template::safe_fraction`].
    SafeFraction,
    /// [`Template::safe_lease`].
    SafeLease,
    /// [`Template::burst`].
    Burst,
    /// [`Template::small_leases`].
    SmallLeases,
    /// [`Template::most_priority`].
    MostPriority,
    /// [`Template::most_clients`].
    MostClients,
    /// [`Template::enforce`].
    Enforce,
    /// [`Template::beside`].
    Beside,
    /// [`Template::domains`].
    Domains,
}

/// A problem of a template.
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
        /// The fault: `is negative`.
        found: &'static str,
        /// The values that would be right.
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
    /// A field of our own that holds a time holds one out of bounds.
    #[error("{field} {value:?} {found}; wanted {wanted}")]
    Time {
        /// Whose time.
        field: Field,
        /// The time.
        value: Duration,
        /// The fault: `is too short`.
        found: &'static str,
        /// The values that would be right.
        wanted: &'static str,
    },
    /// A turn would outlast the lease.
    #[error("quantum {quantum:?} is longer than lease_length {lease:?}; wanted no more than a lease")]
    QuantumLongerThanLease {
        /// The length of a turn.
        quantum: Duration,
        /// The lease length.
        lease: Duration,
    },
    /// The capacity of a holder that is cut off would count for less than a lease.
    #[error("legacy_hold {hold:?} is shorter than lease_length {lease:?}; wanted at least a lease")]
    HoldShorterThanLease {
        /// The time for which it counts.
        hold: Duration,
        /// The lease length.
        lease: Duration,
    },
    /// A floor, which is to outlast the lease, would end before it.
    #[error("safe_lease {safe:?} is shorter than lease_length {lease:?}; wanted at least a lease")]
    SafeLeaseShorterThanLease {
        /// The time for which a floor lasts.
        safe: Duration,
        /// The lease length.
        lease: Duration,
    },
    /// No use in the window would be granted, as a lease must last until it is over.
    #[error(
        "lease_length {} is too short for window {window:?}, in which a use is granted only if the lease outlasts it; wanted at \
         least {}: 1.01 windows and two refresh intervals",
        .lease.as_secs_f64(), .wanted.as_secs_f64()
    )]
    LeaseShorterThanWindow {
        /// The lease length.
        lease: Duration,
        /// The window.
        window: Duration,
        /// The least lease length.
        wanted: Duration,
    },
    /// A server that begins without a record would forget uses that still count.
    #[error(
        "learning_mode_duration {} is shorter than lease_length {}: a server that begins without a record would forget uses in \
         the window; wanted at least a lease",
        .learning.as_secs_f64(), .lease.as_secs_f64()
    )]
    WindowForgotten {
        /// The time for which it learns.
        learning: Duration,
        /// The lease length.
        lease: Duration,
    },
    /// A field says something about what this template has not.
    #[error("{field} {found}; wanted {wanted}")]
    Misplaced {
        /// The field.
        field: Field,
        /// Why it means nothing here: `is about whole units, and this is a rate`.
        found: &'static str,
        /// With what it would mean something.
        wanted: &'static str,
    },
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
            Field::Rotate => "rotate",
            Field::Quantum => "quantum",
            Field::Window => "window",
            Field::Workers => "workers",
            Field::Legacy => "legacy",
            Field::LegacyHold => "legacy_hold",
            Field::LegacyMaxFraction => "legacy_max_fraction",
            Field::SpareToNodes => "spare_to_nodes",
            Field::SafeFraction => "safe_fraction",
            Field::SafeLease => "safe_lease",
            Field::Burst => "burst",
            Field::SmallLeases => "small_leases",
            Field::MostPriority => "most_priority",
            Field::MostClients => "most_clients",
            Field::Enforce => "enforce",
            Field::Beside => "beside",
            Field::Domains => "domains",
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
            Problem::Number { field, .. }
            | Problem::Fraction { field, .. }
            | Problem::Time { field, .. }
            | Problem::Misplaced { field, .. } => *field,
            Problem::QuantumLongerThanLease { .. } => Field::Quantum,
            Problem::HoldShorterThanLease { .. } => Field::LegacyHold,
            Problem::SafeLeaseShorterThanLease { .. } => Field::SafeLease,
            Problem::LeaseShorterThanRefresh { .. } | Problem::LeaseShorterThanWindow { .. } => {
                Field::LeaseLength
            }
            Problem::WindowForgotten { .. } => Field::LearningModeDuration,
        }
    }
}
