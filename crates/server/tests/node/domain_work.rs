//! The work for a domain that many clients use, counted in what they are told.

use std::time::Duration;

use lessor_proto::message::DomainNews;

use super::square::{PACE, Square};

const CLIENTS: u32 = 300;
/// Reports of each client in the second that is looked at.
const REPORTS: u32 = 10;
/// Times within one pace that are told apart, at the most, and one for the entering of the tier.
const TIMES: usize = 4;

/// A hot domain that so many clients use, all of which know all of it.
fn square() -> (Square, Vec<&'static str>) {
    let names: Vec<&'static str> = (0..CLIENTS).map(|number| &*format!("c{number:03}").leak()).collect();
    let mut square = Square::of(100_000, &names);
    square.hit_in_all(names[0], "tenant", 60_000);
    names[1..].iter().for_each(|name| square.hit_in_all(name, "tenant", 1));
    square.later(PACE * 4);
    square.forget_what_was_told();
    (square, names)
}

/// The news that are told in a second in which each client reports a hit ten times.
fn second(square: &mut Square, names: &[&'static str]) -> Vec<(&'static str, DomainNews)> {
    for _ in 0..REPORTS {
        for part in names.chunks(names.len() / 10) {
            part.iter().for_each(|name| square.hit(name, "tenant", 1));
            square.later(Duration::from_millis(10));
        }
    }
    square.later(PACE * 4);
    std::mem::take(&mut square.told)
}

#[test]
fn a_report_costs_each_that_uses_the_domain_no_more_than_one_sum_a_pace() {
    let (mut square, names) = square();
    let told = second(&mut square, &names);
    let hits: u64 = told
        .iter()
        .flat_map(|(_, news)| &news.domains)
        .flat_map(|hits| &hits.entries)
        .map(|entry| u64::from(entry.hits))
        .sum();
    let all = u64::from(CLIENTS * REPORTS);
    assert_eq!(
        hits,
        all * u64::from(CLIENTS - 1),
        "each is told of every hit of the others once, and of none of its own"
    );
    assert!(
        told.iter().all(|(_, news)| news.domains.iter().all(|hits| !hits.all)),
        "what is new is told, not everything"
    );
    let paces = 1_200 / usize::try_from(PACE.as_millis()).unwrap() + 1;
    assert!(told.len() <= names.len() * paces, "{} messages", told.len());
    let entries: usize = told.iter().flat_map(|(_, news)| &news.domains).map(|hits| hits.entries.len()).sum();
    assert!(entries <= told.len() * TIMES, "{entries} entries in {} messages", told.len());
}
