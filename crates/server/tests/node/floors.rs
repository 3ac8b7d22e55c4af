//! Floors: a resource and what is reserved of it for those who reach no server, with clients that hold both.

use std::time::Duration;

use lessor_client::Rung;
use lessor_proto::Amount;
use lessor_server::repository::{Field, Fraction, SafeCapacity, Template};
use lessor_sim::net::Endpoint;
use proptest::prelude::*;

use super::holders::{resource, template};
use super::village::Village;

const LEASE: Duration = Duration::from_secs(10);
const SAFE_LEASE: Duration = Duration::from_secs(60);

fn terms(capacity: f64, fraction: f64) -> Template {
    Template {
        lease_length: LEASE,
        refresh_interval: Duration::from_secs(1),
        safe_fraction: Fraction::check(Field::SafeFraction, fraction).expect("a fraction"),
        safe_lease: Some(SAFE_LEASE),
        // Advice would be used for ever.
        safe_capacity: match fraction {
            0.0 => SafeCapacity::Fixed(Amount::ZERO),
            _ => SafeCapacity::Dynamic,
        },
        ..template(capacity)
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A village with that many clients, all of which want more than there is.
fn village(leaves: usize, clients: usize) -> Village {
    let mut village = Village::new(terms(100.0, 0.2), leaves);
    (0..clients).for_each(|_| _ = village.come(1_000.0));
    village.pass(seconds(5));
    village
}

#[test]
fn a_client_may_use_its_lease_and_its_floor() {
    for leaves in [0, 2] {
        let village = village(leaves, 4);
        // A floor is a power of two of a millionth: 4.194 of the 5 that each could have.
        for (client, session) in village.clients.iter().zip(&village.net.sessions) {
            let [lease, floor] = session.leases(village.now, &resource());
            assert_eq!(floor.capacity.expect("a limit").as_micros(), 4_194_304, "{leaves} leaves");
            assert!((lease.capacity.expect("a limit").as_f64() - 20.0).abs() < 0.01);
            assert_eq!(client.allowance, lease.and(floor));
        }
        assert!(village.out(&resource()) <= 80_000_000 && village.out(&resource().floor()) <= 20_000_000);
    }
}

#[test]
fn cut_off_all_at_once_each_goes_on_with_its_floor_and_not_for_ever() {
    for leaves in [0, 2] {
        let mut village = village(leaves, 4);
        (0..4).for_each(|client| village.cut_off(Endpoint::Holder(client), true));
        village.peak = 0;
        village.pass(LEASE + seconds(5));
        for client in &village.clients {
            assert_eq!(client.rung, Rung::Safe);
            assert_eq!(client.allowance.capacity.expect("a limit").as_micros(), 4_194_304);
        }
        // The capacity that they had is given to others, and what was reserved is not.
        let newcomer = village.come(1_000.0);
        village.pass(seconds(5));
        // Below a leaf there is nothing reserved for it as long as those who are cut off have more than their share.
        let floor = if leaves == 0 { 2_097_152 } else { 0 };
        let allowance = village.clients[newcomer].allowance;
        assert_eq!(allowance.capacity.expect("a limit").as_micros(), 80_000_000 + floor);
        assert!(village.peak <= 100_000_000, "{} at its peak", village.peak);
        village.pass(SAFE_LEASE);
        assert!(village.clients[..4].iter().all(|client| client.rung == Rung::Pessimistic));
        (0..4).for_each(|client| village.cut_off(Endpoint::Holder(client), false));
        village.pass(seconds(60));
        assert!(village.clients.iter().all(|client| client.rung == Rung::Leased), "all come back");
        assert!(village.believed() > 90_000_000 && village.peak <= 100_000_000, "{}", village.believed());
    }
}

#[test]
fn a_successor_counts_floors_for_as_long_as_they_last_and_leases_no_longer() {
    let mut village = village(0, 4);
    (0..4).for_each(|client| village.cut_off(Endpoint::Holder(client), true));
    village.elect(0);
    let newcomer = village.come(1_000.0);
    village.pass(LEASE + seconds(3));
    let mine = village.net.sessions[newcomer].leases(village.now, &resource());
    let [lease, floor] = mine.map(|lease| lease.capacity.expect("a limit").as_micros());
    assert_eq!(lease, 80_000_000, "leases have ended");
    assert!(floor <= 4_000_000, "floors have not: {floor}");
    assert!(village.peak <= 100_000_000, "{} at its peak", village.peak);
    village.pass(SAFE_LEASE);
    let floor = village.net.sessions[newcomer].leases(village.now, &resource())[1];
    assert_eq!(floor.capacity.expect("a limit").as_micros(), 16_777_216);
}

#[test]
fn a_part_that_is_reserved_later_comes_out_of_what_is_leased() {
    let mut village = Village::new(terms(100.0, 0.0), 0);
    (0..4).for_each(|_| _ = village.come(1_000.0));
    village.pass(seconds(5));
    village.cut_off(Endpoint::Holder(0), true);
    village.configure(terms(100.0, 0.4));
    assert!(village.believed() <= 100_000_000);
    village.pass(seconds(5));
    // One has not heard of it, and still has a quarter.
    let floors = village.out(&resource().floor());
    assert!((20_000_000..=40_000_000).contains(&floors), "{floors}");
    assert!(village.peak <= 100_000_000, "{} at its peak", village.peak);
    // And back.
    village.configure(terms(100.0, 0.0));
    village.pass(seconds(20));
    assert_eq!(village.out(&resource().floor()), 0);
    assert!(village.out(&resource()) >= 99_999_990);
    assert!(village.peak <= 100_000_000, "{} at its peak", village.peak);
}

#[test]
fn those_who_come_one_by_one_cost_few_messages() {
    let mut village = Village::new(terms(1_000.0, 0.5), 0);
    for _ in 0..1_000 {
        village.come(0.25);
        village.pass(Duration::from_millis(2));
    }
    // Each is told of its lease once, and of its floor each time that has halved since it came: 3,918 in all. If floors
    // went with the number of clients, it would be 109,458.
    assert!(village.grants <= 4_500, "{} grants", village.grants);
    assert!(village.out(&resource().floor()) > 240_000_000);
}

#[test]
fn who_comes_and_goes_where_a_step_begins_moves_nobody_else() {
    // Of five hundred millionths of two to the 22nd there are 119.
    let mut village = Village::new(terms(1_000.0, 0.5), 0);
    (0..119).for_each(|_| _ = village.come(0.25));
    village.pass(seconds(3));
    let floor = |village: &Village| village.net.sessions[0].leases(village.now, &resource())[1].capacity;
    assert_eq!(floor(&village).expect("a limit").as_micros(), 1 << 22);
    let last = village.come(0.25);
    village.pass(seconds(3));
    assert_eq!(floor(&village).expect("a limit").as_micros(), 1 << 21);
    village.go(last);
    village.grants = 0;
    for _ in 0..10 {
        let last = village.come(0.25);
        village.pass(seconds(3));
        village.go(last);
        village.pass(seconds(3));
    }
    assert!(village.grants <= 30, "{} grants", village.grants);
    assert_eq!(floor(&village).expect("a limit").as_micros(), 1 << 21);
    // There is enough for a step more when a quarter more is there than it takes.
    (0..25).for_each(|client| village.go(client + 1));
    village.pass(seconds(3));
    assert_eq!(floor(&village).expect("a limit").as_micros(), 1 << 22);
}

#[derive(Clone, Debug)]
enum Step {
    Come { wants: f64 },
    Want { client: usize, wants: f64 },
    Cut { client: usize },
    Heal { client: usize },
    CutNode { place: usize },
    HealNode { place: usize },
    Elect { place: usize },
    Configure { capacity: f64, fraction: f64 },
    Wait { millis: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let wants = || prop_oneof![1 => Just(0.0), 4 => 5.0..200.0f64];
    let configurations = (prop::sample::select(vec![60.0, 100.0]), prop::sample::select(vec![0.0, 0.2, 0.5]));
    prop_oneof![
        3 => wants().prop_map(|wants| Step::Come { wants }),
        3 => (0usize..8, wants()).prop_map(|(client, wants)| Step::Want { client, wants }),
        3 => (0usize..8).prop_map(|client| Step::Cut { client }),
        3 => (0usize..8).prop_map(|client| Step::Heal { client }),
        1 => (1usize..3).prop_map(|place| Step::CutNode { place }),
        1 => (1usize..3).prop_map(|place| Step::HealNode { place }),
        1 => (0usize..3).prop_map(|place| Step::Elect { place }),
        2 => configurations.prop_map(|(capacity, fraction)| Step::Configure { capacity, fraction }),
        3 => (0u64..1_000).prop_map(|millis| Step::Wait { millis }),
        4 => (0u64..25_000).prop_map(|millis| Step::Wait { millis }),
    ]
}

/// The longest time that a cut may take: the lease and the authority of the root, after the last succession.
const CUT: Duration = Duration::from_secs(12);

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    // Whoever is cut off for however long, whoever leads, whatever is reserved.
    #[test]
    fn leases_and_floors_together_never_pass_the_capacity(
        leaves in 0usize..3,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut village = Village::new(terms(100.0, 0.2), leaves);
        (0..3).for_each(|_| _ = village.come(100.0));
        let (mut capacity, mut past) = (100.0, Vec::new());
        for step in steps {
            village.peak = 0;
            match step {
                Step::Come { wants } if village.clients.len() < 8 => _ = village.come(wants),
                Step::Want { client, wants } if client < village.clients.len() => village.want(client, wants),
                Step::Cut { client } => village.cut_off(Endpoint::Holder(client), true),
                Step::Heal { client } => village.cut_off(Endpoint::Holder(client), false),
                Step::CutNode { place } => village.cut_off(Endpoint::Node(place), true),
                Step::HealNode { place } => village.cut_off(Endpoint::Node(place), false),
                Step::Elect { place } if place <= leaves => {
                    if place == 0 {
                        past.iter_mut().for_each(|(_, until)| *until = village.now + CUT);
                    }
                    village.elect(place);
                }
                Step::Configure { capacity: to, fraction } => {
                    past.push((capacity, village.now + CUT));
                    capacity = to;
                    village.configure(terms(capacity, fraction));
                }
                Step::Wait { millis } => village.pass(Duration::from_millis(millis)),
                _ => {}
            }
            let most = past.iter().fold(capacity, |most, &(before, _)| f64::max(most, before));
            prop_assert!(village.peak as f64 <= most * 1e6, "{} of {most}", village.peak);
            let now = village.now;
            past.retain(|&(_, until)| now < until);
        }
    }
}
