//! Laws of marks: what is out is never more than is written, and little is written.

use std::time::Duration;

use lessor_proto::message::{Has, HolderKind, Order, Report, Up};
use lessor_proto::{Amount, Drift, Epoch, Time};
use lessor_server::node::NodeConfig;
use lessor_server::record::Record;
use proptest::prelude::*;

use super::holders::{resource, template, wants};
use super::listeners::Hall;

const CAPACITY: f64 = 100.0;
/// Writes that a resource costs from idle to full, and the first one, which is about none.
const MOST_WRITES: usize = 19 + 1;

fn hall(prompt: bool) -> Hall {
    let mut config = NodeConfig::new("root", Epoch(1));
    config.marks = true;
    let mut hall = Hall::new(template(CAPACITY), config);
    hall.record.prompt = prompt;
    hall.hear();
    hall
}

/// Says that so much is wanted, over a stream that is opened if there is none.
fn want(hall: &mut Hall, client: u8, amount: f64) {
    let name = format!("c{client}");
    if !hall.listeners.contains_key(&name) {
        hall.hello(&name, HolderKind::Client, Some(u64::from(client) + 1));
    }
    hall.listeners.get_mut(&name).expect("a listener").prompt = true;
    hall.report(&name, Some(wants(amount).bands), None, false);
}

/// The amount that is out, and the amount that a successor would find.
fn out_and_written(hall: &Hall) -> (u128, u128) {
    let out = hall.node.books(hall.now, &resource()).map_or(0, |books| books.total);
    let written = hall.record.marks.get(&resource()).map_or(0, |mark| u128::from(mark.as_micros()));
    (out, written)
}

fn pass(hall: &mut Hall, millis: u64) {
    hall.until(hall.now + Duration::from_millis(millis));
}

// A leader looks at what is left from before when holders have had time to claim, and finds nothing to be written. Just before
// that somebody comes to want more than its mark allows.
#[test]
fn a_look_at_what_is_left_does_not_put_off_what_is_due() {
    let record = Record {
        epoch: Epoch(1),
        marks: [(resource(), Amount::from_f64(40.0))].into(),
        longest_lease: Duration::from_secs(60),
        authority: Duration::from_secs(4),
        ..Record::default()
    };
    let config = NodeConfig {
        marks: true,
        record: Some(record),
        trust_claims: true,
        drift: Drift::NONE,
        ..NodeConfig::new("root", Epoch(2))
    };
    let mut hall = Hall::new(template(CAPACITY), config);
    hall.record.prompt = true;
    pass(&mut hall, 5_000);
    hall.hello("c0", HolderKind::Client, Some(1));
    let has = Has {
        capacity: Amount::from_f64(40.0),
        order: Some(Order { epoch: Epoch(1), seq: 1 }),
        token: Vec::new(),
        lasts: None,
        expiry: 0,
    };
    let wish = wants(40.0).bands;
    let report = Report {
        resource: resource(),
        bands: wish,
        has: Some(has),
        held: None,
        domains: None,
        integer: None,
        peak: None,
        unenforced: None,
    };
    hall.show("c0", report);
    // Two seconds after claims have opened.
    pass(&mut hall, 999);
    want(&mut hall, 1, 60.0);
    pass(&mut hall, 1_000);
    assert_eq!(hall.believed(), 100_000_000, "{:?}", hall.record);
}

#[derive(Clone, Debug)]
enum Step {
    Want {
        client: u8,
        wants: f64,
    },
    Leave {
        client: u8,
    },
    /// The write on its way is done, and the node knows, or it does not.
    Write {
        known: bool,
    },
    Wait {
        millis: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u8..6, 0.0..60.0f64).prop_map(|(client, wants)| Step::Want { client, wants }),
        1 => (0u8..6).prop_map(|client| Step::Leave { client }),
        5 => prop::bool::weighted(0.8).prop_map(|known| Step::Write { known }),
        4 => (0u64..8_000).prop_map(|millis| Step::Wait { millis }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    // Whatever becomes of writes, and when.
    #[test]
    fn what_is_out_is_never_more_than_is_written(steps in prop::collection::vec(step(), 1..120)) {
        let mut hall = hall(false);
        for step in steps {
            match step {
                Step::Want { client, wants } => want(&mut hall, client, wants),
                Step::Leave { client } => {
                    let name = format!("c{client}");
                    if hall.listeners.contains_key(&name) {
                        hall.say(&name, Up::Bye);
                        hall.hear();
                        hall.listeners.remove(&name);
                    }
                }
                Step::Write { known } => hall.commit(known),
                Step::Wait { millis } => pass(&mut hall, millis),
            }
            hall.hear();
            let (out, written) = out_and_written(&hall);
            prop_assert!(out <= written, "{out} out, {written} written");
            prop_assert!(hall.believed() <= written);
        }
        // When writes get through again everybody is served.
        hall.record.prompt = true;
        hall.commit(true);
        pass(&mut hall, 1_000);
        for client in 0..6 {
            want(&mut hall, client, 10.0);
        }
        // Those who left without a word are gone by then.
        pass(&mut hall, 65_000);
        for client in 0..6 {
            hall.report(&format!("c{client}"), Some(wants(10.0).bands), None, true);
        }
        pass(&mut hall, 1_000);
        prop_assert_eq!(hall.believed(), 60_000_000);
        let (out, written) = out_and_written(&hall);
        prop_assert!(out <= written);
    }

    // However slowly, and in however small steps.
    #[test]
    fn from_idle_to_full_takes_few_writes(
        steps in prop::collection::vec((0u8..8, 0.0..4.0f64), 1..200),
    ) {
        let mut hall = hall(true);
        let mut wanted = [0.0; 8];
        for (client, more) in steps {
            wanted[usize::from(client)] += more;
            want(&mut hall, client, wanted[usize::from(client)]);
            pass(&mut hall, 5);
        }
        prop_assert!(hall.record.writes <= MOST_WRITES, "{} writes", hall.record.writes);
        let wanted = wanted.iter().sum::<f64>().min(CAPACITY);
        prop_assert!(hall.believed() as f64 >= (wanted - 1e-3) * 1e6, "{} of {wanted}", hall.believed());
    }

    #[test]
    fn a_steady_resource_costs_no_writes(amounts in prop::collection::vec(0.0..60.0f64, 1..6)) {
        let mut hall = hall(true);
        let beat = |hall: &mut Hall| {
            for client in 0..amounts.len() {
                hall.report(&format!("c{client}"), None, None, true);
            }
            pass(hall, 5_000);
        };
        for (client, &amount) in amounts.iter().enumerate() {
            want(&mut hall, u8::try_from(client).expect("a few"), amount);
            pass(&mut hall, 10);
        }
        (0..4).for_each(|_| beat(&mut hall));
        let writes = hall.record.writes;
        (0..40).for_each(|_| beat(&mut hall));
        prop_assert_eq!(hall.record.writes, writes);
    }
}

#[test]
fn from_nothing_to_all_at_once_takes_one_write() {
    let mut hall = hall(true);
    let first = hall.record.writes;
    want(&mut hall, 0, CAPACITY);
    pass(&mut hall, 5);
    assert_eq!((hall.believed(), hall.record.writes - first), (100_000_000, 1));
}

#[test]
fn an_idle_resource_has_no_mark() {
    let mut hall = hall(true);
    want(&mut hall, 0, 50.0);
    pass(&mut hall, 5);
    assert!(hall.record.marks.contains_key(&resource()));
    hall.say("c0", Up::Bye);
    hall.hear();
    hall.until(Time::ZERO + Duration::from_secs(10));
    assert_eq!(hall.record.marks.get(&resource()), None::<&Amount>);
}
