//! The debt: the cuts of the limit below what is out, each with what was granted since.
//!
//! The grants since a cut fit the limit that it made, or renewals at the old amounts would never let the sum fit. A further cut
//! within the debt leaves that as it is: what was granted between the two has to fit the first limit, with what is granted
//! since the second one, and only the latter has to fit the second. With one count for both, those who were granted something
//! between the two would fill the second limit, and nobody would be granted anything.

use lessor_proto::Amount;
use smallvec::{SmallVec, smallvec};

use super::account::Account;
use super::{amount, micros};

/// The number of what was granted before there was any debt. What holders have from before the start bears a lower one.
const FIRST: u32 = 1;

/// Cuts that are counted one by one in a debt: what was granted since the older ones is soon acknowledged.
const MOST_CUTS: usize = 8;

/// A cut of the limit below what was out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The number that grants bear from then on, up to the next one.
    pub number: u32,
    /// The limit that what was granted since has to fit. Where two cuts are counted as one, it may not, and nothing more is
    /// granted that would add to it.
    pub limit: Amount,
    /// The amount that is charged to what was granted since, in millionths.
    pub since: u128,
}

/// The cuts that count in one ledger.
#[derive(Clone, Debug)]
pub(super) struct Debt {
    /// Oldest first, each to less than the one before. Without a debt that is the first one of the last debt.
    cuts: SmallVec<[Cut; 1]>,
    /// The number of the last cut that there has been.
    last: u32,
    is_open: bool,
}

/// The charges of one account to the cuts that count, oldest first.
pub(super) type SinceCuts = SmallVec<[Amount; 1]>;

// === impl Cut ===

impl Cut {
    /// The most that may be granted to `account` beside what others were granted since.
    fn room(&self, account: &Account) -> Amount {
        let others = self.since - micros(account.charge_since(self.number));
        amount(micros(self.limit).saturating_sub(others))
    }
}

// === impl Debt ===

impl Debt {
    /// The state in which nothing was ever cut.
    pub(super) fn none() -> Debt {
        let start = Cut { number: FIRST, limit: Amount::MAX, since: 0 };
        Debt { cuts: smallvec![start], last: FIRST, is_open: false }
    }

    /// Whether more is out than the limit.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// The number that a grant bears.
    pub(super) fn number(&self) -> u32 {
        self.last
    }

    /// The cuts of this debt, oldest first; none without one.
    pub(super) fn cuts(&self) -> &[Cut] {
        if self.is_open { &self.cuts } else { &[] }
    }

    /// The limit is `limit` from here on, and more than that is out.
    pub(super) fn cut(&mut self, limit: Amount) {
        if self.is_open
            && let Some(index) = self.cuts.iter().position(|cut| cut.limit <= limit)
        {
            // It was raised: what was granted since the cuts to less fits, and nothing else need.
            self.cuts.truncate(index + 1);
            self.cuts[index].limit = limit;
            return;
        }
        if !self.is_open {
            self.cuts.clear();
        }
        if self.cuts.len() == MOST_CUTS {
            self.merge_alike();
        }
        self.last += 1;
        self.cuts.push(Cut { number: self.last, limit, since: 0 });
        self.is_open = true;
        self.forget_passed();
    }

    /// More was shown than the limit has room for: what was granted since the last debt began counts against it.
    pub(super) fn begin_as_shown(&mut self, limit: Amount) {
        if !self.is_open {
            self.cuts[0].limit = limit;
            self.is_open = true;
        }
    }

    /// The debt is over: all that is out fits the limit.
    pub(super) fn end(&mut self) {
        self.cuts.truncate(1);
        self.is_open = false;
    }

    /// The charges of `account` to each of the cuts.
    pub(super) fn charges(&self, account: &Account) -> SinceCuts {
        self.cuts.iter().map(|cut| account.charge_since(cut.number)).collect()
    }

    /// An account that was charged `before` is charged as it is now.
    pub(super) fn note(&mut self, before: &[Amount], account: &Account) {
        for (cut, &before) in self.cuts.iter_mut().zip(before) {
            cut.since = cut.since + micros(account.charge_since(cut.number)) - micros(before);
        }
        self.forget_passed();
    }

    /// The most that may be granted to `account` for what others were granted since each of the cuts.
    pub(super) fn room(&self, account: &Account) -> Amount {
        self.cuts.iter().map(|cut| cut.room(account)).min().unwrap_or(Amount::MAX)
    }

    /// The same of the last cut only.
    pub(super) fn room_since_last(&self, account: &Account) -> Amount {
        self.cuts.last().map_or(Amount::MAX, |cut| cut.room(account))
    }

    /// Counts two cuts, one after the other, as one: what was granted since the first of them, against the limit of the second.
    /// It is the pair of which that is passed by the least.
    fn merge_alike(&mut self) {
        let passed = |pair: &[Cut]| pair[0].since.saturating_sub(micros(pair[1].limit));
        let pairs = self.cuts.windows(2).map(passed).enumerate();
        if let Some((index, _)) = pairs.min_by_key(|&(_, passed)| passed) {
            let second = self.cuts.remove(index + 1);
            self.cuts[index].limit = second.limit;
        }
    }

    /// Forgets the cuts since which nothing is charged that was not granted since the next one: that one is to less, and a
    /// grant lasts no less long than those before it.
    fn forget_passed(&mut self) {
        let mut index = 0;
        while index + 1 < self.cuts.len() {
            match self.cuts[index].since == self.cuts[index + 1].since {
                true => _ = self.cuts.remove(index),
                false => index += 1,
            }
        }
    }
}
