//! Units on request: a thousand clients share 100 a second, and all of them together keep to the bound.

mod units {
    pub(crate) mod world;
}

use lessor_proto::Epoch;
use std::collections::BTreeSet;
use std::time::Duration;

use lessor_server::node::NodeConfig;
use rand::{RngExt, SeedableRng};
use units::world::{BURST, CAPACITY, Pass, World, worst};

const CLIENTS: usize = 1_000;
/// The units that the capacity brings in the burst.
const SAVED: f64 = 0.05 * CAPACITY as f64;

/// A thousand clients that have had their leases for a while.
fn world() -> World {
    let mut world = World::new(CLIENTS, NodeConfig::new("root", Epoch(1)));
    world.pass(Duration::from_secs(20));
    let leased = world.leased();
    assert!((99.0..=100.000_001).contains(&leased), "{leased} of {CAPACITY} are leased");
    world
}

fn check_bound(passes: &[Pass]) {
    let (instant, beyond) = worst(passes, CAPACITY);
    assert!(instant as f64 <= SAVED + 1.0, "{instant} in one instant");
    assert!(beyond <= SAVED + 1.0, "{beyond} beyond {CAPACITY} a second");
}

fn served(passes: &[Pass]) -> usize {
    passes.iter().map(|pass| pass.client).collect::<BTreeSet<_>>().len()
}

#[test]
fn a_thousand_clients_at_one_instant_are_served_at_the_rate() {
    let mut world = world();
    (0..CLIENTS).for_each(|client| world.acquire(client));
    world.pass(Duration::from_millis(20));
    assert_eq!(world.passes.len(), 5, "what the burst brings, after a round trip");
    world.pass(Duration::from_millis(10_100));
    assert_eq!((world.passes.len(), served(&world.passes)), (CLIENTS, CLIENTS));
    check_bound(&world.passes);
}

#[test]
fn at_sixty_per_cent_everybody_is_served_after_about_a_round_trip() {
    let mut world = world();
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
    let mut asked = 0;
    for _ in 0..20_000 {
        // A thousandth of a second in which 0.06 come on the average.
        if rng.random_bool(0.06) {
            world.acquire(rng.random_range(0..CLIENTS));
            asked += 1;
        }
        world.pass(Duration::from_millis(1));
    }
    world.pass(Duration::from_secs(5));
    assert_eq!(world.passes.len(), asked);
    check_bound(&world.passes);
    let waits: Vec<f64> = world.passes.iter().map(|pass| pass.at.since(pass.asked).as_secs_f64()).collect();
    let (mean, most) = (waits.iter().sum::<f64>() / asked as f64, waits.iter().copied().fold(0.0, f64::max));
    println!("{asked} asked, mean wait {:.1} ms, longest {:.1} ms", mean * 1e3, most * 1e3);
    assert!(mean < 0.04 && most < 1.0, "{mean} s on the average, {most} s at the most");
}

#[test]
fn who_does_not_wait_has_a_unit_at_the_second_attempt() {
    let mut world = world();
    let mut tries = 0;
    for client in 0..200 {
        let Err(again) = world.try_acquire(client) else { panic!("nothing is saved up") };
        world.pass(again);
        tries += 1;
        assert!(world.try_acquire(client).is_ok(), "client {client} comes again after {again:?}");
    }
    assert_eq!(world.passes.len(), tries);
    check_bound(&world.passes);
    // All at once, and again and again: no more than the bound, and nearly as many as can be.
    let before = world.passes.len();
    let begun = world.now();
    for _ in 0..200 {
        for client in 0..CLIENTS {
            let _ = world.try_acquire(client);
        }
        world.pass(Duration::from_millis(10));
    }
    check_bound(&world.passes[before..]);
    let seconds = world.now().since(begun).as_secs_f64();
    assert!(
        (world.passes.len() - before) as f64 > seconds * CAPACITY as f64 * 0.5,
        "{}",
        world.passes.len() - before
    );
}

/// Two clients that never wait come again when they are told, a little late, for ten seconds: units a second.
fn polled(capacity: u64, delay: Duration, clients: usize) -> f64 {
    let wants = vec![capacity as f64; clients];
    let mut world = World::at(capacity, delay, &wants, NodeConfig::new("root", Epoch(1)));
    world.pass(Duration::from_secs(20));
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(2);
    let (begin, seconds) = (world.now(), 10);
    let mut due = vec![begin; clients];
    while world.now() < begin + Duration::from_secs(seconds) {
        for (client, due) in due.iter_mut().enumerate() {
            if world.now() >= *due {
                let again = world.try_acquire(client).err().unwrap_or_default();
                *due = world.now() + again + Duration::from_micros(rng.random_range(0..1_500));
            }
        }
        world.pass(Duration::from_micros(250));
    }
    let (instant, beyond) = worst(&world.passes, capacity);
    let saved = (0.05 * capacity as f64).max(1.0);
    assert!(instant as f64 <= saved, "{instant} in one instant");
    // Less than a unit more while some are out, and they come when messages do.
    assert!(beyond < saved + 1.0, "{beyond} beyond {capacity} a second");
    world.passes.len() as f64 / seconds as f64
}

#[test]
fn who_comes_again_when_told_has_what_its_lease_brings() {
    for (capacity, clients) in [(38, 2), (10, 2), (10, 1), (19, 1), (100, 10), (100, 50)] {
        for millis in [0.1, 1.0, 10.0, 25.0] {
            let rate = polled(capacity, Duration::from_secs_f64(millis / 1e3), clients);
            println!("{clients} clients, {capacity}/s, {millis} ms: {rate} a second");
            assert!(rate > 0.95 * capacity as f64, "{rate}");
        }
    }
    // One at a time cannot have more than one in a round trip.
    let rate = polled(38, Duration::from_millis(50), 2);
    assert!(rate > 0.9 * 2.0 / 0.1, "{rate}");
}

/// The part that is granted of the requests of `clients` clients that come at random, together `load` times a
/// second, and drop what is denied.
fn granted_at_random(clients: usize, load: u32) -> f64 {
    let mut world = World::at(
        CAPACITY,
        Duration::from_millis(1),
        &vec![100.0; clients],
        NodeConfig::new("root", Epoch(1)),
    );
    world.pass(Duration::from_secs(20));
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(3);
    let mut tried = 0;
    for _ in 0..20_000 {
        if rng.random_ratio(load, 1_000) {
            tried += 1;
            let _ = world.try_acquire(rng.random_range(0..clients));
        }
        world.pass(Duration::from_millis(1));
    }
    let (instant, beyond) = worst(&world.passes, CAPACITY);
    assert!(instant as f64 <= SAVED && beyond < SAVED + 1.0, "{instant} in one instant, {beyond} beyond");
    world.passes.len() as f64 / f64::from(tried)
}

#[test]
fn who_drops_what_is_denied_has_only_what_can_be_kept_for_the_next_time() {
    let parts = [(1, 60), (10, 60), (10, 100), (100, 60)].map(|(clients, load)| {
        let part = granted_at_random(clients, load);
        println!("{clients} clients, {load} of {CAPACITY} a second: {:.1} % granted", part * 100.0);
        part
    });
    assert!(parts.is_sorted_by(|more, less| more > less), "{parts:?}");
    assert!(parts[0] > 0.9 && parts[3] < 0.1, "{parts:?}");
}

#[test]
fn what_a_large_lease_saves_up_is_not_there_for_the_small_ones() {
    let wants: Vec<f64> = std::iter::once(60.0).chain((0..99).map(|_| 0.4)).collect();
    let mut world = World::of(&wants, NodeConfig::new("root", Epoch(1)));
    world.pass(Duration::from_secs(20));
    assert!(world.leased() > 99.5, "{}", world.leased());
    (1..100).for_each(|client| world.acquire(client));
    let mut large = 0;
    for _ in 0..5_000 {
        while world.try_acquire(0).is_ok() {
            large += 1;
        }
        world.pass(Duration::from_millis(1));
    }
    assert!((295..=303).contains(&large), "{large}: its own rate");
    assert_eq!(served(&world.passes), 100);
    check_bound(&world.passes);
}

#[test]
fn who_is_cut_off_has_a_unit_when_it_is_due_and_all_are_due_one_after_the_other() {
    let mut world = world();
    world.cut_off();
    (0..CLIENTS).for_each(|client| world.acquire(client));
    check_bound(&world.passes);
    world.pass(Duration::from_millis(10_200));
    assert_eq!(served(&world.passes), CLIENTS);
    check_bound(&world.passes);
    // And all at one instant.
    world.passes.clear();
    world.pass(Duration::from_secs(5));
    let granted = (0..CLIENTS).filter(|&client| world.try_acquire(client).is_ok()).count();
    assert!(granted >= 3, "{granted}: those whose unit was due in the last {BURST:?}");
    check_bound(&world.passes);
}

#[cfg(feature = "mutations")]
#[test]
fn a_unit_more_in_the_pool_is_a_unit_more_in_one_instant() {
    use lessor_server::mutation::{Rule, Rules};
    let config =
        NodeConfig { rules: Rules::without(Rule::UnitsWithinBurst), ..NodeConfig::new("root", Epoch(1)) };
    let mut world = World::new(CLIENTS, config);
    world.pass(Duration::from_secs(20));
    (0..CLIENTS).for_each(|client| world.acquire(client));
    world.pass(Duration::from_millis(20));
    assert_eq!(world.passes.len(), 6, "five are what the burst brings");
}
