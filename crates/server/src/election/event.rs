//! The events of a candidate: its election, the end of its authority, and the writing of its record.

use crate::record::Record;
use lessor_proto::Epoch;

/// The number of a write into the record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket(pub(super) u64);

/// An event of a candidate. It only tells; whether the candidate may act is decided by
/// [`super::Candidate::authority_until`] alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// It leads, and may act while it has authority.
    Elected {
        /// The number of its epoch: greater than that of any before.
        epoch: Epoch,
        /// The record that earlier leaders have left: it was read after the election was won.
        record: Box<Record>,
    },
    /// Its authority has ended. The epoch may go on.
    Lapsed,
    /// The epoch goes on, as it was.
    Resumed,
    /// The epoch is over, and what was not written will not be. It stands again by itself.
    Deposed,
    /// It has given up for good.
    Resigned,
    /// Somebody else leads, or nobody that is known.
    Leader(Option<Leader>),
    /// A write is in the record.
    Written(Ticket),
    /// Etcd does not do what is asked of it. Said once, until [`Event::Healthy`].
    Faulty(String),
    /// It does again.
    Healthy,
}

/// The leader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leader {
    /// Where.
    pub address: String,
    /// At which its key was created. The number of its epoch stands in its record only.
    pub revision: u64,
}
