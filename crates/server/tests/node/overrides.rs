//! Overrides: what is frozen does not grow, who is drained gives all back, a cap is a cut, and each ends when its time is over.

#![expect(clippy::float_cmp, reason = "what is given comes out of the books, which are exact")]

use std::time::Duration;

use lessor_proto::message::{BoundBy, Refusal};
use lessor_proto::{Amount, Time};
use lessor_server::node::StatusQuery;
use lessor_server::overrides::{Override, OverrideAct, Overrides};
use lessor_server::repository::{Field, Fraction, Kind, Repository, Template};
use lessor_sim::net::Endpoint;

use super::holders::{Memory, Town, client, resource, template, wants};
use super::village::Village;

const SECOND: Duration = Duration::from_secs(1);
const CAPACITY: f64 = 100.0;

fn has(village: &Village, index: usize) -> f64 {
    let allowance = &village.clients[index].allowance;
    let live = village.now < allowance.until;
    allowance.capacity.filter(|_| live).map_or(0.0, Amount::as_f64)
}

fn all(village: &Village) -> Vec<f64> {
    (0..village.clients.len()).map(|index| has(village, index)).collect()
}

fn overrides(acts: &[OverrideAct], until: Time) -> Overrides {
    let mut all = Overrides::default();
    for (number, act) in acts.iter().enumerate() {
        let it = Override {
            id: format!("o{number}"),
            act: act.clone(),
            seconds: 60,
            ..Override::for_reason("why")
        };
        all.put(it, until).expect("it holds together");
    }
    all
}

/// Every node has these in force from here on, for so long.
fn order(village: &mut Village, acts: &[OverrideAct], time: Duration) {
    let (now, until) = (village.now, village.now + time);
    for index in 0..village.places() {
        if let Some(node) = village.net.net.node_mut(index) {
            node.set_overrides(now, &overrides(acts, until));
        }
    }
    village.pass(Duration::ZERO);
}

fn freeze() -> OverrideAct {
    OverrideAct::Freeze { resource: "db".to_owned() }
}

fn cap(capacity: f64) -> OverrideAct {
    OverrideAct::Cap { resource: "d*".to_owned(), capacity }
}

fn drain(client: &str, deny: bool) -> OverrideAct {
    OverrideAct::DrainClient { client: client.to_owned(), resource: Some("db".to_owned()), deny }
}

/// Checks that what was believed at any time since, and what is charged now, is no more than there is.
fn check(village: &Village) {
    let most = Amount::from_f64(CAPACITY).as_micros();
    assert!(village.peak <= most && village.believed() <= most, "{} of {most}", village.peak);
    assert!(village.out(&resource()) <= u128::from(most));
}

/// A root, so many leaves, and clients that want so much.
fn village(leaves: usize, wants: &[f64]) -> Village {
    let mut village = Village::new(template(CAPACITY), leaves);
    wants.iter().for_each(|&wants| _ = village.come(wants));
    village.pass(200 * SECOND);
    village.peak = 0;
    village
}

/// The bound of the first life of a client, as operators are told.
fn bound(village: &mut Village, holder: &str) -> BoundBy {
    let now = village.now;
    let node = village.net.net.node_mut(0).expect("the root leads");
    node.explain(now, &resource(), Some(&client(holder))).expect("it is known").lives[0].bound_by
}

#[test]
fn of_what_is_frozen_nobody_gets_more_and_what_is_given_back_stays_free() {
    let mut village = village(0, &[20.0, 90.0]);
    assert_eq!(all(&village), [20.0, 80.0]);
    order(&mut village, &[freeze()], 600 * SECOND);
    village.want(1, 30.0);
    village.pass(10 * SECOND);
    assert_eq!(all(&village), [20.0, 30.0], "what is not wanted is given back");
    village.want(0, 70.0);
    let newcomer = village.come(50.0);
    village.pass(100 * SECOND);
    assert_eq!(all(&village), [20.0, 30.0, 0.0], "nobody grows, and a newcomer gets nothing");
    assert_eq!(
        (bound(&mut village, "c0"), bound(&mut village, "c2")),
        (BoundBy::Override, BoundBy::Override)
    );
    assert_eq!(newcomer, 2);
    check(&village);
    order(&mut village, &[], SECOND);
    village.pass(20 * SECOND);
    assert_eq!(all(&village), [35.0, 30.0, 35.0], "each has its share again");
    check(&village);
}

#[test]
fn what_is_frozen_below_another_node_does_not_grow_either_and_goes_on_through_a_fail_over() {
    let mut village = village(2, &[20.0, 60.0]);
    let acts = [freeze()];
    order(&mut village, &acts, 6_000 * SECOND);
    let before: f64 = all(&village).iter().sum();
    for index in [1, 0] {
        village.elect(index);
        order(&mut village, &acts, 6_000 * SECOND);
        village.pass(100 * SECOND);
        village.want(0, 90.0);
        village.pass(100 * SECOND);
        let after: f64 = all(&village).iter().sum();
        assert!(after <= before + 1e-6 && has(&village, 1) == 60.0, "{:?}", all(&village));
        check(&village);
    }
    order(&mut village, &[], SECOND);
    village.pass(100 * SECOND);
    assert!((all(&village).iter().sum::<f64>() - CAPACITY).abs() < 0.1, "{:?}", all(&village));
    check(&village);
}

#[test]
fn a_cap_on_what_is_frozen_cuts_it_and_no_more_than_that() {
    let mut village = village(0, &[30.0, 90.0]);
    assert_eq!(all(&village), [30.0, 70.0]);
    order(&mut village, &[freeze(), cap(80.0)], 600 * SECOND);
    village.pass(60 * SECOND);
    let sum: f64 = all(&village).iter().sum();
    assert!(has(&village, 0) == 30.0 && (sum - 80.0).abs() < 1e-6, "{:?}", all(&village));
    check(&village);
}

#[test]
fn a_cap_is_a_cut_and_ends_when_its_time_is_over() {
    let mut village = village(0, &[90.0, 90.0]);
    order(&mut village, &[cap(40.0), cap(60.0)], 100 * SECOND);
    village.pass(10 * SECOND);
    assert_eq!(all(&village), [30.0, 30.0], "the newest counts");
    let now = village.now;
    let status = village.net.net.node(0).expect("it leads").override_status(now);
    assert_eq!((status.len(), status[1].kind, status[1].ends_in_seconds), (2, "cap", 90.0));
    check(&village);
    village.pass(89 * SECOND);
    assert_eq!(all(&village), [30.0, 30.0]);
    let now = village.now + 2 * SECOND;
    village.net.net.node_mut(0).expect("it leads").advance(now);
    village.pass(20 * SECOND);
    assert_eq!(all(&village), [50.0, 50.0]);
    check(&village);
}

#[test]
fn who_is_drained_gives_all_back_and_comes_back_when_that_is_over() {
    let mut village = village(0, &[90.0, 90.0, 5.0]);
    order(&mut village, &[drain("c[01]", false), freeze(), drain("c1", false)], 600 * SECOND);
    village.pass(5 * SECOND);
    assert_eq!(all(&village), [0.0, 0.0, 5.0], "a drain wins over a freeze");
    village.want(0, 70.0);
    village.pass(50 * SECOND);
    assert_eq!(all(&village), [0.0, 0.0, 5.0]);
    assert_eq!(bound(&mut village, "c0"), BoundBy::Override);
    order(&mut village, &[drain("c1", false)], 600 * SECOND);
    village.pass(20 * SECOND);
    assert_eq!(all(&village), [70.0, 0.0, 5.0], "one is over");
    order(&mut village, &[], SECOND);
    village.pass(20 * SECOND);
    assert_eq!(all(&village), [47.5, 47.5, 5.0]);
    check(&village);
}

#[test]
fn who_is_drained_and_not_heard_of_stays_charged_until_its_lease_has_ended() {
    let mut village = village(0, &[90.0, 90.0]);
    village.cut_off(Endpoint::Holder(0), true);
    order(&mut village, &[drain("c0", true)], 6_000 * SECOND);
    for _ in 0..20 {
        village.pass(SECOND);
        assert_eq!(all(&village), [50.0, 50.0], "it may use all of it");
        check(&village);
    }
    village.pass(60 * SECOND);
    assert_eq!(all(&village), [0.0, 90.0]);
    village.cut_off(Endpoint::Holder(0), false);
    village.pass(60 * SECOND);
    assert_eq!(all(&village), [0.0, 90.0], "it is refused");
    check(&village);
}

#[test]
fn a_node_that_is_drained_recalls_from_those_below_it() {
    let mut village = village(2, &[90.0, 90.0]);
    order(&mut village, &[OverrideAct::DrainNode { node: "place-1".to_owned() }], 6_000 * SECOND);
    village.pass(20 * SECOND);
    assert!(has(&village, 0) == 0.0 && has(&village, 1) > 89.0, "{:?}", all(&village));
    check(&village);
    order(&mut village, &[], SECOND);
    village.pass(60 * SECOND);
    assert!(has(&village, 0) > 49.0, "{:?}", all(&village));
    check(&village);
}

/// Those who poll are told with their next answer; who has given all back is refused, if that is wanted.
#[test]
fn who_polls_and_is_drained_is_told_when_it_asks_again() {
    for memory in [Memory::Echoes, Memory::Forgets, Memory::Incarnated] {
        for deny in [false, true] {
            let mut town = Town::new(template(CAPACITY), 1);
            for name in ["a", "b"] {
                town.holder(name).memory = memory;
            }
            let has = |town: &mut Town, name: &str| {
                let answer = town.ask(name, &wants(CAPACITY));
                answer.map(|answer| (answer.grants[0].capacity.as_f64(), answer.grants[0].bound_by))
            };
            assert_eq!(has(&mut town, "a").unwrap().0, CAPACITY);
            town.node.set_overrides(town.now, &overrides(&[drain("a", deny)], town.now + 60 * SECOND));
            assert_eq!(has(&mut town, "b").unwrap().0, 0.0, "{memory:?}: it is charged");
            town.now += SECOND;
            assert_eq!(has(&mut town, "a").unwrap(), (0.0, Some(BoundBy::Override)), "{memory:?}");
            let again = has(&mut town, "a");
            assert!(again.as_ref().map_or(true, |again| again.0 == 0.0), "{memory:?}");
            assert_eq!(has(&mut town, "b").unwrap().0, CAPACITY, "{memory:?}: it was given back");
            match (deny, has(&mut town, "a")) {
                (false, Ok((amount, _))) => assert_eq!(amount, 0.0),
                (true, Err(Refusal::Denied { reason, message, .. })) => {
                    assert!(reason == "drained" && message.contains("why (override o0)"), "{message}");
                }
                (deny, other) => panic!("{memory:?}, {deny}: {other:?}"),
            }
            town.now += 59 * SECOND;
            town.node.advance(town.now);
            has(&mut town, "a").expect("that is over");
            assert_eq!(has(&mut town, "b").unwrap().0, CAPACITY / 2.0, "{memory:?}: it counts again");
            assert!(town.believed() <= u128::from(Amount::from_f64(CAPACITY).as_micros()), "{memory:?}");
        }
    }
}

#[test]
fn units_of_a_gauge_that_is_frozen_take_no_turns() {
    let gauge = Template { kind: Kind::Gauge, ..template(3.0) };
    let mut town = Town::new(gauge, 1);
    for name in ["a", "b"] {
        town.holder(name).memory = Memory::Incarnated;
    }
    let ask = |town: &mut Town, name: &str, wanted: f64| {
        town.ask(name, &wants(wanted)).expect("it is answered").grants[0].capacity.as_f64()
    };
    for _ in 0..4 {
        ask(&mut town, "a", 9.0);
        ask(&mut town, "b", 9.0);
        town.now += SECOND;
    }
    town.node.set_overrides(town.now, &overrides(&[freeze()], town.now + 6_000 * SECOND));
    let before = [ask(&mut town, "a", 9.0), ask(&mut town, "b", 9.0)];
    assert_eq!(before.iter().sum::<f64>(), 3.0);
    for _ in 0..30 {
        town.now += SECOND;
        assert_eq!([ask(&mut town, "a", 9.0), ask(&mut town, "b", 9.0)], before);
    }
    assert_eq!(ask(&mut town, "a", 0.5), 0.0, "a part of a unit is of no use");
}

/// Seized capacity is free at once, and at risk until it would have ended; the life that had it gets nothing meanwhile.
#[test]
fn what_is_seized_is_anothers_at_once_and_the_life_that_had_it_gets_nothing_until_its_lease_is_over() {
    let mut village = village(0, &[50.0, 90.0]);
    village.cut_off(Endpoint::Holder(0), true);
    let seize = |village: &mut Village, who: &str| {
        let now = village.now;
        village.net.net.node_mut(0).expect("it leads").seize(now, &resource(), &client(who))
    };
    let at_risk = |village: &Village| {
        let node = village.net.net.node(0).expect("it leads");
        node.status(village.now, &StatusQuery::default()).resources[0].at_risk
    };
    assert!(seize(&mut village, "nobody").is_err());
    let seized = seize(&mut village, "c0").expect("it holds some");
    assert_eq!((seized.len(), seized[0].amount.as_f64(), at_risk(&village)), (1, 50.0, 50.0));
    village.pass(5 * SECOND);
    assert_eq!(all(&village), [50.0, 90.0], "it does not know, and both use it: that is the risk");
    assert!(
        village.out(&resource()) <= u128::from(Amount::from_f64(CAPACITY).as_micros()),
        "the books never pass it"
    );
    // It is there again, shows what it has, and is told that it has nothing.
    village.cut_off(Endpoint::Holder(0), false);
    village.pass(10 * SECOND);
    assert_eq!(all(&village), [0.0, 90.0]);
    village.want(0, 60.0);
    village.pass(5 * SECOND);
    assert_eq!((all(&village), at_risk(&village)), (vec![0.0, 90.0], 50.0));
    let end = village.now + 60 * SECOND;
    while village.now < end {
        let now = village.now;
        village.net.net.node_mut(0).expect("it leads").advance(now);
        village.pass(SECOND);
    }
    assert_eq!((all(&village), at_risk(&village)), (vec![50.0, 50.0], 0.0), "it is over");
    assert!(village.believed() <= Amount::from_f64(CAPACITY).as_micros());
}

#[test]
fn another_life_of_an_id_whose_lease_was_seized_has_what_is_due_to_it() {
    for memory in [Memory::Echoes, Memory::Incarnated] {
        let mut town = Town::new(template(CAPACITY), 1);
        town.holder("a").memory = memory;
        let ask = |town: &mut Town| {
            town.ask("a", &wants(60.0)).expect("it is answered").grants[0].capacity.as_f64()
        };
        assert_eq!(ask(&mut town), 60.0);
        town.node.seize(town.now, &resource(), &client("a")).expect("it has some");
        assert_eq!(ask(&mut town), 0.0, "{memory:?}: what it shows is nothing");
        town.restart("a");
        assert_eq!(ask(&mut town), 60.0, "{memory:?}");
    }
}

/// Whether everything is let pass by each, as it was told last.
fn passes(village: &Village) -> Vec<bool> {
    village.clients.iter().map(|client| client.allowance.unenforced).collect()
}

#[test]
fn clients_let_everything_pass_as_soon_as_they_are_told_and_leases_go_on_as_ever() {
    let mut village = village(1, &[20.0, 60.0]);
    let before = all(&village);
    assert_eq!((before.iter().sum::<f64>(), passes(&village)), (80.0, vec![false, false]));
    order(&mut village, &[OverrideAct::Unenforce { resource: "d*".to_owned() }], 600 * SECOND);
    village.pass(SECOND / 10);
    assert_eq!((all(&village), passes(&village)), (before, vec![true, true]));
    village.want(0, 70.0);
    village.come(50.0);
    village.pass(100 * SECOND);
    let shares = all(&village);
    assert!((shares.iter().sum::<f64>() - CAPACITY).abs() < 0.01, "{shares:?}");
    assert_eq!(passes(&village), [true; 3], "a newcomer as well");
    check(&village);
    order(&mut village, &[], SECOND);
    village.pass(SECOND / 10);
    assert_eq!((all(&village), passes(&village)), (shares, vec![false; 3]));
    check(&village);
}

#[test]
fn a_part_of_all_clients_keeps_to_its_leases_and_it_is_the_same_one_everywhere() {
    let mut village = village(2, &[1.0; 40]);
    let with = |enforce| {
        let enforce = Fraction::check(Field::Enforce, enforce).expect("a fraction");
        Template { enforce, ..template(CAPACITY) }
    };
    let mut kept = Vec::new();
    for enforce in [0.0, 0.25, 0.75, 1.0] {
        let now = village.now;
        for index in 0..village.places() {
            let templates = Repository::new(vec![with(enforce)]).expect("templates");
            village.net.net.node_mut(index).expect("it leads").reload(now, templates);
        }
        village.pass(SECOND);
        let passes = passes(&village);
        for (index, &passes) in passes.iter().enumerate() {
            assert_eq!(passes, !with(enforce).enforces(&format!("c{index}")), "c{index} at {enforce}");
        }
        kept.push(passes.iter().filter(|&&passes| !passes).count());
        check(&village);
    }
    assert!(kept[0] == 0 && (4..17).contains(&kept[1]) && (23..37).contains(&kept[2]) && kept[3] == 40);
}
