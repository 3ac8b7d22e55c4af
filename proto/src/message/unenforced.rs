//! Units that were asked for while everything was let pass: as holders count them, and as reports say them.
//!
//! A holder counts from its own beginning on, and a report says what has been counted since the report before it. So a grantor
//! adds up what it hears, and remembers nothing of those who say it.

use crate::wire;

/// Units that were asked for while everything was let pass.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Unenforced {
    /// Those that were asked for.
    pub asked: u64,
    /// Those of them that the lease would have refused, or would have had somebody wait for.
    pub passed: u64,
    /// Of a node: the holders below that are to let everything pass and have never said that they count.
    pub silent: u32,
}

// === impl Unenforced ===

impl Unenforced {
    /// The most units that one report may say: no holder is asked for more between two, and whoever says more is believed to that.
    pub const MOST: u64 = 1 << 40;

    /// Whether there is nothing to be said.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Unenforced::default()
    }

    /// The same with the units of `more`.
    #[must_use]
    pub fn with(self, more: Unenforced) -> Unenforced {
        Unenforced {
            asked: self.asked.saturating_add(more.asked),
            passed: self.passed.saturating_add(more.passed),
            ..self
        }
    }

    /// The units that were counted after `before`; all of them, if they are fewer: whoever counts has begun anew.
    #[must_use]
    pub fn since(self, before: Unenforced) -> Unenforced {
        let asked = self.asked.checked_sub(before.asked);
        match asked.zip(self.passed.checked_sub(before.passed)) {
            Some((asked, passed)) => Unenforced { asked, passed, ..self },
            None => self,
        }
    }

    /// As a report says it: what cannot be is taken for the nearest that can.
    pub(crate) fn from_wire(said: wire::UnenforcedUnits) -> Unenforced {
        let asked = said.asked.unwrap_or(0).min(Unenforced::MOST);
        let passed = said.passed.unwrap_or(0).min(asked);
        Unenforced { asked, passed, silent: said.silent.unwrap_or(0) }
    }

    /// As it goes on the wire.
    pub(crate) fn to_wire(self) -> wire::UnenforcedUnits {
        let units = |units: u64| (units > 0).then_some(units);
        wire::UnenforcedUnits {
            asked: units(self.asked),
            passed: units(self.passed),
            silent: (self.silent > 0).then_some(self.silent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(asked: u64, passed: u64) -> Unenforced {
        Unenforced { asked, passed, silent: 0 }
    }

    #[test]
    fn what_was_counted_since_is_said_and_whoever_began_anew_says_all() {
        assert_eq!(units(10, 4).since(units(7, 4)), units(3, 0));
        assert_eq!(units(5, 1).since(units(7, 0)), units(5, 1));
        assert_eq!(units(9, 1).since(units(7, 2)), units(9, 1));
        assert_eq!(units(u64::MAX, 1).with(units(2, 2)), units(u64::MAX, 3));
    }

    #[test]
    fn a_report_cannot_say_what_cannot_be() {
        let said =
            |asked, passed| Unenforced::from_wire(wire::UnenforcedUnits { asked, passed, silent: None });
        assert_eq!(said(Some(5), Some(9)), units(5, 5));
        assert_eq!(said(None, Some(9)), units(0, 0));
        assert_eq!(said(Some(u64::MAX), Some(u64::MAX)), units(Unenforced::MOST, Unenforced::MOST));
        let some = Unenforced { asked: 3, passed: 2, silent: 1 };
        assert_eq!(Unenforced::from_wire(some.to_wire()), some);
        assert!(Unenforced::from_wire(Unenforced::default().to_wire()).is_none());
    }
}
