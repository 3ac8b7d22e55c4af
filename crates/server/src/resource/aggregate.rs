//! The aggregate of all demands below a node, made to fit into what the node above takes.
//!
//! Those below say what they like: two that stand for four thousand million clients each come to more than the wire can count,
//! and many curves to more buckets than a report may have. The node above would refuse all of it, and everybody below would
//! lose the resource for what a few have said. So counts are cut where they are greatest, and the curve with the most buckets
//! is made coarser until all of them fit. Nothing changes for demands that fit anyway.

use std::cmp::Reverse;

use lessor_algorithms::curve::CurveBucket;
use lessor_proto::message::{Band, Bands};

/// The grid is made coarser by halves, at most so often: then it has two buckets.
const COARSEST: u32 = 15;

/// The demands of one priority: those who want nothing first, then by the grid.
struct PriorityDemands {
    bands: Vec<Band>,
    /// The number of times that its grid was made coarser.
    halved: u32,
}

/// `bands`, as at most so many buckets, and no more clients of a priority than can be counted.
pub(super) fn fitted(bands: Bands, most_buckets: usize) -> Bands {
    let clients: u64 = bands.iter().map(|band| u64::from(band.subclients)).sum();
    if clients <= u64::from(u32::MAX) && bands.len() <= most_buckets {
        return bands;
    }
    let mut priorities: Vec<PriorityDemands> = Vec::new();
    for band in bands {
        match priorities.last_mut() {
            Some(last) if last.bands[0].priority == band.priority => last.bands.push(band),
            _ => priorities.push(PriorityDemands { bands: vec![band], halved: 0 }),
        }
    }
    priorities.iter_mut().for_each(PriorityDemands::saturate);
    while priorities.iter().map(PriorityDemands::buckets).sum::<usize>() > most_buckets
        && let Some(largest) = priorities.iter_mut().max_by_key(|demands| demands.buckets())
        && largest.buckets() > 0
    {
        largest.halve();
    }
    priorities.into_iter().flat_map(|demands| demands.bands).collect()
}

// === impl PriorityDemands ===

impl PriorityDemands {
    /// The buckets that they are on the wire: where there is one band, it is the sum.
    fn buckets(&self) -> usize {
        match self.bands.len() {
            1 => 0,
            _ => self.bands.iter().filter(|band| band.wants > 0.0).count(),
        }
    }

    /// Cuts the greatest counts until all together can be counted.
    fn saturate(&mut self) {
        let clients: u64 = self.bands.iter().map(|band| u64::from(band.subclients)).sum();
        let mut excess = clients.saturating_sub(u32::MAX.into());
        let mut order: Vec<usize> = (0..self.bands.len()).collect();
        order.sort_by_key(|&place| Reverse(self.bands[place].subclients));
        for place in order {
            let band = &mut self.bands[place];
            let cut = excess.min(u64::from(band.subclients - 1));
            band.subclients -= u32::try_from(cut).unwrap_or(u32::MAX);
            excess -= cut;
        }
    }

    /// Puts neighbours of the grid together.
    fn halve(&mut self) {
        self.halved += 1;
        let halved = self.halved;
        let place = |band: &Band| {
            let index = CurveBucket::index_of(band.wants.min(f64::MAX), band.subclients.into());
            index.map(|index| index >> halved)
        };
        // A count that was cut may have moved its bucket.
        self.bands.sort_by_key(place);
        self.bands.dedup_by(|next, before| {
            let is_same = halved > COARSEST || place(next) == place(before);
            if is_same {
                before.subclients = before.subclients.saturating_add(next.subclients);
                before.wants = (before.wants + next.wants).min(f64::MAX);
            }
            is_same
        });
    }
}

#[cfg(test)]
mod tests {
    use lessor_proto::ClientId;
    use lessor_proto::message::{Ask, HolderKind, Limits, Report};
    use lessor_proto::{Epoch, Incarnation, ReportId, ResourceId};
    use proptest::prelude::*;

    use super::*;

    /// Whether a node above takes these demands, as it reads them.
    fn taken(bands: Bands, limits: &Limits) -> Result<Bands, String> {
        let report = Report::new(ResourceId::new("db", 256).unwrap(), bands);
        let ask = Ask {
            kind: HolderKind::Node,
            holder: ClientId::new("leaf", 256).unwrap(),
            incarnation: Some(Incarnation(1)),
            report_id: Some(ReportId(1)),
            target_epoch: Some(Epoch(1)),
            line: None,
            reports: vec![report],
        };
        let read = Ask::from_node(ask.to_node_wire(), limits).map_err(|refusal| refusal.to_string())?;
        Ok(read.reports.into_iter().next().unwrap().bands)
    }

    fn wants(bands: &Bands) -> f64 {
        bands.iter().map(|band| band.wants).sum()
    }

    fn band(priority: i64, subclients: u32, wants: f64) -> Band {
        Band { priority, subclients, wants }
    }

    #[test]
    fn two_that_stand_for_everybody_are_counted_as_far_as_that_goes() {
        let bands: Bands =
            [band(0, 3, 30.0), band(0, u32::MAX, 1e9), band(0, u32::MAX, 1e12)].into_iter().collect();
        let limits = Limits::default();
        assert!(taken(bands.clone(), &limits).is_err(), "it is too much as it is");
        let read = taken(fitted(bands.clone(), limits.buckets_per_resource), &limits).unwrap();
        assert_eq!(read.iter().find(|band| band.subclients == 3), Some(&bands[0]), "those who are few stay");
        assert!((wants(&read) - wants(&bands)).abs() < 1e-3);
    }

    #[test]
    fn the_curve_of_whoever_has_the_most_buckets_is_made_coarser() {
        let honest = (0..20).map(|octave| band(1, 1, f64::from(1 << octave)));
        let greedy = (0..1_400).map(|index| band(0, 1, 2_f64.powf(f64::from(index) / 8.0 + 0.05)));
        let bands: Bands = honest.clone().chain(greedy).collect();
        let limits = Limits::default();
        assert!(taken(bands.clone(), &limits).is_err(), "it is too much as it is");
        let read = taken(fitted(bands, limits.buckets_per_resource), &limits).unwrap();
        assert_eq!(read.iter().filter(|band| band.priority == 1).count(), 20, "{read:?}");
        assert_eq!(read.iter().filter(|band| band.priority == 0).count(), 700);
    }

    proptest! {
        #[test]
        fn whatever_is_said_below_is_taken_above(
            mut said in proptest::collection::vec((0i64..4, 1u32.., 0u64..1 << 60), 1..40),
            most in 1usize..12,
        ) {
            said.sort_by(|a, b| (b.0, a.2).cmp(&(a.0, b.2)));
            let bands: Bands = said.iter().map(|&(priority, clients, wants)| band(priority, clients, wants as f64)).collect();
            let limits = Limits { buckets_per_resource: most, ..Limits::default() };
            let sum = wants(&bands);
            let read = taken(fitted(bands, most), &limits);
            prop_assert!(read.is_ok(), "{:?}", read);
            prop_assert!((wants(&read.unwrap()) - sum).abs() <= sum * 1e-9);
        }
    }
}
