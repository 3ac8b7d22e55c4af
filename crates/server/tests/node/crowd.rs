//! Ten thousand listeners of one resource: who hears of what.

use std::collections::BTreeMap;

use lessor_algorithms::SharePolicy;
use lessor_proto::message::{Band, Down, HolderKind};
use lessor_proto::{Amount, Epoch, Time};
use lessor_server::node::NodeConfig;
use lessor_server::repository::{Repository, Template};

use super::holders::{template, wants};
use super::listeners::{Hall, Heard, seconds};

const CROWD: u32 = 10_000;
const CAPACITY: f64 = 100_000.0;

/// All of them connected, each wanting `amount`, and settled.
fn crowd(amount: f64) -> Hall {
    let mut hall = Hall::new(template(CAPACITY), NodeConfig::new("root", Epoch(1)));
    for number in 0..CROWD {
        let name = format!("c{number}");
        hall.hello(&name, HolderKind::Client, None);
        hall.report(&name, Some(wants(amount).bands), None, false);
        hall.listeners.get_mut(&name).expect("it said hello").prompt = true;
        hall.hear();
    }
    settle(&mut hall);
    hall
}

/// Two rounds of heartbeats, after which nothing is left to say.
pub(super) fn settle(hall: &mut Hall) {
    for _ in 0..2 {
        let names: Vec<String> = hall.listeners.keys().cloned().collect();
        for name in names {
            hall.report(&name, None, None, true);
            hall.hear();
        }
        hall.until(hall.now + seconds(1.0));
    }
}

/// The number of grants that come out within a second after one client wants something else.
fn grants_after(hall: &mut Hall, name: &str, amount: f64, held: Option<Amount>) -> usize {
    hall.report(name, Some(wants(amount).bands), held, false);
    let heard = hall.until(hall.now + seconds(1.0));
    let grants = heard.iter().map(|(_, heard)| match heard {
        Heard::Down(_, Down::Grants(grants)) => grants.len(),
        _ => 0,
    });
    grants.sum()
}

#[test]
fn a_change_that_moves_no_share_is_told_to_nobody_else() {
    let mut hall = crowd(5.0);
    assert_eq!(hall.believed(), 50_000_000_000, "half of it is wanted, and had");
    assert_eq!(grants_after(&mut hall, "c1", 6.0, None), 1, "one that wants more is told that it has it");
    let less = Some(Amount::from_units(4));
    assert_eq!(grants_after(&mut hall, "c2", 4.0, less), 0, "one that gives back has told, and not asked");

    let mut hall = crowd(20.0);
    assert!(hall.believed() >= 99_900_000_000, "all of it is wanted, and had: {}", hall.believed());
    let told = grants_after(&mut hall, "c1", 30.0, None);
    assert_eq!(told, 0, "it has its share already");
    // What one gives back is a ten-thousandth of what the others have: not worth a message to each.
    let told = grants_after(&mut hall, "c2", 1.0, Some(Amount::from_units(1)));
    assert!(told <= 100, "{told} messages for nine units of {CAPACITY}");
}

#[test]
fn a_change_that_moves_every_share_is_told_to_all_at_once() {
    let mut hall = crowd(20.0);
    let before = hall.now;
    // One that stands for half the others comes: everybody has to give up a third.
    hall.hello("region", HolderKind::Node, None);
    let bands = [Band { priority: 0, subclients: CROWD / 2, wants: CAPACITY }];
    hall.report("region", Some(bands.into_iter().collect()), None, false);
    let heard = hall.until(before + seconds(1.0));
    let told = heard.iter().filter(|(_, heard)| matches!(heard, Heard::Down(_, Down::Grants(_)))).count();
    assert!(told >= CROWD as usize * 99 / 100, "{told} were told");
    assert!(told <= CROWD as usize + 200, "{told} were told, some of them again and again");
    let books = hall.node.books(hall.now, &super::holders::resource()).expect("a resource");
    let region = books.children.iter().find(|child| child.holder == "region").expect("it is there");
    assert!(region.charge >= Amount::from_f64(CAPACITY / 3.0 * 0.99), "the region has {}", region.charge);
    assert!(hall.now > Time::ZERO);
}

/// Grants that came out until `name` had `amount`, the most of them at one instant, and how long it took.
fn feed(hall: &mut Hall, name: &str, amount: f64) -> (usize, usize, f64) {
    let (begin, mut grants) = (hall.now, BTreeMap::<Time, usize>::new());
    let has = |hall: &Hall| {
        hall.listeners[name].lease.as_ref().is_some_and(|(lease, _)| lease.capacity.as_f64() >= amount)
    };
    while !has(hall) && hall.now < begin + seconds(1.0) {
        for (at, heard) in hall.until(hall.now + seconds(0.001)) {
            if let Heard::Down(_, Down::Grants(told)) = heard {
                *grants.entry(at).or_default() += told.len();
            }
        }
    }
    assert!(has(hall), "after a second it has {:?}, not {amount}", hall.listeners[name].lease);
    let took = hall.now.since(begin).as_secs_f64();
    println!("{name}: {} grants in {took:.3} s", grants.values().sum::<usize>());
    (grants.values().sum(), grants.values().copied().max().unwrap_or(0), took)
}

#[test]
fn one_that_comes_to_want_its_share_has_it_from_those_who_have_most() {
    let mut hall = crowd(20.0);
    hall.report("c1", Some(wants(4.0).bands), Some(Amount::from_units(4)), false);
    settle(&mut hall);
    // Another one takes what is free.
    let free = CAPACITY - hall.believed() as f64 / 1e6;
    hall.hello("last", HolderKind::Client, None);
    hall.report("last", Some(wants(free).bands), None, false);
    settle(&mut hall);
    assert!(hall.believed() >= 99_999_000_000, "all of it is out: {}", hall.believed());

    hall.report("c1", Some(wants(12.0).bands), None, false);
    let (grants, most, took) = feed(&mut hall, "c1", 9.8);
    assert!(grants <= 200, "{grants} grants for six units of {CAPACITY}");
    assert!(most <= 64, "{most} grants in one turn");
    assert!(took <= 0.1, "{took} seconds");
    // Whoever was asked for some of it has nearly what is due to it.
    let least = hall.listeners.iter().filter(|(name, _)| *name != "last");
    let least = least.map(|(_, one)| one.lease.as_ref().expect("a lease").0.capacity.as_f64());
    assert!(least.fold(f64::INFINITY, f64::min) >= 9.8, "somebody was cut off");
    assert!(hall.believed() <= 100_000_000_000, "{}", hall.believed());
}

#[test]
fn a_whale_does_not_hold_up_a_small_one_that_comes_after_it() {
    let mut hall = crowd(20.0);
    hall.report("c1", Some(wants(0.0).bands), Some(Amount::ZERO), false);
    settle(&mut hall);
    hall.hello("whale", HolderKind::Client, None);
    hall.listeners.get_mut("whale").expect("it said hello").prompt = true;
    let band = Band { priority: 5, subclients: 1, wants: CAPACITY / 2.0 };
    hall.report("whale", Some([band].into_iter().collect()), None, false);
    hall.until(hall.now + seconds(0.005));
    hall.report("c1", Some(wants(4.0).bands), None, false);
    let (_, most, took) = feed(&mut hall, "c1", 3.9);
    assert!(most <= 64, "{most} grants in one turn");
    assert!(took <= 0.1, "{took} seconds for the small one");
    let (_, most, took) = feed(&mut hall, "whale", CAPACITY / 2.0 * 0.98);
    assert!(most <= 64, "{most} grants in one turn");
    assert!(took <= 1.0, "{took} seconds for the whale");
    assert!(hall.believed() <= 100_000_000_000, "{}", hall.believed());
}

#[test]
fn those_who_are_looked_at_one_by_one_are_all_told_and_not_all_at_one_instant() {
    const CLIENTS: u32 = 3_000;
    let of = |capacity| Template { policy: SharePolicy::ProportionalShare, ..template(capacity) };
    let mut hall = Hall::new(of(10.0 * f64::from(CLIENTS)), NodeConfig::new("root", Epoch(1)));
    for number in 0..CLIENTS {
        let name = format!("c{number}");
        hall.hello(&name, HolderKind::Client, None);
        hall.report(&name, Some(wants(20.0).bands), None, false);
        hall.listeners.get_mut(&name).expect("it said hello").prompt = true;
        hall.hear();
    }
    settle(&mut hall);
    assert!(hall.believed() >= 29_900_000_000, "all of it is out: {}", hall.believed());

    let half = Repository::new(vec![of(5.0 * f64::from(CLIENTS))]).expect("one template");
    hall.node.reload(hall.now, half);
    let mut grants = BTreeMap::<Time, usize>::new();
    for (at, heard) in hall.until(hall.now + seconds(1.0)) {
        if let Heard::Down(_, Down::Grants(told)) = heard {
            *grants.entry(at).or_default() += told.len();
        }
    }
    let most = grants.values().copied().max().unwrap_or(0);
    assert!(most <= 64, "{most} grants in one turn");
    assert!(hall.believed() <= 15_000_000_000, "everybody has heard of the cut: {}", hall.believed());
    let least = hall.listeners.values().map(|one| one.lease.as_ref().expect("a lease").0.capacity.as_f64());
    assert!(least.fold(f64::INFINITY, f64::min) >= 4.9, "somebody was cut off");
}

/// Newcomers, and the listeners who are there before them: as many.
const HERD: u32 = 2_000;

#[test]
fn a_herd_is_served_together() {
    let capacity = 10.0 * f64::from(HERD);
    let mut hall = Hall::new(template(capacity), NodeConfig::new("root", Epoch(1)));
    let join = |hall: &mut Hall, name: &str| {
        hall.hello(name, HolderKind::Client, None);
        hall.report(name, Some(wants(20.0).bands), None, false);
        hall.listeners.get_mut(name).expect("it said hello").prompt = true;
    };
    for number in 0..HERD {
        join(&mut hall, &format!("old{number}"));
        hall.hear();
    }
    settle(&mut hall);
    let before = hall.now;
    let (mut grants, mut least) = (0, f64::INFINITY);
    let mut served: BTreeMap<String, Time> = BTreeMap::new();
    for step in 0..4 * HERD {
        if step < HERD {
            join(&mut hall, &format!("new{step}"));
        }
        for (at, heard) in hall.until(hall.now + seconds(0.0002)) {
            let Heard::Down(name, Down::Grants(told)) = heard else { continue };
            grants += told.len();
            let amount = told.iter().map(|grant| grant.capacity.as_f64()).fold(f64::INFINITY, f64::min);
            if name.starts_with("old") {
                least = least.min(amount);
            } else if amount >= 4.9 {
                served.entry(name).or_insert(at);
            }
        }
        assert!(hall.believed() <= u128::from(Amount::from_f64(capacity).as_micros()), "{}", hall.believed());
    }
    println!("{grants} grants to {HERD} newcomers and as many others");
    assert!(grants <= 5 * HERD as usize, "{grants} grants");
    // Nobody who was there falls below what is due to it when all have come.
    assert!(least >= 4.9, "somebody was cut off to {least}");
    assert_eq!(served.len(), HERD as usize, "all have their share within 1.2 s");
    let first = served["new0"].since(before);
    assert!(
        first <= std::time::Duration::from_millis(20),
        "the first of them waits {first:?} for the others"
    );
    for (name, at) in &served {
        let number: u32 = name.trim_start_matches("new").parse().expect("a number");
        let waited = at.since(before + seconds(0.0002) * number).as_secs_f64();
        assert!(waited <= 0.75, "{name} has waited for {waited} s");
    }
}
