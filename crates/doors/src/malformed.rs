//! Requests that cannot be answered.

/// A request that cannot be answered, and why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field} {found}; wanted {wanted}")]
pub struct Malformed {
    /// The field: `descriptors[2].entries[0].key`.
    pub field: String,
    /// The fault: `is empty`.
    pub found: String,
    /// The content that would be right.
    pub wanted: String,
}
