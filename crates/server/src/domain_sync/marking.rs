//! The walk through those that use a domain and are to be told something.

use super::origin::DeltaOrigin;
use crate::streams::Peer;

/// A walk through those that use a domain and are to be told something: in slices, as there may be many.
#[derive(Clone, Debug, Default)]
pub(super) struct Marking {
    /// Everything is told, as the domain has become hot, and not only what was not told yet.
    pub(super) is_all: bool,
    /// The last that was looked at.
    pub(super) after: Option<DeltaOrigin>,
}

/// A slice of the walk.
#[derive(Clone, Debug)]
pub(super) struct Marked {
    /// Those that are to be told something.
    pub(super) peers: Vec<Peer>,
    /// The number that was looked at.
    pub(super) looked_at: usize,
    /// The last of them, if there may be more.
    pub(super) last: Option<DeltaOrigin>,
}
