//! A violation: which rule is broken, when, and what led to it.

use std::fmt;

use lessor_proto::Time;

/// A rule is broken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("seed {seed}, event {event}, at {at}: {rule} is broken: {what}\n{trace}")]
pub struct Violation {
    /// The seed of the simulation.
    pub seed: u64,
    /// The number of the event.
    pub event: u64,
    /// When.
    pub at: Time,
    /// Which rule.
    pub rule: Rule,
    /// A description of the breach.
    pub what: String,
    /// The last events: of each the real time, the time on the clock of the one that acted, who that was, and what
    /// happened.
    pub trace: String,
}

/// An invariant, by its number in the protocol; 0 is an assertion of a mind itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rule(pub u8);

// === impl Rule ===

impl Rule {
    /// The numbers of all that are looked at, as docs/simulation.md has them.
    pub const ALL: [u8; 38] = [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23, 26, 27, 28, 29, 30,
        31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41,
    ];
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "I{}", self.0)
    }
}
