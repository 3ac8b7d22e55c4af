//! A ghost: what may be out under earlier leaders, and is not known to whom. It is a charge without a holder, in two
//! parts.
//!
//! The grants of the last leader itself may last as long as its leases. The remainder of *its* ghost, the *rest*, ends
//! sooner. What a holder shows that the last leader granted to it comes out of the first part, as that leader charged
//! it. Of anything else it is not known which part it is in, and it comes out of the rest as far as that goes: whatever
//! ends at some moment, the parts that end later have then lost no more than what was shown of them. Taken from the
//! part that ends last, that would be freed with the rest while another holder uses it.

use lessor_proto::{Amount, Time};

use super::{Ledger, micros};
use crate::mutation::Rule;

/// A part of a ghost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Part {
    /// The amount of it that is not shown yet.
    pub amount: Amount,
    /// When that is certainly over.
    pub end: Time,
}

/// The amounts that may be out under earlier leaders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ghost {
    /// Of the leaders before the last.
    rest: Part,
    /// Of the last leader. It ends no sooner.
    own: Part,
}

/// The leader that granted what is claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GhostOrigin {
    /// The last leader, which charged it.
    Last,
    /// A leader before it, or one of which that is not known.
    Earlier,
}

// === impl Ghost ===

impl Ghost {
    /// A ghost of what the last leader granted, and what was left at it from those before.
    #[must_use]
    pub fn new(own: Part, rest: Part) -> Ghost {
        let end = own.end.max(rest.end);
        Ghost { rest, own: Part { end, ..own } }
    }

    /// All of it.
    #[must_use]
    pub fn amount(&self) -> Amount {
        self.rest.amount.saturating_add(self.own.amount)
    }

    /// When all of it is over.
    #[must_use]
    pub fn end(&self) -> Time {
        self.own.end
    }

    /// When the next part of it is over.
    #[must_use]
    pub fn next_end(&self) -> Option<Time> {
        self.parts().into_iter().filter(|part| part.amount > Amount::ZERO).map(|part| part.end).min()
    }

    /// The amount of it that is over by `time`.
    #[must_use]
    pub fn ending_by(&self, time: Time) -> Amount {
        let ending = self.parts().into_iter().filter(|part| part.end <= time);
        ending.fold(Amount::ZERO, |sum, part| sum.saturating_add(part.amount))
    }

    /// Its parts, the one that ends first before the other.
    #[must_use]
    pub fn parts(&self) -> [Part; 2] {
        [self.rest, self.own]
    }

    /// It without what is over at `now`.
    #[must_use]
    pub(crate) fn at(mut self, now: Time) -> Ghost {
        for part in [&mut self.rest, &mut self.own] {
            if part.end <= now {
                part.amount = Amount::ZERO;
            }
        }
        self
    }

    /// It when nothing of it lasts beyond `end`.
    #[must_use]
    pub(super) fn until(mut self, end: Time) -> Ghost {
        for part in [&mut self.rest, &mut self.own] {
            part.end = part.end.min(end);
        }
        self
    }

    /// It without `amount` that is known to be with a holder, as far as it goes.
    #[must_use]
    pub fn without(mut self, amount: Amount, origin: GhostOrigin) -> Ghost {
        let order = match origin {
            GhostOrigin::Last => [&mut self.own, &mut self.rest],
            GhostOrigin::Earlier => [&mut self.rest, &mut self.own],
        };
        let mut left = amount;
        for part in order {
            let taken = left.min(part.amount);
            part.amount = part.amount.saturating_sub(taken);
            left = left.saturating_sub(taken);
        }
        self
    }

    /// It with `amount` that is not known to be with a holder any more. That may have been of either part.
    #[must_use]
    pub(super) fn with(mut self, amount: Amount) -> Ghost {
        self.own.amount = self.own.amount.saturating_add(amount);
        self
    }
}

// === impl Ledger ===

impl Ledger {
    /// Counts `ghost` until its parts end: what may be out under earlier leaders. Once, before anything is granted.
    pub fn haunt(&mut self, ghost: Ghost) {
        assert!(self.total == 0, "a ghost is older than every grant: {self:?}");
        if !self.rules.keep(Rule::Ghost) {
            return;
        }
        self.total += micros(ghost.amount());
        self.ghost = ghost;
        self.set_limit(self.limit);
    }

    /// Forgets what of the ghost is over.
    pub fn advance(&mut self, now: Time) {
        let ghost = self.ghost.at(now);
        if ghost != self.ghost {
            self.total -= micros(self.ghost.amount()) - micros(ghost.amount());
            self.ghost = ghost;
            self.settle_debt();
        }
    }

    /// No more than `amount` of the ghost is left, which counts until `end`.
    pub fn keep_ghost(&mut self, amount: Amount, end: Time) {
        let left = self.ghost().min(amount);
        self.total -= micros(self.ghost().saturating_sub(left));
        let end = end.max(self.ghost_end());
        self.ghost = Ghost::new(Part { amount: left, end }, Part::default());
        self.settle_debt();
    }

    /// Nothing of the ghost lasts beyond `end`.
    pub fn end_ghost(&mut self, end: Time) {
        self.ghost = self.ghost.until(end);
    }

    /// Counts no ghost any more: nothing is granted meanwhile to anybody who has not shown it.
    pub fn exorcise(&mut self) {
        self.total -= micros(self.ghost());
        self.ghost = self.ghost.without(Amount::MAX, GhostOrigin::Last);
        self.settle_debt();
    }

    /// The amount that may be out under earlier leaders and was not claimed.
    #[must_use]
    pub fn ghost(&self) -> Amount {
        self.ghost.amount()
    }

    /// The same by when it is over.
    #[must_use]
    pub fn ghost_parts(&self) -> &Ghost {
        &self.ghost
    }

    /// When all of that is over.
    #[must_use]
    pub fn ghost_end(&self) -> Time {
        self.ghost.end()
    }

    /// Adds to the ghost what a claimant gives up of its claim: it is out to nobody known again. To be called
    /// before it is given up.
    pub fn give_back(&mut self, amount: Amount) {
        self.ghost = self.ghost.with(amount);
        self.total += micros(amount);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SOON: Time = Time::from_nanos(10);
    const LATE: Time = Time::from_nanos(100);

    fn part(amount: u64, end: Time) -> Part {
        Part { amount: Amount::from_micros(amount), end }
    }

    /// A lease of before: who granted it, and whether the last leader had charged it all the same, as it was shown to that one.
    #[derive(Clone, Copy, Debug)]
    enum Lease {
        OfLast(u64),
        ShownToLast(u64),
        Left(u64),
    }

    fn lease() -> impl Strategy<Value = Lease> {
        (0u64..50, 0..3).prop_map(|(amount, which)| match which {
            0 => Lease::OfLast(amount),
            1 => Lease::ShownToLast(amount),
            _ => Lease::Left(amount),
        })
    }

    proptest! {
        /// Capacity that is out and was not shown is covered, also after the rest has ended, whoever claims, in
        /// whatever order, and whatever room the last leader had in its record.
        #[test]
        fn what_was_not_shown_stays_covered(
            leases in prop::collection::vec((lease(), any::<bool>(), 0u64..=100), 0..12),
            room in 0u64..20, surplus in 0u64..20, kept in 0u64..=100,
        ) {
            let sum = |of: fn(Lease) -> u64| leases.iter().map(|&(lease, ..)| of(lease)).sum::<u64>();
            let charged = sum(|lease| match lease {
                Lease::OfLast(amount) | Lease::ShownToLast(amount) => amount,
                Lease::Left(_) => 0,
            });
            let left = sum(|lease| if let Lease::Left(amount) = lease { amount } else { 0 }) + surplus;
            // It may say that less is left than there is, and that it granted that itself.
            let rest = left * kept / 100;
            let mut ghost = Ghost::new(part(charged + left - rest + room, LATE), part(rest, SOON));
            let (mut charged, mut left) = (charged, left - surplus);
            for (lease, claims, share) in leases {
                let (amount, origin) = match lease {
                    Lease::OfLast(amount) => (amount, GhostOrigin::Last),
                    Lease::ShownToLast(amount) | Lease::Left(amount) => (amount, GhostOrigin::Earlier),
                };
                if !claims {
                    continue;
                }
                // Whoever shows less than it is charged for does not use the rest of that.
                ghost = ghost.without(Amount::from_micros(amount * share / 100), origin);
                match lease {
                    Lease::Left(amount) => left -= amount,
                    Lease::OfLast(amount) | Lease::ShownToLast(amount) => charged -= amount,
                }
                prop_assert!(ghost.amount() >= Amount::from_micros(charged + left));
                prop_assert!(ghost.at(SOON).amount() >= Amount::from_micros(charged));
            }
        }
    }

    #[test]
    fn what_the_last_leader_granted_leaves_the_rest_as_it_is() {
        let ghost = Ghost::new(part(30, LATE), part(10, SOON));
        let claimed = ghost.without(Amount::from_micros(25), GhostOrigin::Last);
        assert_eq!(claimed.parts(), [part(10, SOON), part(5, LATE)]);
        assert_eq!((claimed.next_end(), claimed.end()), (Some(SOON), LATE));
        assert_eq!(claimed.at(SOON).amount(), Amount::from_micros(5));
        let claimed = ghost.without(Amount::from_micros(25), GhostOrigin::Earlier);
        assert_eq!(claimed.parts(), [part(0, SOON), part(15, LATE)]);
        assert_eq!(claimed.with(Amount::from_micros(7)).parts(), [part(0, SOON), part(22, LATE)]);
    }
}
