//! Batches: when holders fall short of their share faster than they can be served one by one, they are served together.
//!
//! A share that has moved by less than a message is worth is recalled in slivers, a hundred or two for one newcomer. Of a
//! herd of newcomers each would cost as many, while all of them together take a larger part from everybody, in one message.
//! So a *credit* of recalls serves the first at once. When it is used up, recalls are put off for as long as others come,
//! and no longer than [`LONGEST`]; then everything that is missing by then is recalled. What is free is granted meanwhile.

use std::time::Duration;

use lessor_proto::{Amount, Time};

/// The recalls that are made at once: those for a share, and some more.
const CREDIT: u32 = 256;
/// The time in which one more may be made.
const REFILL: Duration = Duration::from_millis(2);
/// When nobody has come for so long, nobody else is waited for.
const QUIET: Duration = Duration::from_millis(20);
/// The longest time for which recalls are put off.
const LONGEST: Duration = Duration::from_millis(500);

/// Whether recalls are made or put off.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    credit: u32,
    /// The time up to which the credit has been refilled.
    refilled: Time,
    /// When somebody fell short last.
    joined: Time,
    /// Since when recalls are put off, if they are.
    since: Option<Time>,
    /// The amount that is still to be recalled for the batch that is being served.
    open: Amount,
}

// === impl Batch ===

impl Default for Batch {
    fn default() -> Batch {
        Batch { credit: CREDIT, refilled: Time::ZERO, joined: Time::ZERO, since: None, open: Amount::ZERO }
    }
}

impl Batch {
    /// Somebody has fallen short.
    pub(super) fn join(&mut self, now: Time) {
        self.joined = now;
    }

    /// The recalls that may be made now, and the amount that they may bring, where `need` is missing.
    pub(super) fn allow(&mut self, now: Time, need: Amount) -> (usize, Amount) {
        self.refill(now);
        if need == Amount::ZERO {
            (self.since, self.open) = (None, Amount::ZERO);
            return (0, need);
        }
        if self.open > Amount::ZERO {
            return (usize::MAX, need.min(self.open));
        }
        if self.credit > 0 {
            return (self.credit as usize, need);
        }
        let since = *self.since.get_or_insert(now);
        if now < self.ripens(since) {
            return (0, need);
        }
        (self.since, self.open) = (None, need);
        (usize::MAX, need)
    }

    /// Notes `count` recalls that were made, which bring `amount`.
    pub(super) fn recalled(&mut self, count: usize, amount: Amount) {
        if self.open == Amount::ZERO {
            self.credit = self.credit.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
        }
        // Where nothing can be recalled the batch has what it gets.
        self.open = if count == 0 { Amount::ZERO } else { self.open.saturating_sub(amount) };
    }

    /// Whether recalls are put off.
    pub(super) fn is_gathering(&self) -> bool {
        self.since.is_some()
    }

    /// When those who wait are served at the latest.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.since.map(|since| self.ripens(since))
    }

    fn ripens(&self, since: Time) -> Time {
        (self.joined + QUIET).min(since + LONGEST)
    }

    fn refill(&mut self, now: Time) {
        let more = now.since(self.refilled).as_nanos() / REFILL.as_nanos();
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        self.refilled = if more < CREDIT { self.refilled + REFILL * more } else { now };
        self.credit = self.credit.saturating_add(more).min(CREDIT);
    }
}
