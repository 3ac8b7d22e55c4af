//! Recalls: what an operator takes back is charged until it is given back or has ended, and does not come straight back.

#![expect(clippy::float_cmp, reason = "what is given comes out of the books, which are exact")]

use std::time::Duration;

use lessor_proto::Amount;
use lessor_proto::message::HolderKind;
use lessor_server::node::{NotRecalled, RecalledLease};
use lessor_sim::net::Endpoint;

use super::holders::{Memory, Town, client, resource, template, wants};
use super::village::Village;

const SECOND: Duration = Duration::from_secs(1);
const CAPACITY: f64 = 100.0;

/// The amount that a client of the village may use.
fn has(village: &Village, index: usize) -> f64 {
    let allowance = &village.clients[index].allowance;
    let live = village.now < allowance.until;
    allowance.capacity.filter(|_| live).map_or(0.0, Amount::as_f64)
}

fn recall(village: &mut Village, holder: &str, time: Duration) -> Result<Vec<RecalledLease>, NotRecalled> {
    let now = village.now;
    let node = village.net.net.node_mut(0).expect("the root leads");
    node.recall(now, &resource(), &client(holder), time)
}

/// A root, so many leaves, and two clients that have half of all there is each.
fn village(leaves: usize) -> Village {
    let mut village = Village::new(template(CAPACITY), leaves);
    (0..2).for_each(|_| {
        village.come(CAPACITY);
    });
    village.pass(200 * SECOND);
    assert_eq!([has(&village, 0), has(&village, 1)], [CAPACITY / 2.0; 2]);
    village.peak = 0;
    village
}

/// Checks that what was believed at any time since, and what is charged now, is no more than there is.
fn check(village: &Village) {
    let most = Amount::from_f64(CAPACITY).as_micros();
    assert!(village.peak <= most && village.believed() <= most, "{} of {most}", village.peak);
    assert!(village.out(&resource()) <= u128::from(most));
}

#[test]
fn a_holder_that_listens_gives_up_all_and_comes_back_when_the_time_is_over() {
    let mut village = village(0);
    let leases = recall(&mut village, "c0", 60 * SECOND).expect("it holds some");
    let RecalledLease { kind, charged, is_told, .. } = &leases[0];
    assert_eq!((leases.len(), *kind, charged.as_f64(), *is_told), (1, HolderKind::Client, 50.0, true));
    village.pass(2 * SECOND);
    assert_eq!([has(&village, 0), has(&village, 1)], [0.0, CAPACITY], "all of it is another's");
    // Whatever it says, it gets nothing, and nobody else has less for it.
    village.want(0, 90.0);
    village.pass(50 * SECOND);
    assert_eq!([has(&village, 0), has(&village, 1)], [0.0, CAPACITY]);
    check(&village);
    village.pass(30 * SECOND);
    assert_eq!([has(&village, 0), has(&village, 1)], [CAPACITY / 2.0; 2], "it has its share again");
    check(&village);
}

#[test]
fn a_holder_that_is_not_heard_of_stays_charged_until_its_lease_has_ended() {
    let mut village = village(0);
    village.cut_off(Endpoint::Holder(0), true);
    recall(&mut village, "c0", 600 * SECOND).expect("it holds some");
    for _ in 0..20 {
        village.pass(SECOND);
        assert_eq!([has(&village, 0), has(&village, 1)], [CAPACITY / 2.0; 2], "it may use all of it");
        check(&village);
    }
    village.pass(60 * SECOND);
    assert_eq!([has(&village, 0), has(&village, 1)], [0.0, CAPACITY]);
    // It is there again, and gets nothing.
    village.cut_off(Endpoint::Holder(0), false);
    village.pass(60 * SECOND);
    assert_eq!([has(&village, 0), has(&village, 1)], [0.0, CAPACITY]);
    check(&village);
}

#[test]
fn a_node_that_is_recalled_from_recalls_from_those_below_it() {
    let mut village = village(2);
    let leases = recall(&mut village, "place-1", 600 * SECOND).expect("it holds some");
    assert_eq!(leases[0].kind, HolderKind::Node);
    village.pass(20 * SECOND);
    assert_eq!(has(&village, 0), 0.0);
    assert!(has(&village, 1) > 0.95 * CAPACITY, "{}", has(&village, 1));
    check(&village);
}

#[test]
fn a_recall_is_lifted_before_its_time_and_nobody_is_recalled_from_who_is_not_there() {
    let mut village = village(0);
    let nobody = recall(&mut village, "c7", SECOND).expect_err("there is no c7");
    assert_eq!(nobody.to_string(), "nobody called \"c7\" holds or wants \"db\"");
    recall(&mut village, "c0", 600 * SECOND).expect("it holds some");
    village.pass(2 * SECOND);
    assert_eq!(has(&village, 0), 0.0);
    let now = village.now;
    let node = village.net.net.node_mut(0).expect("the root leads");
    assert_eq!(node.recalls(now).count(), 1);
    assert!(node.lift_recall(now, &resource(), &client("c0")));
    assert!(!node.lift_recall(now, &resource(), &client("c0")), "once");
    assert_eq!(node.recalls(now).count(), 0);
    village.pass(20 * SECOND);
    assert_eq!([has(&village, 0), has(&village, 1)], [CAPACITY / 2.0; 2]);
    check(&village);
}

/// A holder without a stream hears of it with the next answer, and is believed with the one after that.
#[test]
fn a_holder_that_polls_is_told_when_it_asks_again() {
    for memory in [Memory::Echoes, Memory::Forgets, Memory::Incarnated] {
        let mut town = Town::new(template(CAPACITY), 1);
        for name in ["a", "b"] {
            town.holder(name).memory = memory;
        }
        let ask = |town: &mut Town, name: &str| {
            let answer = town.ask(name, &wants(CAPACITY)).expect("it is answered");
            answer.grants[0].capacity.as_f64()
        };
        assert_eq!(ask(&mut town, "a"), CAPACITY);
        let leases = town.node.recall(town.now, &resource(), &client("a"), 60 * SECOND).expect("it has all");
        assert_eq!((leases[0].charged.as_f64(), leases[0].is_told), (CAPACITY, false), "{memory:?}");
        assert_eq!(ask(&mut town, "b"), 0.0, "{memory:?}: it is charged");
        town.now += SECOND;
        assert_eq!([ask(&mut town, "a"), ask(&mut town, "a")], [0.0; 2], "{memory:?}");
        assert_eq!(ask(&mut town, "b"), CAPACITY, "{memory:?}: it was given back");
        // Another process of that id gets none either, until the time is over.
        town.restart("a");
        assert_eq!(ask(&mut town, "a"), 0.0, "{memory:?}");
        town.now += 59 * SECOND;
        ask(&mut town, "a");
        assert_eq!(ask(&mut town, "b"), CAPACITY / 2.0, "{memory:?}: it counts again");
        assert!(town.believed() <= u128::from(Amount::from_f64(CAPACITY).as_micros()), "{memory:?}");
    }
}
