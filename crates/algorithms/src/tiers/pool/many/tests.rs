//! Tests of a history of any length.

use super::*;

fn runs(many: &Many, queue: usize) -> Vec<(u64, u32)> {
    many.runs(queue).map(|run| (run.at, run.count)).collect()
}

#[test]
fn totals_stop_at_the_greatest_number() {
    let mut many = Many::with_room(1, 2);
    many.push(0, 1, u32::MAX - 1);
    many.push(0, 2, 5);
    assert_eq!(runs(&many, 0), [(1, u32::MAX - 1), (2, 1)]);
    many.forget_before(0, 2);
    assert_eq!(many.total(0), 1);
}

#[test]
fn what_is_full_takes_hits_of_other_times_as_of_the_newest() {
    let mut many = Many::with_room(2, 2);
    (0..70_000).for_each(|at| many.push(0, at, 1));
    assert_eq!((many.total(0), many.runs(0).count()), (70_000, MANY - 3));
    let newest = MANY as u64 - 4;
    assert_eq!(many.newest(0).map(|run| run.at), Some(newest));
    many.insert(0, 7, 5);
    assert_eq!(many.runs(0).nth(7).map(|run| run.count), Some(6));
    // Another queue still gets its first.
    many.push(1, 1, 1);
    many.push(1, 2, 1);
    assert_eq!(runs(&many, 1), [(1, 2)]);
    many.forget_before(0, 1);
    many.push(1, 3, 1);
    assert_eq!(runs(&many, 1), [(1, 2), (3, 1)]);
}
