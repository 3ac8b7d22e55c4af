//! Tests of histories of tiers.

use super::super::{Tiers, seconds};
use super::*;

const SECOND: u64 = 1_000_000_000;

fn contract(text: &str) -> Contract {
    Contract::from(text.parse::<Tiers>().unwrap().policy(None, None).unwrap())
}

/// Requests of one hit each at those milliseconds.
fn check(policy: &str, millis: &[u64], end_seconds: u64) -> History {
    let one = |millis: &u64| Arrival { at: millis * 1_000_000, copies: 1, min: 1 };
    run(&contract(policy), &millis.iter().map(one).collect::<Vec<_>>(), &[], end_seconds * SECOND)
}

fn phases(lane: &Lane) -> Vec<String> {
    let said = |phase: &Phase| {
        format!("{:?} {}..{}", phase.doing, seconds(phase.from), seconds(phase.until)).to_lowercase()
    };
    lane.phases.iter().map(said).collect()
}

#[test]
fn a_burst_shadows_the_lower_tier_and_cools_down() {
    let history = check("2/1s:20s, 9/5s:5s:3s", &[0, 100, 200], 12);
    let [lower, higher] = &history.lanes[..] else { panic!("two tiers") };
    assert_eq!(phases(lower), ["current 0..0.2", "shadowed 0.2..5.2", "current 5.2..12"]);
    assert_eq!(phases(higher), ["current 0.2..5.2", "cooling 5.2..8.2"]);
    assert_eq!((lower.hits, higher.hits), (2, 1));
    let entry = |at, from| vec![Entered { at, from }];
    assert_eq!((&lower.entered, &higher.entered), (&entry(0, 0), &entry(200_000_000, 1)));
    assert_eq!((lower.time(Doing::Shadowed), higher.time(Doing::Cooling)), (5 * SECOND, 3 * SECOND));
}

#[test]
fn what_is_refused_lies_in_the_tier_that_had_no_room() {
    let history = check("1/4s:4s:4s", &[0, 1000, 5000], 12);
    let [lane] = &history.lanes[..] else { panic!("one tier") };
    let refused: Vec<usize> = (0..COLUMNS).filter(|&column| lane.columns[column].refused > 0).collect();
    assert_eq!(refused, [100, 500]);
    assert_eq!(lane.columns.iter().map(|column| column.granted).sum::<u32>(), 1);
    // Full until more than four seconds are over.
    assert_eq!((lane.columns[400].fullest, lane.columns[401].fullest), (1, 0));
}

#[test]
fn a_tier_that_is_entered_where_it_ended_is_entered_twice() {
    let history = check("5/1s", &[0, 1000], 3);
    let lane = &history.lanes[0];
    let entered = [0, SECOND].map(|at| Entered { at, from: 0 });
    assert_eq!((&lane.entered[..], phases(lane)), (&entered[..], vec!["current 0..2".to_owned()]));
}

#[test]
fn each_entry_says_which_tier_it_left() {
    let left = |history: &History| -> Vec<Vec<usize>> {
        history.lanes.iter().map(|lane| lane.entered.iter().map(|entry| entry.from).collect()).collect()
    };
    // All three at once; then the second one cools down and is passed over; then both do, and the first one is entered.
    let ask = |at: u64| Arrival { at: at * SECOND, copies: 100, min: 1 };
    let contract = contract("5/1s, 10/1s:1s:9s:skippable, 20/1s:1s:4s");
    let history = run(&contract, &[ask(0), ask(5), ask(7)], &[], 10 * SECOND);
    assert_eq!(left(&history), [vec![0, 0, 0], vec![1], vec![2, 1]]);
}

#[test]
fn a_request_for_many_goes_through_tiers() {
    let ask = Arrival { at: 0, copies: 100, min: 1 };
    let history = run(&contract("5/1s, 50/5s:5s:15s"), &[ask], &[], SECOND);
    assert_eq!(history.requests[0].decision.granted, 55);
    assert_eq!(history.lanes.iter().map(|lane| lane.hits).collect::<Vec<_>>(), [5, 50]);
    assert_eq!(history.lanes[1].columns[0], Column { fullest: 50, granted: 50, refused: 45 });
}

#[test]
fn others_take_what_all_may_have() {
    let policy = "50/1s".parse::<Tiers>().unwrap().policy(None, Some(10)).unwrap();
    let many = Arrival { at: 0, copies: 20, min: 1 };
    let few = Arrival { copies: 4, ..many };
    let granted = |others: &[Arrival]| {
        let history = run(&Contract::from(policy.clone()), &[many], others, SECOND);
        (history.requests[0].decision.granted, history.requests[0].decision.bound)
    };
    assert_eq!(granted(&[few]), (6, Some(Bound::Global)));
    assert_eq!(granted(&[few, many]), (0, Some(Bound::Global)));
    assert_eq!(granted(&[Arrival { at: 1, ..many }]), (10, Some(Bound::Global)));
}
