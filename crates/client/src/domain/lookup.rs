//! The outcome of looking a domain up.

use super::record::Record;
use crate::decision::Ground;

/// The outcome of looking a domain up.
#[derive(Debug)]
pub(super) enum Lookup<'a> {
    /// It follows policies, and is remembered.
    Tracked(&'a mut Record),
    /// It follows none, and the lease alone decides.
    Ungoverned(Ground),
    /// It follows none, and may do nothing.
    Refused,
    /// It follows policies, and as many domains are remembered as may be.
    Full,
}

// === impl Lookup ===

impl<'a> Lookup<'a> {
    /// The record, if there is one.
    pub(super) fn record(self) -> Option<&'a mut Record> {
        match self {
            Lookup::Tracked(record) => Some(record),
            Lookup::Ungoverned(_) | Lookup::Refused | Lookup::Full => None,
        }
    }
}
