//! The number of a stream, which says where it stands among those that are open.

use std::fmt;

/// The number of a stream at a node: which one it is of all that were opened, and its place among those that are open, which
/// is used again when it has ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Peer(u64);

/// The bits of the place: so many streams are open at once, at the most.
const PLACE_BITS: u32 = 24;

// === impl Peer ===

impl Peer {
    /// The stream that was opened as so many-th, at a place that is free.
    pub(crate) fn new(number: u64, place: u32) -> Peer {
        assert!(place < 1 << PLACE_BITS && number < 1 << (64 - PLACE_BITS), "stream {number} at {place}");
        Peer(number << PLACE_BITS | u64::from(place))
    }

    /// The number of streams that the node had opened when it had opened this one.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0 >> PLACE_BITS
    }

    /// Its place among those that are open.
    pub(crate) fn place(self) -> u32 {
        (self.0 & ((1 << PLACE_BITS) - 1)) as u32
    }
}

impl From<u64> for Peer {
    /// The stream of that number at the place of that number, where places are not used again.
    fn from(number: u64) -> Peer {
        Peer::new(number, number as u32)
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}
