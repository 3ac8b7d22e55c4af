//! Refusals: faults of a message, said so that its sender can mend them.

use std::fmt::{self, Write as _};

use crate::name::{BadName, ResourceId};

/// The limits on what one request may hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes in the name of a client or resource.
    pub name_bytes: usize,
    /// Resources in one request.
    pub resources_per_request: usize,
    /// Priority bands of one resource in one request of a server.
    pub bands_per_resource: usize,
    /// Buckets of demand curves, all priorities together, of one resource in one request of a server.
    pub buckets_per_resource: usize,
}

/// Why a request is refused. Nothing of it has been kept.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// A field holds what it must not (gRPC: `INVALID_ARGUMENT`).
    #[error("{field}: {found}; wanted {wanted}")]
    Invalid {
        /// The path of the field: `resource[2].wants`.
        field: String,
        /// The content that it has: `is NaN`.
        found: String,
        /// The content that it should have.
        wanted: String,
    },
    /// More was asked for than this server is configured to keep (gRPC: `RESOURCE_EXHAUSTED`).
    #[error("{what}: {count} is over the limit of {limit}")]
    Exhausted {
        /// The name of what there is too much of: `resources in one request`.
        what: String,
        /// The amount of it that there would be.
        count: usize,
        /// The amount of it that there may be.
        limit: usize,
    },
    /// The rules of access do not allow it (gRPC: `PERMISSION_DENIED`, or `UNAUTHENTICATED` where it is not known who asks).
    #[error("{message}")]
    Denied {
        /// The kind of it, in one word.
        reason: &'static str,
        /// Whether it is not known who asks: the token cannot be taken.
        is_unknown: bool,
        /// The rule that decided: `clients[2] on line 9`; absent: none speaks of it.
        rule: Option<String>,
        /// A description of what is not allowed, and what would be.
        message: String,
    },
    /// The node that asks stands above the one it asks (gRPC: `FAILED_PRECONDITION`).
    #[error("the nodes form a loop: {path}")]
    Loop {
        /// The names in the loop: `root -> paris -> root`.
        path: String,
    },
    /// No template covers the resource (gRPC: `NOT_FOUND`).
    #[error(
        "{field}: no template matches {resource:?}; wanted a name that a template covers, or a catch-all \"*\""
    )]
    Unknown {
        /// The path of the field.
        field: String,
        /// The name that nothing matches.
        resource: String,
    },
    /// The resource would be the lease of a domain that has none (gRPC: `NOT_FOUND`).
    #[error("{field}: no template matches {resource:?}, and as the lease of a domain: {why}")]
    NoDomain {
        /// The path of the field.
        field: String,
        /// The name.
        resource: String,
        /// Why there is no such lease.
        why: String,
    },
}

/// Why an answer of a server cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("malformed answer: {field}: {found}")]
pub struct Malformed {
    pub(super) field: String,
    pub(super) found: String,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            name_bytes: ResourceId::USUAL_BYTES,
            resources_per_request: 20_000,
            bands_per_resource: 64,
            buckets_per_resource: 1_024,
        }
    }
}

// === impl Refusal ===

impl Refusal {
    /// The number of the code of gRPC that says so.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            Refusal::Invalid { .. } => 3,
            Refusal::Denied { is_unknown: true, .. } => 16,
            Refusal::Denied { .. } => 7,
            Refusal::Unknown { .. } | Refusal::NoDomain { .. } => 5,
            Refusal::Exhausted { .. } => 8,
            Refusal::Loop { .. } => 9,
        }
    }

    pub(super) fn invalid(
        field: impl Into<String>,
        found: impl Into<String>,
        wanted: impl Into<String>,
    ) -> Refusal {
        Refusal::Invalid { field: field.into(), found: found.into(), wanted: wanted.into() }
    }

    pub(super) fn missing(field: impl Into<String>, wanted: impl Into<String>) -> Refusal {
        Refusal::invalid(field, "is missing", wanted)
    }

    pub(super) fn name(field: impl Into<String>, text: &str, fault: BadName, limits: &Limits) -> Refusal {
        let found = match fault {
            BadName::Empty => "is empty".to_owned(),
            BadName::TooLong(_) | BadName::Control(_) => format!("{} {fault}", Excerpt(text)),
        };
        Refusal::invalid(field, found, name_wanted(limits))
    }
}

pub(super) fn name_wanted(limits: &Limits) -> String {
    format!("1 to {} bytes of text without control characters", limits.name_bytes)
}

/// A text in quotes, cut where it gets long.
struct Excerpt<'a>(&'a str);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 40;
        match self.0.char_indices().nth(SHOWN) {
            None => write!(f, "{:?}", self.0),
            Some((cut, _)) => {
                write!(f, "{:?}", &self.0[..cut])?;
                f.write_char('…')
            }
        }
    }
}
