//! Tests of the record of a node.

use super::*;

const NOON: Time = Time::from_nanos(1_000_000_000_000);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn db() -> ResourceId {
    ResourceId::new("db", 256).unwrap()
}

#[test]
fn floors_end_later_and_hold_nothing_else_up() {
    let (longest_lease, longest_safe_lease) = (seconds(60), seconds(3_600));
    let record = Record { longest_lease, longest_safe_lease, ..Record::default() };
    assert_eq!(record.ends(&db(), NOON, Drift::NONE), NOON + seconds(60));
    assert_eq!(record.ends(&db().floor(), NOON, Drift::NONE), NOON + seconds(3_600));
    // Written before there were floors: what bears such a name was granted as everything else.
    let before = Record { longest_safe_lease: Duration::ZERO, ..record };
    assert_eq!(before.ends(&db().floor(), NOON, Drift::NONE), NOON + seconds(60));
}

#[test]
fn what_is_out_ends_after_the_authority_and_the_longest_lease() {
    let record = Record { longest_lease: seconds(60), authority: seconds(4), ..Record::default() };
    assert_eq!(record.opens(NOON, Drift::NONE), NOON + seconds(4));
    assert_eq!(record.ends(&db(), NOON, Drift::NONE), NOON + seconds(64));
    let drift = Drift::from_parts_per_million(10_000);
    assert!(record.opens(NOON, drift) > NOON + Duration::from_millis(4_080));
}

#[test]
fn nobody_waits_for_one_who_has_resigned() {
    let record =
        Record { longest_lease: seconds(60), authority: seconds(4), closed: true, ..Record::default() };
    assert_eq!(record.opens(NOON, Drift::NONE), NOON);
    assert_eq!(record.ends(&db(), NOON, Drift::NONE), NOON + seconds(60));
}
