//! The number by which a connection is known in the table.

/// The number of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallerId(pub(super) u64);
