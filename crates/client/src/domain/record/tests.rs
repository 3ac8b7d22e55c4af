//! Tests of the record of a domain.

use lessor_algorithms::tiers::TierPolicy;

use super::*;

fn record(name: &str) -> Record {
    let contract = TierPolicy::new(Vec::new(), None, None).map(Contract::from).unwrap();
    Record::new(name, Arc::new(Terms { contract: Arc::new(contract), generation: 0 }))
}

#[test]
fn a_record_is_two_lines_of_memory() {
    assert_eq!((size_of::<Record>(), align_of::<Record>()), (128, 64));
}

#[test]
fn what_does_not_fit_into_a_record_is_counted_aside() {
    let (mut record, mut granted) = (record("a"), 0);
    for hits in [1, 65_534, 1, 3, u32::MAX, 7, 65_535, 65_536] {
        record.count_granted(hits);
        granted += u64::from(hits);
        assert_eq!(record.granted(), granted);
    }
    (0..70_000).for_each(|_| record.count_refused());
    assert_eq!((record.refused(), record.granted()), (70_000, granted));
}

#[test]
fn a_long_name_lies_aside() {
    let name = "x".repeat(100);
    let mut record = record(&name);
    record.replicate(false);
    assert!(record.is(&name) && !record.is(&name[1..]) && record.name() == name);
    assert!(record.delta().is_some());
}
