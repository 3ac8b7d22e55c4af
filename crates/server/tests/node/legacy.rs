//! Doorman's clients, which draw no incarnation: stories in text, and laws under clients that never let a lease end while
//! they are cut off.

use std::time::Duration;

use datadriven::walk;
use lessor_proto::{Amount, Time};
use lessor_server::repository::{Field, Fraction, Kind, Legacy, Template};
use proptest::prelude::*;

use super::gauges::run;
use super::holders::{Memory, Town, Words, template, wants};

#[test]
fn legacy_stories() {
    walk("tests/node/legacy", |file| {
        let mut town = Town::new(template(0.0), 1);
        file.run(|case| {
            let said = run(&mut town, case);
            cling(&mut town);
            said
        });
    });
}

/// Doorman's clients go on with their leases for ever, and show them when they reach a server again.
fn cling(town: &mut Town) {
    for holder in town.holders.values_mut().filter(|holder| holder.memory != Memory::Incarnated) {
        if let Some((_, end)) = &mut holder.lease {
            *end = Time::MAX;
        }
    }
}

/// It is not believed on another connection, where anybody may show an amount; but what it shows is all that the hold counts
/// from then on.
#[test]
fn what_a_sticky_client_had_before_what_it_shows_is_free_after_the_hold_whoever_shows_it() {
    let terms = Template { legacy: Legacy::Sticky { hold: HOLD }, ..template(CAPACITY) };
    let mut town = Town::new(terms, 1);
    let start = town.now;
    town.holder("doorman").memory = Memory::Forgets;
    let asks = |town: &mut Town, name: &str, amount: f64| {
        _ = town.ask(name, &wants(amount));
        cling(town);
        let now = town.now;
        town.holder(name).believes(now)
    };
    assert_eq!(asks(&mut town, "doorman", 80.0), Amount::from_units(80));
    town.holder("doorman").incarnation += 100;
    let mut ours = Amount::ZERO;
    while town.now < start + HOLD * 2 {
        town.now += Duration::from_secs(5);
        assert_eq!(asks(&mut town, "doorman", 30.0), Amount::from_units(30));
        ours = asks(&mut town, "ours", 100.0);
        let is_early = town.now < start + HOLD;
        assert!(!is_early || ours == Amount::from_units(20), "{ours} at {:?}", town.now);
    }
    assert_eq!(ours, Amount::from_units(70));
}

/// Nor is it believed that it gives units of a gauge back. But it says that it uses none, so nothing prolongs those for it.
#[test]
fn units_that_a_client_says_it_does_not_use_end_with_their_lease_whoever_says_so() {
    let terms = Template { kind: Kind::Gauge, ..template(CAPACITY) };
    let (lease, mut town) = (terms.lease_length, Town::new(terms, 1));
    let start = town.now;
    town.holder("doorman").memory = Memory::Forgets;
    let asks = |town: &mut Town, name: &str, amount: f64| {
        _ = town.ask(name, &wants(amount));
        let now = town.now;
        town.holder(name).believes(now)
    };
    assert_eq!(asks(&mut town, "doorman", 80.0), Amount::from_units(80));
    town.holder("doorman").incarnation += 100;
    let mut ours = Amount::ZERO;
    while town.now < start + lease * 3 {
        town.now += Duration::from_secs(5);
        assert_eq!(asks(&mut town, "doorman", 0.0), Amount::ZERO);
        ours = asks(&mut town, "ours", 100.0);
        let is_early = town.now < start + lease;
        assert!(!is_early || ours == Amount::from_units(20), "{ours} at {:?}", town.now);
    }
    assert_eq!(ours, Amount::from_units(100));
}

const CAPACITY: f64 = 100.0;
const HOLD: Duration = Duration::from_secs(600);
/// A third of the clients are ours.
const CLIENTS: u8 = 9;

#[derive(Clone, Debug)]
enum Step {
    /// A client asks, unless it is cut off; perhaps it never hears the answer.
    Ask {
        client: u8,
        wants: f64,
        lost: bool,
    },
    /// A client reaches nobody from here on, or does again.
    Cut {
        client: u8,
    },
    /// A client says good-bye.
    Release {
        client: u8,
    },
    /// A client ends without a word.
    Crash {
        client: u8,
    },
    Wait {
        seconds: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let client = 0..CLIENTS;
    prop_oneof![
        12 => (client.clone(), 0.0..80.0f64, prop::bool::weighted(0.2))
            .prop_map(|(client, wants, lost)| Step::Ask { client, wants, lost }),
        2 => client.clone().prop_map(|client| Step::Cut { client }),
        1 => client.clone().prop_map(|client| Step::Release { client }),
        1 => client.prop_map(|client| Step::Crash { client }),
        3 => (1u64..50).prop_map(|seconds| Step::Wait { seconds }),
    ]
}

/// Clients, and since when each of them is cut off.
struct Street {
    town: Town,
    cut: [bool; CLIENTS as usize],
    heard: [Time; CLIENTS as usize],
}

fn memory(client: u8) -> Memory {
    [Memory::Echoes, Memory::Forgets, Memory::Incarnated][usize::from(client) % 3]
}

// === impl Street ===

impl Street {
    fn new(terms: Template) -> Street {
        let town = Town::new(terms, 1);
        let now = town.now;
        Street { town, cut: [false; CLIENTS as usize], heard: [now; CLIENTS as usize] }
    }

    fn apply(&mut self, step: &Step) {
        let name = |client: u8| format!("c{client}");
        match *step {
            Step::Ask { client, .. } | Step::Release { client } if self.cut[usize::from(client)] => {}
            Step::Ask { client, wants: amount, lost } => {
                self.town.holder(&name(client)).memory = memory(client);
                let answer = self.town.ask(&name(client), &Words { lost, ..wants(amount) });
                // Who comes back after the hold is somebody new, and is told so unless the answer is lost.
                let heard = &mut self.heard[usize::from(client)];
                if answer.is_ok() && (!lost || self.town.now < *heard + HOLD) {
                    *heard = self.town.now;
                }
            }
            Step::Cut { client } => self.cut[usize::from(client)] ^= true,
            Step::Release { client } => self.town.release(&name(client)),
            Step::Crash { client } => _ = self.town.holders.remove(&name(client)),
            Step::Wait { seconds } => self.town.now += Duration::from_secs(seconds),
        }
        cling(&mut self.town);
    }

    /// The amount that clients go on with: ours until their leases end, Doorman's as long as they live, if they
    /// were heard of within the hold.
    fn used(&self) -> u128 {
        let used = |client: u8| -> Amount {
            let is_live = self.town.now < self.heard[usize::from(client)] + HOLD;
            let holder = self.town.holders.get(&format!("c{client}"));
            let holder = holder.filter(|_| is_live || memory(client) == Memory::Incarnated);
            holder.map_or(Amount::ZERO, |holder| holder.believes(self.town.now))
        };
        (0..CLIENTS).map(|client| u128::from(used(client).as_micros())).sum()
    }

    /// The amount that is charged to Doorman's clients.
    fn lent_to_doorman(&self) -> u128 {
        let books = self.town.node.books(self.town.now, &super::holders::resource());
        let children = books.into_iter().flat_map(|books| books.children);
        let theirs = children.filter(|child| child.incarnation.is_none());
        theirs.map(|child| u128::from(child.charge.as_micros())).sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn sticky_leases_cover_those_who_never_let_go(steps in prop::collection::vec(step(), 1..300)) {
        let terms = Template { legacy: Legacy::Sticky { hold: HOLD }, ..template(CAPACITY) };
        let mut street = Street::new(terms);
        for step in &steps {
            street.apply(step);
            prop_assert!(street.used() <= (CAPACITY * 1e6) as u128, "{} used", street.used());
        }
    }

    #[test]
    fn together_they_have_no_more_than_their_fraction(
        steps in prop::collection::vec(step(), 1..300),
        fraction in 0.0..1.0f64,
        sticky in any::<bool>(),
    ) {
        let legacy = if sticky { Legacy::Sticky { hold: HOLD } } else { Legacy::Expire };
        let legacy_max_fraction = Fraction::check(Field::LegacyMaxFraction, fraction).unwrap();
        let most = legacy_max_fraction.of(Amount::from_f64(CAPACITY));
        let mut street = Street::new(Template { legacy, legacy_max_fraction, ..template(CAPACITY) });
        for step in &steps {
            street.apply(step);
            prop_assert!(street.lent_to_doorman() <= most.as_micros().into());
        }
    }
}
