//! Laws of turns, against a model that counts them.

use std::collections::BTreeMap;

use lessor_algorithms::rotation::{Rotate, Rotation, parts};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;

/// Lags in the model are floating-point sums.
const ROUNDING: f64 = 1e-6;

// === the model ===

/// A client as one sees it from outside.
#[derive(Default, Debug)]
struct Seen {
    /// Sum of the fractions of all quanta so far.
    due: f64,
    served: u32,
    /// Quanta without a unit since the last one, or since it joined.
    waits: u32,
    longest_wait: u32,
    /// The least fraction it had since it began to wait.
    least: f64,
    /// The number of times that it got a unit that it had not had the quantum before.
    moves: u32,
    holds: bool,
}

impl Seen {
    fn pass(&mut self, fraction: f64, chosen: bool) {
        self.least = if self.waits == 0 { fraction } else { self.least.min(fraction) };
        self.due += fraction;
        self.served += u32::from(chosen);
        self.moves += u32::from(chosen && !self.holds);
        self.waits = if chosen { 0 } else { self.waits + 1 };
        self.longest_wait = self.longest_wait.max(self.waits);
        self.holds = chosen;
    }

    fn lag(&self) -> f64 {
        self.due - f64::from(self.served)
    }
}

/// Runs `quanta` turns with fixed fractions, of which none is more than the units; asserts what holds at each of them.
fn run(rotate: Rotate, fractions: &[f64], units: u64, quanta: u32) -> Vec<Seen> {
    let mut rotation = Rotation::new(rotate);
    let mut seen: Vec<Seen> = fractions.iter().map(|_| Seen::default()).collect();
    for quantum in 0..quanta {
        let chosen = rotation.turn(fractions.iter().copied().enumerate(), units);
        assert!(chosen.len() as u64 <= units);
        assert!(chosen.is_sorted_by(|a, b| a < b));
        for (id, seen) in seen.iter_mut().enumerate() {
            seen.pass(fractions[id], chosen.binary_search(&id).is_ok());
            assert!(fractions[id] > 0.0 || seen.served == 0);
            assert!(
                seen.lag().abs() < 1.0 + ROUNDING,
                "lag {} of {fractions:?}[{id}] at {quantum}",
                seen.lag()
            );
            let waits_first = seen.served == 0 && fractions[id] > 0.0;
            assert!(!waits_first || f64::from(seen.waits) < rounds(fractions[id]), "{id} of {fractions:?}");
        }
    }
    seen
}

/// ceil(1 / fraction)
fn rounds(fraction: f64) -> f64 {
    (1.0 / fraction - ROUNDING).ceil()
}

/// `count` fractions of less than 1 that come to exactly `units`, in parts of `grain`.
fn rational(weights: &[u64], grain: u64) -> (Vec<f64>, u64) {
    let mut parts: Vec<u64> = weights.iter().map(|weight| 1 + weight % (grain - 1)).collect();
    while !parts.iter().sum::<u64>().is_multiple_of(grain) {
        let missing = grain - parts.iter().sum::<u64>() % grain;
        parts.push(missing.min(grain - 1));
    }
    let units = parts.iter().sum::<u64>() / grain;
    (parts.iter().map(|&part| part as f64 / grain as f64).collect(), units)
}

fn rotations() -> impl Strategy<Value = Rotate> {
    select(vec![Rotate::Fair, Rotate::Sticky])
}

// === laws for fixed claims ===

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Full use, and few different fractions: where deadlines tie most.
    #[test]
    fn every_lag_stays_below_one_however_tight_the_fractions(
        rotate in rotations(), weights in vec(0..1_000u64, 1..40), grain in 2..30u64,
    ) {
        let (fractions, units) = rational(&weights, grain);
        let seen = run(rotate, &fractions, units, 100);
        // In full use no unit is ever free.
        prop_assert_eq!(seen.iter().map(|seen| u64::from(seen.served)).sum::<u64>(), 100 * units);
        for (seen, fraction) in seen.iter().zip(fractions) {
            prop_assert!(f64::from(seen.longest_wait) < 2.0 / fraction + ROUNDING);
        }
    }

    /// Clients that hold their unit nearly always: the tie-breaks matter most where windows are short.
    #[test]
    fn every_lag_stays_below_one_where_nearly_everyone_holds(
        rotate in rotations(), pauses in vec(1..4u64, 3..24), grain in 8..40u64,
    ) {
        let weights: Vec<u64> = pauses.iter().map(|pause| grain - pause - 1).collect();
        let (fractions, units) = rational(&weights, grain);
        run(rotate, &fractions, units, 3 * grain as u32);
    }

    #[test]
    fn every_lag_stays_below_one_where_units_are_to_spare(
        rotate in rotations(), fractions in vec(prop_oneof![4 => 0.0..1.0, 1 => Just(0.0), 1 => Just(1.0)], 0..30), spare in 0..3u64,
    ) {
        let units = fractions.iter().sum::<f64>().ceil() as u64 + spare;
        run(rotate, &fractions, units, 100);
    }

    #[test]
    fn shares_of_any_weights_are_kept(rotate in rotations(), weights in vec(1..1_000u32, 1..30), capacity in 1..60u64) {
        let sum: f64 = weights.iter().copied().map(f64::from).sum();
        let shares = weights.iter().map(|&weight| parts(f64::from(weight) * capacity as f64 / sum));
        let (whole, fractions): (Vec<u64>, Vec<f64>) = shares.unzip();
        run(rotate, &fractions, capacity - whole.iter().sum::<u64>(), 200);
    }

    #[test]
    fn equals_take_turns_round_by_round(count in 2..60usize, dice in 0..60u64) {
        let units = 1 + dice % (count as u64 - 1);
        let fraction = units as f64 / count as f64;
        for seen in run(Rotate::Fair, &vec![fraction; count], units, 4 * count as u32) {
            prop_assert!(f64::from(seen.longest_wait) <= rounds(fraction));
        }
    }
}

// === laws for changing claims ===

/// Which clients have a claim during how many quanta, each with a weight, and how much there is.
type Phase = (BTreeMap<u8, u32>, u64, u32);

fn phases() -> impl Strategy<Value = Vec<Phase>> {
    vec((btree_map(0..24u8, 1..6u32, 1..16), 0..20u64, 1..12u32), 1..40)
}

fn fractions_of(clients: &BTreeMap<u8, u32>, capacity: u64) -> (BTreeMap<u8, f64>, u64) {
    let sum: f64 = clients.values().copied().map(f64::from).sum();
    let shares = clients.iter().map(|(&id, &weight)| (id, parts(f64::from(weight) * capacity as f64 / sum)));
    let shares: BTreeMap<u8, (u64, f64)> = shares.collect();
    let whole: u64 = shares.values().map(|(whole, _)| whole).sum();
    (shares.into_iter().map(|(id, (_, fraction))| (id, fraction)).collect(), capacity - whole)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn whoever_comes_and_goes_nobody_waits_longer_than_its_least_fraction_says(phases in phases()) {
        let mut rotation = Rotation::new(Rotate::Fair);
        let mut seen = BTreeMap::<u8, Seen>::new();
        for (clients, capacity, quanta) in phases {
            let (fractions, units) = fractions_of(&clients, capacity);
            for _ in 0..quanta {
                let chosen = rotation.turn(fractions.clone(), units);
                prop_assert!(chosen.len() as u64 <= units);
                seen.retain(|id, _| clients.contains_key(id));
                for (id, &fraction) in &fractions {
                    let client = seen.entry(*id).or_default();
                    let first = client.served == 0;
                    client.pass(fraction, chosen.contains(id));
                    prop_assert!(fraction > 0.0 || !chosen.contains(id));
                    let bound = if first { rounds(client.least) } else { (2.0 / client.least).ceil() } + 1.0;
                    prop_assert!(f64::from(client.waits) <= bound, "{} waits {} of {}", id, client.waits, bound);
                }
            }
        }
    }
}

// === examples ===

/// The longest wait of anyone, and how many units moved in 1000 quanta.
fn equals(rotate: Rotate, count: usize, units: u64) -> (u32, u32) {
    let seen = run(rotate, &vec![units as f64 / count as f64; count], units, 1_000);
    let longest = seen.iter().map(|seen| seen.longest_wait).max();
    (longest.expect("somebody"), seen.iter().map(|seen| seen.moves).sum())
}

/// By longest wait and moves.
#[test]
fn fair_turns_wait_least_and_sticky_ones_move_least() {
    for (count, units, fair, sticky) in [(10, 3, (3, 3000), (4, 2103)), (100, 7, (14, 7000), (15, 6517))] {
        assert_eq!(equals(Rotate::Fair, count, units), fair);
        assert_eq!(equals(Rotate::Sticky, count, units), sticky);
    }
}

#[test]
fn fractions_that_change_at_every_turn_starve_nobody() {
    let mut rotation = Rotation::new(Rotate::Fair);
    let mut waits = [0u32; 10];
    for quantum in 0..1_000u32 {
        let fraction = |id: u32| 0.3 + if (quantum + id).is_multiple_of(2) { 0.05 } else { -0.05 };
        let chosen = rotation.turn((0..10).map(|id| (id, fraction(id))), 3);
        assert_eq!(chosen.len(), 3);
        for (id, waits) in (0..).zip(&mut waits) {
            *waits = if chosen.contains(&id) { 0 } else { *waits + 1 };
            assert!(*waits <= 5);
        }
    }
}

/// A queue of short jobs of great weight passes by one of little weight only until its deadline.
#[test]
fn newcomers_that_leave_once_served_do_not_starve_those_who_stay() {
    for stay in [1, 5, 50] {
        let small = 0.5 / f64::from(stay);
        let mut rotation = Rotation::new(Rotate::Fair);
        let mut waits = vec![0u32; stay as usize];
        let mut newcomer = stay;
        for _ in 0..20 * stay {
            let claims = (0..stay).map(|id| (id, small)).chain([(newcomer, 0.5)]);
            let chosen = rotation.turn(claims, 1);
            newcomer += u32::from(chosen.contains(&newcomer));
            for (id, waits) in (0..).zip(&mut waits) {
                *waits = if chosen.contains(&id) { 0 } else { *waits + 1 };
                assert!(f64::from(*waits) <= 2.0 / small + 1.0, "{waits} of {stay}");
            }
        }
    }
}

#[test]
fn a_queue_of_equals_is_served_in_the_order_of_coming() {
    let mut rotation = Rotation::new(Rotate::Fair);
    let (mut queue, mut next) = ((0..10u32).rev().collect::<Vec<_>>(), 10);
    let mut served = Vec::new();
    assert_eq!(rotation.turn(queue.iter().map(|&id| (id, 0.0)), 1), []);
    for _ in 0..200 {
        let chosen = rotation.turn(queue.iter().map(|&id| (id, 0.1)), 1);
        queue.retain(|id| !chosen.contains(id));
        chosen.iter().for_each(|_| queue.push(next));
        next += chosen.len() as u32;
        served.extend(chosen);
    }
    assert!(served.is_sorted(), "{served:?}");
    assert!(served.len() >= 199);
}

#[test]
fn more_fractions_than_units_are_scaled_down() {
    let mut rotation = Rotation::new(Rotate::Fair);
    let mut served = BTreeMap::<u32, u32>::new();
    for _ in 0..900 {
        for id in rotation.turn([(1, 0.9), (2, 0.6), (3, 0.3)], 1) {
            *served.entry(id).or_default() += 1;
        }
    }
    assert_eq!(served, BTreeMap::from([(1, 450), (2, 300), (3, 150)]));
    assert_eq!(rotation.turn([(1, 0.9), (2, 0.6), (3, 0.3)], 0), []);
}

#[test]
fn without_rotation_the_greatest_fractions_hold_until_they_leave() {
    let mut rotation = Rotation::new(Rotate::None);
    assert_eq!(rotation.turn([(1, 0.2), (2, 0.7), (3, 0.5), (4, 0.0)], 2), [2, 3]);
    assert_eq!(rotation.turn([(1, 0.9), (2, 0.1), (3, 0.5), (4, 0.0)], 2), [2, 3]);
    assert_eq!(rotation.turn([(1, 0.9), (3, 0.5), (4, 0.0)], 2), [1, 3]);
    assert_eq!(rotation.turn([(1, 0.9), (2, 0.7), (3, 0.5), (4, 0.0)], 1), [1]);
    assert_eq!(rotation.turn([(1, 0.9), (4, 0.0)], 9), [1]);
    assert_eq!(rotation.turns_until(&1, 0.9), None);
}

#[test]
fn tells_for_how_many_turns_one_waits_at_most() {
    let mut rotation = Rotation::new(Rotate::Fair);
    let thirds = [(1, 1.0 / 3.0), (2, 1.0 / 3.0), (3, 1.0 / 3.0)];
    assert_eq!(rotation.turns_until(&1, 1.0 / 3.0), Some(3));
    assert_eq!(rotation.turn(thirds, 1), [1]);
    assert_eq!([1, 2, 4].map(|id| rotation.turns_until(&id, 1.0 / 3.0)), [Some(5), Some(2), Some(3)]);
    assert_eq!(rotation.turns_until(&2, 0.0), None);
}

#[test]
fn parts_of_a_share_are_whole_units_and_a_fraction() {
    assert_eq!(parts(0.0), (0, 0.0));
    assert_eq!(parts(2.25), (2, 0.25));
    assert_eq!(parts(3.0 - 1e-12), (3, 0.0));
    assert_eq!(parts(3.0 + 1e-12), (3, 0.0));
    assert_eq!(parts(f64::INFINITY), (u64::MAX, 0.0));
}

#[test]
#[should_panic(expected = "a client has two claims")]
fn two_claims_of_one_client_are_refused() {
    Rotation::new(Rotate::Fair).turn([(1, 0.5), (1, 0.5)], 1);
}

// === between turns ===

const FOUR: [(&str, f64); 4] = [("ann", 0.5), ("bob", 0.5), ("cid", 0.5), ("dot", 0.5)];

#[test]
fn a_unit_that_was_lost_at_once_is_still_owed() {
    let mut rotation = Rotation::new(Rotate::Fair);
    assert_eq!(rotation.turn(FOUR, 2), ["ann", "bob"]);
    rotation.correct(&"ann", -1.0);
    assert_eq!(rotation.turns_until(&"ann", 0.5), Some(1));
    // Whoever has waited as long goes first.
    assert_eq!(rotation.turn(FOUR, 1), ["cid"]);
    assert_eq!(rotation.turn(FOUR, 2), ["ann", "dot"]);
}

#[test]
fn a_unit_that_is_had_between_turns_counts_as_one_of_a_turn() {
    let mut rotation = Rotation::new(Rotate::Fair);
    assert_eq!(rotation.turn(FOUR, 2), ["ann", "bob"]);
    rotation.correct(&"cid", 1.0);
    assert_eq!(rotation.turn(FOUR, 2), ["dot"], "all others have had theirs");
    // A newcomer that has had one as well waits like them.
    let five = FOUR.into_iter().chain([("eve", 0.5)]);
    rotation.correct(&"eve", 0.5);
    assert_eq!(rotation.turns_until(&"eve", 0.5), Some(3));
    assert_eq!(rotation.turn(five, 3), ["ann", "bob", "cid"]);
}

#[test]
fn what_is_lost_and_had_time_after_time_is_no_debt_for_long() {
    for part in [-1.0, 1.0] {
        let mut rotation = Rotation::new(Rotate::Fair);
        for _ in 0..20_000 {
            rotation.turn(FOUR, 2);
            FOUR.iter().for_each(|(id, _)| rotation.correct(id, part));
        }
        let served: Vec<_> = (0..4).flat_map(|_| rotation.turn(FOUR, 2)).collect();
        for (id, _) in FOUR {
            assert!(served.contains(&id), "{part}: {served:?}");
        }
    }
}
