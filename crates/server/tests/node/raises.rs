//! One raise: a holder that comes to want more has it soon, for no more grants than that is worth.

use lessor_proto::message::{Band, Bands, Down, HolderKind};
use lessor_proto::{Amount, Epoch, Time};
use lessor_server::node::NodeConfig;
use proptest::prelude::*;

use super::crowd::settle;
use super::holders::{template, wants};
use super::listeners::{Hall, Heard, seconds};

#[test]
fn what_comes_back_bit_by_bit_is_gathered_for_the_one_who_waits() {
    const CLIENTS: u32 = 100;
    let mut hall = Hall::new(template(f64::from(CLIENTS)), NodeConfig::new("root", Epoch(1)));
    let name = |number: u32| format!("c{number}");
    for number in 0..CLIENTS {
        hall.hello(&name(number), HolderKind::Client, None);
        hall.report(&name(number), Some(wants(if number == 0 { 0.1 } else { 2.0 }).bands), None, false);
        hall.listeners.get_mut(&name(number)).expect("it said hello").prompt = true;
        hall.hear();
    }
    settle(&mut hall);
    hall.listeners.values_mut().for_each(|one| one.prompt = false);
    hall.report("c0", Some(wants(2.0).bands), None, false);
    hall.until(hall.now + seconds(0.02));
    let told = |hall: &mut Hall| {
        let heard = hall.until(hall.now + seconds(0.001));
        let to_it =
            |heard: &(Time, Heard)| matches!(&heard.1, Heard::Down(name, Down::Grants(_)) if name == "c0");
        heard.iter().filter(|heard| to_it(heard)).count()
    };
    let mut grants = 0;
    for number in 1..CLIENTS {
        // One acknowledgement each millisecond.
        hall.report(&name(number), Some(wants(2.0).bands), None, false);
        grants += told(&mut hall);
    }
    let has = hall.listeners["c0"].lease.as_ref().expect("a lease").0.capacity.as_f64();
    assert!(has >= 0.99, "it has {has} of its share");
    assert!((1..=12).contains(&grants), "{grants} grants for one share");

    // Where one of those who were recalled says nothing, what the others have given is not kept back for long.
    hall.report("c0", Some(wants(0.1).bands), Some(Amount::from_f64(0.1)), false);
    hall.listeners.values_mut().for_each(|one| one.prompt = true);
    settle(&mut hall);
    hall.listeners.values_mut().for_each(|one| one.prompt = false);
    hall.report("c0", Some(wants(2.0).bands), None, false);
    hall.until(hall.now + seconds(0.02));
    for number in 1..CLIENTS / 10 {
        hall.report(&name(number), Some(wants(2.0).bands), None, false);
    }
    hall.until(hall.now + seconds(0.6));
    let has = hall.listeners["c0"].lease.as_ref().expect("a lease").0.capacity.as_f64();
    assert!(has >= 0.17, "it has {has} of what has come back");
}

/// A holder of a random book.
#[derive(Clone, Debug)]
struct Entry {
    wants: f64,
    weight: u32,
    priority: i64,
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let weight = prop_oneof![3 => Just(1_u32), 1 => 2..5_u32];
    let priority = prop_oneof![2 => Just(0_i64), 1 => 1..3_i64];
    let entry = (1.0..40.0_f64, weight, priority).prop_map(|(wants, weight, priority)| Entry {
        wants,
        weight,
        priority,
    });
    prop::collection::vec(entry, 20..400)
}

/// The bands of a holder; those with weights are nodes, whose clients are alike.
fn bands_of(entry: &Entry) -> Bands {
    Bands::from_elem(Band { priority: entry.priority, subclients: entry.weight, wants: entry.wants }, 1)
}

/// The amount that one subclient of each priority may have of `capacity`: greater priorities have all they want first, and of one priority
/// nobody could have more of what is left without taking it from one who has less for its weight.
fn levels(capacity: f64, book: &[Entry]) -> [f64; 3] {
    let (mut levels, mut left) = ([0.0; 3], capacity);
    for (priority, found) in levels.iter_mut().enumerate().rev() {
        let band: Vec<(f64, u32)> = book
            .iter()
            .filter(|entry| entry.priority == priority as i64)
            .map(|entry| (entry.wants, entry.weight))
            .collect();
        let level = fair_level(left, &band);
        let taken: f64 = band.iter().map(|&(wants, weight)| wants.min(level * f64::from(weight))).sum();
        (*found, left) = (level, (left - taken).max(0.0));
    }
    levels
}

/// The amount that is due to each of `book`.
fn due_of(capacity: f64, book: &[Entry]) -> Vec<f64> {
    let levels = levels(capacity, book);
    book.iter()
        .map(|entry| entry.wants.min(levels[entry.priority as usize] * f64::from(entry.weight)))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// A holder that comes to want more has it soon, for no more recalls than that is worth, and nobody falls far below its
    /// share for it.
    #[test]
    fn a_gain_costs_no_more_recalls_than_it_is_worth(
        mut book in entries(), part in 0.2..0.9_f64, who in any::<prop::sample::Index>(), less in 0.1..0.9_f64, more in 0.2..3.0_f64,
    ) {
        let capacity = part * book.iter().map(|entry| entry.wants).sum::<f64>();
        let who = {
            // Of those that have something.
            let due = due_of(capacity, &book);
            let served: Vec<usize> = (0..book.len()).filter(|&index| due[index] > 0.5).collect();
            let who = served[who.index(served.len())];
            book[who].wants = due[who] * less;
            who
        };
        let mut hall = Hall::new(template(capacity), NodeConfig::new("root", Epoch(1)));
        let name = |index: usize| format!("h{index}");
        for (index, entry) in book.iter().enumerate() {
            let kind = if entry.weight == 1 { HolderKind::Client } else { HolderKind::Node };
            hall.hello(&name(index), kind, None);
            hall.report(&name(index), Some(bands_of(entry)), None, false);
            hall.listeners.get_mut(&name(index)).expect("it said hello").prompt = true;
            hall.hear();
        }
        settle(&mut hall);
        let tolerance = (book.len() as f64 * 1e-5).min(0.01);
        let has = |hall: &Hall, index: usize| hall.listeners[&name(index)].lease.as_ref().map_or(0.0, |(lease, _)| lease.capacity.as_f64());
        let before = has(&hall, who);
        let book_before = book.clone();
        book[who].wants *= 1.0 + more / less;
        let due = due_of(capacity, &book);
        hall.report(&name(who), Some(bands_of(&book[who])), None, false);
        let (mut recalls, mut raises) = (0, 0);
        for (_, heard) in hall.until(hall.now + seconds(0.2)) {
            match heard {
                Heard::Down(to, Down::Grants(grants)) if to == name(who) => raises += grants.len(),
                Heard::Down(_, Down::Grants(grants)) => recalls += grants.len(),
                _ => {}
            }
        }
        let gain = (due[who] - before).max(0.0);
        // Of those from whom something may be recalled for it: its own priority, and those below it that had something.
        let had = levels(capacity, &book_before);
        let giving = (0..=book[who].priority as usize).filter(|&priority| had[priority] > 0.0);
        let level = giving.map(|priority| levels(capacity, &book)[priority]).fold(f64::INFINITY, f64::min);
        let most = (2.0 * gain / (tolerance * level) + 1.0).min(book.len() as f64);
        prop_assert!(recalls as f64 <= most, "{recalls} recalls for {gain}, {most} allowed of {}", book.len());
        prop_assert!(raises <= 4, "{raises} grants to it");
        let all: f64 = (0..book.len()).map(|index| has(&hall, index)).sum();
        prop_assert!(all <= capacity + 1e-3, "{all} of {capacity}");
        prop_assert!(has(&hall, who) >= due[who] * (1.0 - tolerance) - 1e-3, "it has {} of {}", has(&hall, who), due[who]);
        for (index, due) in due.into_iter().enumerate() {
            let least = due * (1.0 - 2.0 * tolerance) - 1e-3;
            prop_assert!(has(&hall, index) >= least, "h{index} has {} of {due}", has(&hall, index));
        }
    }
}

/// The amount that one subclient gets where all of them want more.
fn fair_level(capacity: f64, book: &[(f64, u32)]) -> f64 {
    let mut order: Vec<(f64, f64)> =
        book.iter().map(|&(wants, weight)| (wants / f64::from(weight), f64::from(weight))).collect();
    order.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut weight: f64 = order.iter().map(|one| one.1).sum();
    let mut left = capacity;
    for (wants, share) in order {
        if wants * weight >= left {
            return left / weight;
        }
        left -= wants * share;
        weight -= share;
    }
    f64::INFINITY
}
