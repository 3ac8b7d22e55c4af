//! Tests of the order of those who listen.

use super::*;

fn rank(wants: u64, holds: u64, weight: u32) -> Option<Rank> {
    Some(Rank { priority: 0, weight, wants: Amount::from_units(wants), holds: Amount::from_units(holds) })
}

fn streaming(ranks: &[Option<Rank>]) -> Streaming {
    let mut streaming = Streaming::default();
    for (slot, rank) in (0..).zip(ranks) {
        streaming.attach(slot, Peer::new(u64::from(slot), slot));
        streaming.rank(slot, *rank);
    }
    streaming
}

#[test]
fn those_with_the_most_and_those_with_too_much_are_found() {
    let mut streaming = streaming(&[rank(50, 50, 1), rank(50, 50, 2), rank(10, 20, 1), rank(20, 20, 1)]);
    assert_eq!(streaming.fullest(0).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(streaming.fullest(1).count(), 0);
    streaming.park(0);
    assert_eq!(streaming.fullest(0).collect::<Vec<_>>(), [1, 2], "what takes nothing gives nothing");
    streaming.rank(0, rank(50, 60, 1));
    assert!(streaming.unpark(0) && !streaming.unpark(0));
    assert_eq!(streaming.fullest(0).collect::<Vec<_>>(), [0, 2], "it has moved meanwhile");
}

#[test]
fn the_hungriest_come_first_and_the_contented_not_at_all() {
    let streaming = streaming(&[rank(50, 40, 1), rank(50, 20, 1), rank(10, 10, 1), rank(100, 30, 2)]);
    let mut order = Vec::new();
    let mut last = None;
    while let Some(hungry) = streaming.next_below(0, 40.0, last) {
        order.push(hungry.slot());
        last = Some(hungry);
    }
    assert_eq!(order, [3, 1]);
}

#[test]
fn those_without_a_rank_are_looked_at_in_slices_until_all_were() {
    let mut streaming = streaming(&[None, None, rank(10, 20, 1), None, None, None]);
    assert_eq!(streaming.others(9), [0, 1, 3, 4, 5]);
    streaming.begin_round();
    let mut looked_at = Vec::new();
    while streaming.is_in_round() {
        let slice = streaming.others(2);
        streaming.pass_others(&slice);
        looked_at.push(slice);
    }
    assert_eq!(looked_at, [[0, 1], [3, 4], [5, 0]]);
    streaming.begin_round();
    assert_eq!(streaming.others(2), [1, 3], "the next round goes on where that one ended");
    (0..6).for_each(|slot| streaming.remove(slot));
    streaming.pass_others(&[]);
    assert!(!streaming.is_in_round(), "nobody is left");
}

#[test]
fn who_leaves_leaves_nothing_behind() {
    let mut streaming = streaming(&[rank(50, 40, 1), None, rank(10, 20, 1)]);
    streaming.rank(0, rank(50, 45, 1));
    streaming.stall(2);
    for slot in 0..3 {
        streaming.remove(slot);
    }
    let Streaming { listeners, by_place, owed, stalled, ranks, others, .. } = streaming;
    assert!(listeners.is_empty() && by_place.is_empty() && owed.is_empty() && stalled.is_empty());
    assert!(ranks.is_empty() && others.is_empty());
}
