//! The demands of a node on the wire: one aggregate a priority, with the buckets of its demand curve inside.
//!
//! In the house a priority has several bands, each a bucket. A parent that knows nothing of buckets reads the sums.

use std::collections::BTreeMap;

use super::{Band, Bands};
use crate::message::field::{self, Place};
use crate::message::{Limits, Refusal};
use crate::wire::{DemandBucket, PriorityBandAggregate};

/// Points of the grid of demand curves in one octave.
const BUCKETS_PER_OCTAVE: f64 = 8.0;
const WANTED_INDEX: &str = "the whole part of 8 log2(wants / subclients)";

/// Checks the aggregates of one resource.
pub(super) fn from_wire(
    place: Place<'_>,
    aggregates: &[PriorityBandAggregate],
    limits: &Limits,
) -> Result<Bands, Refusal> {
    if aggregates.is_empty() {
        return Err(Refusal::missing(place.path("wants"), "at least one priority band"));
    }
    let at_most = |field: &str, count, limit| match count > limit {
        true => Err(Refusal::Exhausted { what: place.path(field), count, limit }),
        false => Ok(()),
    };
    at_most("wants", aggregates.len(), limits.bands_per_resource)?;
    let buckets = aggregates.iter().map(|aggregate| aggregate.bucket.len()).sum();
    at_most("wants.bucket", buckets, limits.buckets_per_resource)?;

    let mut bands = Bands::with_capacity(aggregates.len() + buckets);
    for (number, aggregate) in aggregates.iter().enumerate() {
        let path = |field: &str| place.path(&format!("wants[{number}].{field}"));
        let whole = whole(path, aggregate)?;
        if aggregates[..number].iter().any(|seen| seen.priority == aggregate.priority) {
            return Err(Refusal::invalid(
                path("priority"),
                format!("is {} for the second time", whole.priority),
                "each priority once",
            ));
        }
        split(path, whole, &aggregate.bucket, &mut bands)?;
    }
    Ok(bands)
}

/// A priority.
pub(super) fn priority(path: impl Fn() -> String, priority: Option<i64>) -> Result<i64, Refusal> {
    priority.ok_or_else(|| Refusal::missing(path(), "a whole number, greater is served first"))
}

/// The sums of one aggregate.
fn whole(path: impl Fn(&str) -> String, aggregate: &PriorityBandAggregate) -> Result<Band, Refusal> {
    let priority = priority(|| path("priority"), aggregate.priority)?;
    let subclients = field::subclients(|| path("num_clients"), aggregate.num_clients)?;
    let wants = field::amount(|| path("wants"), aggregate.wants)?;
    Ok(Band { priority, subclients, wants })
}

/// A band for each bucket, and one for those that are in none.
fn split(
    path: impl Fn(&str) -> String,
    whole: Band,
    buckets: &[DemandBucket],
    bands: &mut Bands,
) -> Result<(), Refusal> {
    let mut rest = whole;
    for (number, bucket) in buckets.iter().enumerate() {
        let path = |field: &str| path(&format!("bucket[{number}].{field}"));
        // Which bucket it is follows from the other two.
        bucket.index.ok_or_else(|| Refusal::missing(path("index"), WANTED_INDEX))?;
        let subclients = field::subclients(|| path("subclients"), bucket.subclients)?;
        let Some(left) = rest.subclients.checked_sub(subclients) else {
            let wanted = format!("at most {}, which is left of num_clients", rest.subclients);
            return Err(Refusal::invalid(path("subclients"), format!("is {subclients}"), wanted));
        };
        let wants = field::amount(|| path("wants"), bucket.wants)?;
        bands.push(Band { priority: whole.priority, subclients, wants });
        rest.subclients = left;
    }
    if rest.subclients > 0 {
        let wants = whole.wants - sum(buckets.iter().filter_map(|bucket| bucket.wants));
        bands.push(Band { wants: wants.max(0.0), ..rest });
    }
    Ok(())
}

/// An aggregate for each priority, the greatest first.
pub(super) fn to_wire(bands: &[Band]) -> Vec<PriorityBandAggregate> {
    if bands.is_empty() {
        return vec![aggregate(&[Band::NOTHING])];
    }
    let mut by_priority: BTreeMap<i64, Vec<Band>> = BTreeMap::new();
    for band in bands {
        by_priority.entry(band.priority).or_default().push(*band);
    }
    by_priority.values().rev().map(|bands| aggregate(bands)).collect()
}

/// Of bands of one priority. Those that want nothing are in no bucket.
fn aggregate(bands: &[Band]) -> PriorityBandAggregate {
    let buckets = if bands.len() > 1 { bands } else { &[] };
    PriorityBandAggregate {
        priority: Some(bands[0].priority),
        num_clients: Some(bands.iter().map(|band| i64::from(band.subclients)).sum()),
        wants: Some(sum(bands.iter().map(|band| band.wants))),
        bucket: buckets.iter().filter(|band| band.wants > 0.0).map(bucket).collect(),
    }
}

fn bucket(band: &Band) -> DemandBucket {
    let index = BUCKETS_PER_OCTAVE * (band.wants / f64::from(band.subclients)).log2();
    DemandBucket {
        // Numbers of such a size have all their digits.
        index: Some(index.floor() as i32),
        subclients: Some(band.subclients.into()),
        wants: Some(band.wants),
    }
}

/// Demands without end come to the greatest number there is.
fn sum(wants: impl Iterator<Item = f64>) -> f64 {
    wants.sum::<f64>().min(f64::MAX)
}
