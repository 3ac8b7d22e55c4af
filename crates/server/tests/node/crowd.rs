//! Ten thousand listeners of one resource: who hears of what.

use lessor_proto::message::{Down, HolderKind};
use lessor_proto::{Amount, Time};
use lessor_server::node::NodeConfig;

use super::holders::{template, wants};
use super::listeners::{Hall, Heard, seconds};

const CROWD: u32 = 10_000;
const CAPACITY: f64 = 100_000.0;

/// All of them connected, each wanting `amount`, and settled.
fn crowd(amount: f64) -> Hall {
    let mut hall = Hall::new(template(CAPACITY), NodeConfig::new("root", 1));
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
fn settle(hall: &mut Hall) {
    for _ in 0..2 {
        let names: Vec<String> = hall.listeners.keys().cloned().collect();
        for name in names {
            hall.report(&name, None, None, true);
            hall.hear();
        }
        hall.until(hall.now + seconds(1.0));
    }
}

/// How many grants come out within a second after one client wants something else.
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
    let bands = [lessor_proto::message::Band { priority: 0, subclients: CROWD / 2, wants: CAPACITY }];
    hall.report("region", Some(bands.into_iter().collect()), None, false);
    let heard = hall.until(before + seconds(1.0));
    let told = heard.iter().filter(|(_, heard)| matches!(heard, Heard::Down(_, Down::Grants(_)))).count();
    assert!(told >= CROWD as usize, "{told} were told");
    assert!(told <= CROWD as usize + 200, "{told} were told, some of them again and again");
    let books = hall.node.books(hall.now, &super::holders::resource()).expect("a resource");
    let region = books.children.iter().find(|child| child.holder == "region").expect("it is there");
    assert!(region.charge >= Amount::from_f64(CAPACITY / 3.0 * 0.99), "the region has {}", region.charge);
    assert!(hall.now > Time::ZERO);
}
