//! The mark of one resource, as far as it is known for certain what the record holds of it.

use lessor_proto::{Amount, Epoch, Time};

use crate::ledger::Ceiling;
use crate::repository::Kind;

/// The bounds between which the record holds a mark for certain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownMark {
    /// The record holds no more for certain, and perhaps less.
    pub(super) most: Amount,
    /// The record holds no less for certain: so much may be out.
    pub(super) least: Amount,
    /// The record holds no less for certain beside what is left from before: so much may outlast that.
    pub(super) lasting: Amount,
    /// The record says of no more for certain that it is left from before.
    pub(super) rest: Amount,
    /// The record says for certain that this is over by then, or sooner.
    pub(super) rest_end: Time,
    /// When it is to be lowered, or written again.
    pub(super) falling: Option<Time>,
    /// The epoch of the lease whose proof stands beside it for certain.
    pub(super) epoch: Option<Epoch>,
    /// The kind of what may be out; absent: not known.
    pub(super) kind: Option<Kind>,
}

// === impl KnownMark ===

impl KnownMark {
    pub(super) fn ceiling(&self) -> Ceiling {
        Ceiling { total: self.least, lasting: self.lasting, rest_end: self.rest_end }
    }
}
