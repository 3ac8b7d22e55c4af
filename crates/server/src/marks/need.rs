//! The need of a mark: the amount that it has to allow for, and what is written for it.

use lessor_proto::{Amount, Epoch, ResourceId, Time};

use crate::repository::Kind;

/// The need that a mark has to allow for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Need {
    /// The amount that is out or would be, if there were no mark.
    pub(crate) amount: Amount,
    /// The amount that is out.
    pub(crate) out: Amount,
    /// The part of `amount` that outlasts what the record says to be left from before.
    pub(crate) lasting: Amount,
    /// The part of `out` that is left from before, and over when the record is to say so; nothing before holders have claimed.
    pub(crate) rest: Amount,
    /// The amount of claims that wait until the record says that they outlast the rest.
    pub(crate) room: Amount,
    /// Nothing is granted in fractions of this.
    pub(crate) grain: Amount,
    /// The most that can be out; absent: without limit.
    pub(crate) limit: Option<Amount>,
    /// Whether whatever a mark is too high by is missing to those who hold from a successor: of a lease from the node above,
    /// which is as much as is wanted, and of what everybody wants more of than there is.
    pub(crate) is_tight: bool,
    /// Whether somebody got less than its share because of the mark.
    pub(crate) is_felt: bool,
    /// The epoch of the node above under which that lease was granted.
    pub(crate) epoch: Option<Epoch>,
    /// The kind of what is out; absent where that is not known.
    pub(crate) kind: Option<Kind>,
}

/// The value that is to be written for a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NeedValue {
    pub(super) amount: Amount,
    pub(super) rest: Amount,
    /// Absent: that of the mark before.
    pub(super) kind: Option<Kind>,
}

/// When what is left from before is over that the record is to tell of, never earlier than it was said to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Over {
    /// Of all but floors.
    pub(crate) lease: Time,
    /// Of floors.
    pub(crate) safe_lease: Time,
}

/// By what fraction of a lease a mark may be too high for longer.
const TIGHT: u64 = 256;

// === impl Need ===

impl Need {
    /// The mark that is written for it.
    pub(super) fn mark(&self) -> Amount {
        if self.amount == Amount::ZERO {
            return Amount::ZERO;
        }
        let (grain, ahead) = (self.grain.as_micros().max(1), self.amount.saturating_add(self.chunk()));
        let ahead = Amount::from_micros(ahead.as_micros().div_ceil(grain).saturating_mul(grain));
        match self.limit {
            // What is out may pass a limit that was cut.
            Some(limit) => ahead.min(limit.max(self.amount)),
            None => ahead,
        }
    }

    /// The mark that is written when it has been less for some time.
    pub(super) fn lower_mark(&self) -> Amount {
        if self.is_tight { self.amount } else { self.mark() }
    }

    /// A mark that allows for it, and what of that is left from before. If something of that is being claimed, half as much
    /// is said to be left as is not: others may claim as well.
    pub(super) fn beside(&self, amount: Amount) -> NeedValue {
        let rest = match self.room {
            Amount::ZERO => self.rest,
            room => Amount::from_micros(self.rest.saturating_sub(room).as_micros() / 2),
        };
        let lasting = self.out.saturating_sub(self.rest).saturating_add(self.room);
        let rest = rest.min(amount.saturating_sub(lasting)).as_micros();
        let rest = Amount::from_micros(rest - rest % self.grain.as_micros().max(1));
        NeedValue { amount, rest: if rest > self.ample() { rest } else { Amount::ZERO }, kind: self.kind }
    }

    /// Whether a mark is much too high.
    pub(super) fn is_exceeded_by(&self, mark: Amount) -> bool {
        let ample = self.ample();
        mark > self.amount.saturating_add(ample) || self.amount == Amount::ZERO && mark > Amount::ZERO
    }

    /// By how much a mark may be too high.
    pub(super) fn ample(&self) -> Amount {
        let chunk = self.chunk();
        match self.is_tight {
            true => Amount::from_micros(self.whole().as_micros() / TIGHT),
            false => chunk.saturating_add(chunk),
        }
    }

    fn whole(&self) -> Amount {
        self.limit.unwrap_or(self.amount)
    }

    /// The amount by which marks are raised ahead.
    fn chunk(&self) -> Amount {
        Amount::from_micros(self.amount.as_micros() / 8 + self.whole().as_micros().div_ceil(64))
    }
}

// === impl Over ===

impl Over {
    pub(super) fn of(&self, id: &ResourceId) -> Time {
        if id.is_floor() { self.safe_lease } else { self.lease }
    }

    /// When the next of it is.
    pub(super) fn next(&self, now: Time) -> Option<Time> {
        [self.lease, self.safe_lease].into_iter().filter(|&at| now < at).min()
    }
}
