//! Advice to clients for which nothing is reserved: the safe capacity to fall back to, and that a server does not know
//! yet what is out.

use std::time::Duration;

use lessor_proto::Amount;
use lessor_proto::message::{Band, Bands, Grant};
use lessor_server::repository::{Field, Fraction, SafeCapacity, Template};

use super::holders::{Memory, Town, Words, template};

const FIXED: SafeCapacity = SafeCapacity::Fixed(Amount::from_units(7));

fn ask(town: &mut Town, name: &str, memory: Memory) -> Grant {
    town.holder(name).memory = memory;
    let words = Words {
        bands: Bands::from_elem(Band { priority: 0, subclients: 1, wants: 40.0 }, 1),
        node: false,
        fresh: false,
        lost: false,
        claims: None,
        held: None,
        domains: None,
    };
    town.ask(name, &words).expect("it is served").grants.remove(0)
}

/// The safe capacities that a client of ours and one of Doorman's are told, and the amount that may be used of
/// them in all.
fn advice(safe_capacity: SafeCapacity, fraction: f64) -> (Option<f64>, Option<f64>, Option<f64>) {
    let safe_fraction = Fraction::check(Field::SafeFraction, fraction).expect("a fraction");
    let mut town = Town::new(Template { safe_capacity, safe_fraction, ..template(100.0) }, 1);
    let [ours, theirs] = [("ours", Memory::Incarnated), ("theirs", Memory::Echoes)]
        .map(|(name, memory)| ask(&mut town, name, memory).safe_capacity);
    (ours, theirs, town.status().expect("it is held").safe_capacity_out)
}

#[test]
fn ours_are_told_what_a_template_says_and_doormans_whatever_it_says() {
    assert_eq!(advice(SafeCapacity::Dynamic, 0.0), (None, Some(50.0), Some(50.0)));
    assert_eq!(advice(FIXED, 0.0), (Some(7.0), Some(7.0), Some(14.0)));
    assert_eq!(advice(SafeCapacity::Unlimited, 0.0), (Some(-1.0), Some(-1.0), None));
}

#[test]
fn where_something_is_reserved_ours_are_told_how_much_of_it_to_ask_for() {
    assert_eq!(advice(SafeCapacity::Dynamic, 0.2), (None, Some(10.0), Some(10.0)));
    assert_eq!(advice(FIXED, 0.2), (Some(7.0), Some(7.0), Some(7.0)));
}

#[test]
fn grants_say_as_long_as_the_server_is_learning() {
    let mut town = Town::new(Template { learning: Duration::from_secs(60), ..template(100.0) }, 1);
    let grant = ask(&mut town, "web", Memory::Incarnated);
    assert_eq!((grant.capacity, grant.learning), (Amount::ZERO, true));
    town.now += Duration::from_secs(70);
    let grant = ask(&mut town, "web", Memory::Incarnated);
    assert_eq!((grant.capacity, grant.learning), (Amount::from_units(40), false));
}
