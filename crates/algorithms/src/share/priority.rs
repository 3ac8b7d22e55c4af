//! Bands: the demands of one priority each, served strictly in order.
//!
//! A band has to itself what the wants of all greater priorities leave of the capacity. So nobody gets anything before
//! everyone of a greater priority has all they want.

use super::Demand;
use crate::index::{Index, Sums};

/// All demands, by priority. No band is empty.
#[derive(Clone, Default, Debug)]
pub(super) struct Bands {
    /// The greatest priority first.
    bands: Vec<(i64, Index)>,
}

/// The demands of one priority, and what they have to divide among them.
pub(super) struct Band<'a> {
    pub(super) demands: &'a Index,
    pub(super) capacity: f64,
}

// === impl Bands ===

impl Bands {
    pub(super) fn len(&self) -> usize {
        self.bands.len()
    }

    pub(super) fn has(&self, priority: i64) -> bool {
        self.position(priority).is_ok()
    }

    /// Of all bands.
    pub(super) fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        self.bands.iter().for_each(|(_, demands)| sums += demands.sums());
        sums
    }

    pub(super) fn insert(&mut self, demand: &Demand) {
        let at = self.position(demand.priority).unwrap_or_else(|at| {
            self.bands.insert(at, (demand.priority, Index::new()));
            at
        });
        self.bands[at].1.insert(demand.wants, demand.weight);
    }

    pub(super) fn remove(&mut self, demand: &Demand) {
        let at = self.position(demand.priority).expect("only a demand that was inserted can be removed");
        self.bands[at].1.remove(demand.wants, demand.weight);
        if self.bands[at].1.is_empty() {
            self.bands.remove(at);
        }
    }

    /// The greatest first.
    pub(super) fn priorities(&self) -> impl Iterator<Item = i64> {
        self.bands.iter().map(|&(priority, _)| priority)
    }

    /// The demands of a priority, if there are any.
    pub(super) fn demands(&self, priority: i64) -> Option<&Index> {
        self.position(priority).ok().map(|at| &self.bands[at].1)
    }

    /// The band of a priority, if any demand has it.
    pub(super) fn band(&self, priority: i64, capacity: f64) -> Option<Band<'_>> {
        let demands = self.demands(priority)?;
        Some(Band { demands, capacity: self.left_for(priority, capacity) })
    }

    /// The part of the capacity that all greater priorities leave.
    pub(super) fn left_for(&self, priority: i64, capacity: f64) -> f64 {
        let greater = self.bands.iter().take_while(|&&(held, _)| held > priority);
        greater.fold(capacity, |left, (_, demands)| left - demands.sums().wants).max(0.0)
    }

    fn position(&self, priority: i64) -> Result<usize, usize> {
        self.bands.binary_search_by(|(held, _)| priority.cmp(held))
    }
}
