//! Numbers that order what is said: of a leadership, of a life of a holder, of a report. Each kind is compared with itself only.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u64);

        impl $name {
            /// The number after it.
            #[must_use]
            pub const fn next(self) -> $name {
                $name(self.0 + 1)
            }
        }

        impl FromStr for $name {
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<$name, ParseIntError> {
                text.parse().map($name)
            }
        }

        impl From<$name> for u64 {
            fn from(number: $name) -> u64 {
                number.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        /// The number alone, as in the field that it stands in.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

number! {
    /// The number of a leadership of a node: greater than that of any before. Zero where nothing is known of one.
    Epoch
}

number! {
    /// The number of a life of a holder, which no other life of it has. A leader's is its [`Epoch`].
    Incarnation
}

number! {
    /// The number of a report, which grows with every report of one life, on whatever way it is sent.
    ReportId
}

// === impl Incarnation ===

/// The life of a node's leader.
impl From<Epoch> for Incarnation {
    fn from(epoch: Epoch) -> Incarnation {
        Incarnation(epoch.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_reads_as_it_is() {
        assert_eq!(format!("{} {:?} {:03}", Epoch(7), Some(ReportId(8)), Incarnation(9)), "7 Some(8) 009");
        assert_eq!("7".parse(), Ok(Epoch(7)));
    }
}
