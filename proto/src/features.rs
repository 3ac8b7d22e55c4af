//! Features: the kinds of message on a stream that a peer knows beyond those that every peer knows.
//!
//! The kinds of the first version that had streams are known to everybody, and need no feature. Each kind that comes later is
//! covered by a bit, which both ends say in their greetings. A peer is sent none that it does not name: versions before this
//! rule end a stream on which something comes that they do not know, later ones pass over it and count it.

use std::fmt;

/// A set of features, as it is said in a hello and in a welcome.
///
/// ```
/// use lessor_proto::Features;
///
/// let later = Features::from_bits(0b1000_0111);
/// assert!(later.covers(Features::NOTICE) && later.covers(Features::BASE));
/// assert!(!Features::BASE.covers(Features::NOTICE), "whoever names none knows what everybody does");
/// assert!(!Features::BASE.is_current() && later.is_current());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Features(u32);

// === impl Features ===

impl Features {
    /// None: a peer that names no feature, as those of versions do that had none to name.
    pub const BASE: Features = Features(0);
    /// A node is told its place in the tree by a message of its own. Without it that comes as a message of grants that has none.
    pub const NOTICE: Features = Features(1);
    /// A node is looked at by the one above: that sends it looks, and is sent views.
    pub const LOOKS: Features = Features(2);
    /// Both ends say when a job was done, to who waits for that.
    pub const JOBS: Features = Features(4);
    /// All that this version knows.
    pub const CURRENT: Features = Features(Features::NOTICE.0 | Features::LOOKS.0 | Features::JOBS.0);

    /// Those of a greeting. Bits that this version does not know are those of a later one.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Features {
        Features(bits)
    }

    /// As a greeting says it.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether a peer of these features knows what needs `needed`.
    #[must_use]
    pub const fn covers(self, needed: Features) -> bool {
        self.0 & needed.0 == needed.0
    }

    /// Those that are in both.
    #[must_use]
    pub const fn and(self, other: Features) -> Features {
        Features(self.0 & other.0)
    }

    /// Whether it has all that this version knows, as an earlier one has not.
    #[must_use]
    pub const fn is_current(self) -> bool {
        self.covers(Features::CURRENT)
    }
}

/// The bits, as they are said.
impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#b}", self.0)
    }
}
