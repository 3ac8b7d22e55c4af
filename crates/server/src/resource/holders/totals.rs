//! The totals of the holders that draw no incarnation: what they are charged for, and the shares of their part of the capacity.

use lessor_algorithms::{Demand, SharePolicy, Shares};
use lessor_proto::Amount;

use super::child::Demands;
use crate::repository::{Fraction, Template};

/// All holders that draw no incarnation together.
#[derive(Clone, Default, Debug)]
pub(in crate::resource) struct LegacyTotals {
    /// The number of them.
    count: usize,
    /// The amount that they are charged for, in millionths.
    lent: u128,
    /// The shares of their part of the capacity; absent if that is all of it.
    part: Option<Box<Shares>>,
}

// === impl LegacyTotals ===

impl LegacyTotals {
    /// The number of them.
    pub(in crate::resource) fn count(&self) -> usize {
        self.count
    }

    /// The amount that they are charged for, in millionths.
    pub(in crate::resource) fn lent(&self) -> u128 {
        self.lent
    }

    /// The shares of their part of the capacity; absent if that is all of it.
    pub(in crate::resource) fn part(&self) -> Option<&Shares> {
        self.part.as_deref()
    }

    /// There is one holder more, which draws an incarnation or not.
    pub(super) fn add(&mut self, incarnated: bool) {
        self.count += usize::from(!incarnated);
    }

    /// It is forgotten.
    pub(super) fn remove(&mut self, incarnated: bool) {
        self.count -= usize::from(!incarnated);
    }

    /// A holder, which draws an incarnation or not, wants this.
    pub(super) fn enter(&mut self, incarnated: bool, demand: &Demand) {
        if let Some(part) = self.part.as_mut().filter(|_| !incarnated) {
            part.insert(demand);
        }
    }

    /// It wants it no more.
    pub(super) fn leave(&mut self, incarnated: bool, demand: &Demand) {
        if let Some(part) = self.part.as_mut().filter(|_| !incarnated) {
            part.remove(demand);
        }
    }

    /// One of them is charged for more or less: `before` was lent to all holders, and `after` is.
    pub(super) fn move_lent(&mut self, before: u128, after: u128) {
        self.lent = self.lent + after - before;
    }

    /// Shares the part of the capacity that they may have by `policy`, as `terms` say; `counted` are the
    /// demands of theirs that count.
    pub(super) fn share_part<'a>(
        &mut self,
        terms: &Template,
        policy: SharePolicy,
        counted: impl Iterator<Item = &'a Demands>,
    ) {
        self.part = None;
        if terms.legacy_max_fraction == Fraction::ALL || !policy.is_bounded() {
            return;
        }
        let mut part = Shares::new(policy, 0.0);
        counted.flat_map(Demands::iter).for_each(|demand| part.insert(&demand));
        self.part = Some(Box::new(part));
    }

    /// Their part has become so much.
    pub(super) fn set_capacity(&mut self, capacity: Amount) {
        if let Some(part) = &mut self.part {
            part.set_capacity(capacity.as_f64());
        }
    }
}
