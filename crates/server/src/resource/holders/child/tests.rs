//! Tests of one holder as its grantor remembers it.

use super::*;

#[test]
fn a_child_stays_small() {
    assert_eq!(size_of::<Demands>(), 16);
    assert_eq!(size_of::<Option<Child>>(), 120);
}

fn child() -> Child {
    let holder = Holder { kind: HolderKind::Client, name: "a", life: Life::Incarnation(Incarnation(1)) };
    Child::new(
        Time::ZERO,
        holder,
        PollerLife { epoch: Epoch::default(), session: Incarnation(1) },
        Demands::from_bands(&[]),
    )
}

#[test]
fn numbers_of_grants_go_on_in_another_round() {
    let mut child = child();
    child.go_on_after(u64::from(u32::MAX) - 2);
    let numbers: Vec<u64> = (0..4)
        .map(|_| {
            child.take_seq().unwrap();
            child.last_seq()
        })
        .collect();
    let round = 1 << 32;
    assert_eq!(numbers, [round - 2, round + 2, round + 3, round + 4]);
    assert_eq!(child.in_round(round - 2), None, "it promises nothing any more");
    assert_eq!(child.in_round(round + 2), Some(2));
    assert_eq!(child.in_round(round * 2), Some(u64::MAX));
}

#[test]
fn who_shows_a_number_that_cannot_be_does_not_use_them_up() {
    for seq in [u64::MAX, u64::MAX - 1, 200 << 32] {
        let mut child = child();
        child.go_on_after(seq);
        assert_eq!(child.take_seq(), Some(1), "{seq}");
    }
    let mut child = child();
    (child.round, child.next_seq) = (u8::MAX, u32::MAX);
    assert_eq!(child.take_seq(), None, "after 2^40 nothing is granted");
}

#[test]
fn numbers_of_reports_begin_anew_after_the_last() {
    let mut child = child();
    let mut hear = |id| child.hear(Time::ZERO, Some(ReportId(id)), None);
    let heard: Vec<bool> =
        [u64::MAX - 1, u64::MAX, u64::MAX - 1, 1, 2, u64::MAX, 2, 3].into_iter().map(&mut hear).collect();
    assert_eq!(heard, [true, true, false, true, true, false, false, true]);
}
