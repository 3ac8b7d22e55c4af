//! Laws of the node under holders that come, go, crash, grow, shrink, forget and lose answers.

use proptest::prelude::*;

use super::holders::{Memory, Town, template, wants};

const CAPACITY: f64 = 100.0;

#[derive(Clone, Debug)]
enum Step {
    /// A client asks, and perhaps never hears the answer.
    Ask {
        client: u8,
        wants: f64,
        lost: bool,
    },
    /// A client forgets everything and starts again; its old life is gone.
    Restart {
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
    let client = 0u8..9;
    prop_oneof![
        12 => (client.clone(), 0.0..80.0f64, prop::bool::weighted(0.2))
            .prop_map(|(client, wants, lost)| Step::Ask { client, wants, lost }),
        1 => client.clone().prop_map(|client| Step::Restart { client }),
        1 => client.clone().prop_map(|client| Step::Release { client }),
        1 => client.prop_map(|client| Step::Crash { client }),
        3 => (1u64..20).prop_map(|seconds| Step::Wait { seconds }),
    ]
}

fn memory(client: u8) -> Memory {
    [Memory::Echoes, Memory::Forgets, Memory::Incarnated][usize::from(client) % 3]
}

/// Every process has an id of its own, or they share three.
#[derive(Clone, Copy, Debug)]
enum Ids {
    Own,
    Shared,
}

fn name(ids: Ids, client: u8) -> String {
    match ids {
        Ids::Own => format!("c{client}"),
        // Of the same memory under each id.
        Ids::Shared => format!("web-{}/c{client}", client % 3),
    }
}

fn apply(town: &mut Town, ids: Ids, step: &Step) {
    match *step {
        Step::Ask { client, wants: amount, lost } => {
            let name = name(ids, client);
            town.holder(&name).memory = memory(client);
            let words = super::holders::Words { lost, ..wants(amount) };
            // A client that starts again and again may be refused for a while.
            let _ = town.ask(&name, &words);
        }
        Step::Restart { client } => {
            town.restart(&name(ids, client));
        }
        // A release without an incarnation does not say whose it is: one who has nothing any more would free what another
        // process under the same id still has.
        Step::Release { client } => match (ids, memory(client)) {
            (Ids::Own, _) | (Ids::Shared, Memory::Incarnated) => town.release(&name(ids, client)),
            (Ids::Shared, _) => {}
        },
        Step::Crash { client } => {
            town.holders.remove(&format!("c{client}"));
        }
        Step::Wait { seconds } => town.now += std::time::Duration::from_secs(seconds),
    }
}

/// Max-min by sorting: too simple to be wrong.
fn fair_shares(capacity: f64, wants: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    order.sort_by(|&a, &b| wants[a].total_cmp(&wants[b]));
    let (mut left, mut shares) = (capacity, vec![0.0; wants.len()]);
    for (served, &index) in order.iter().enumerate() {
        let share = wants[index].min(left / (wants.len() - served) as f64);
        shares[index] = share;
        left -= share;
    }
    shares
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn belief_never_passes_the_capacity(
        steps in prop::collection::vec(step(), 1..400),
        ids in prop_oneof![Just(Ids::Own), Just(Ids::Shared)],
    ) {
        let mut town = Town::new(template(CAPACITY), 1);
        for step in &steps {
            apply(&mut town, ids, step);
            prop_assert!(town.believed() <= (CAPACITY * 1e6) as u128, "{} believed", town.believed());
            if let Some(status) = town.status() {
                prop_assert!(status.leased <= CAPACITY && status.overcommitment == 0.0);
            }
        }
    }

    // Whatever is held and whoever asks first in each round: after a change of all wants, the first round tells the
    // server, the second tells everybody, in the third all have acknowledged, and in the fourth all have their share.
    #[test]
    fn four_rounds_bring_exact_shares(
        steps in prop::collection::vec(step(), 0..100),
        amounts in prop::collection::vec((0.0..80.0f64, 0.0..80.0f64), 1..12),
        orders in prop::collection::vec(any::<u64>(), 8),
    ) {
        let mut town = Town::new(template(CAPACITY), 1);
        for step in &steps {
            apply(&mut town, Ids::Own, step);
        }
        town.holders.clear();
        town.now += std::time::Duration::from_secs(70);
        let before: Vec<f64> = amounts.iter().map(|&(before, _)| before).collect();
        let after: Vec<f64> = amounts.iter().map(|&(_, after)| after).collect();
        for (wanted, orders) in [(before, &orders[..4]), (after, &orders[4..])] {
            for &order in orders {
                round(&mut town, &wanted, order);
                prop_assert!(town.believed() <= (CAPACITY * 1e6) as u128);
            }
            for (client, share) in fair_shares(CAPACITY, &wanted).into_iter().enumerate() {
                let has = town.holders[&format!("c{client}")].believes(town.now).as_f64();
                prop_assert!((has - share).abs() <= 2e-6, "c{} has {} of {}", client, has, share);
            }
        }
    }
}

/// Everybody asks once, in an order that follows from a number.
fn round(town: &mut Town, amounts: &[f64], order: u64) {
    let mut clients: Vec<usize> = (0..amounts.len()).collect();
    clients.sort_by_key(|&client| (order ^ (client as u64 + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for client in clients {
        let name = format!("c{client}");
        town.holder(&name).memory = memory(u8::try_from(client).expect("a dozen"));
        town.ask(&name, &wants(amounts[client])).expect("a template covers it");
        assert!(town.believed() <= (CAPACITY * 1e6) as u128);
    }
    town.now += std::time::Duration::from_secs(5);
}
