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

    /// The band of a priority that some demand has.
    pub(super) fn band(&self, priority: i64, capacity: f64) -> Band<'_> {
        let at = self.position(priority).expect("only a demand that was inserted has a share");
        let (above, from_here) = self.bands.split_at(at);
        let capacity = above.iter().fold(capacity, |left, (_, demands)| left - demands.sums().wants);
        Band { demands: &from_here[0].1, capacity: capacity.max(0.0) }
    }

    fn position(&self, priority: i64) -> Result<usize, usize> {
        self.bands.binary_search_by(|(held, _)| priority.cmp(held))
    }
}
