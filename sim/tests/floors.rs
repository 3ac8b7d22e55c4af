//! Floors in a simulation: what is reserved for those who reach no server, under everything that goes wrong. Its clients hold a
//! resource and its floor as two, so that the oracle follows each of them by itself.

use std::time::Duration;

use lessor_sim::faults::{Fault, FaultPlan};
use lessor_sim::plan::{Hold, ResourcePlan, SimulationPlan, Terms};
use lessor_sim::simulation::Simulation;

/// Of a hundred a fifth is reserved, by leases that last ten times as long.
const LEASED: u128 = 80_000_000;
const RESERVED: u128 = 20_000_000;

/// Two leaves with three clients each, that want all there is.
fn plan() -> SimulationPlan {
    let mut plan = SimulationPlan::tree(&[2], 3, 80.0, 1_000.0);
    plan.resources.push(ResourcePlan::rate("db|safe", 20.0));
    for client in &mut plan.clients {
        client.holds.push(Hold::new(1, 1e9));
    }
    plan
}

/// The part that each of six has of a fifth: a power of two of a millionth.
const FLOOR: u128 = 1 << 21;

#[test]
fn all_are_cut_off_at_once_while_leaders_fall_and_each_goes_on_with_its_floor() {
    let mut sim = Simulation::new(5, &plan());
    sim.pass(Duration::from_secs(30)).unwrap();
    assert!(sim.total_believed(0) > LEASED * 99 / 100);
    assert_eq!(sim.total_believed(1), 6 * FLOOR);
    for leaf in [1, 2] {
        sim.cut_off_below(leaf, Duration::from_secs(150));
    }
    sim.pass(Duration::from_secs(20)).unwrap();
    assert!(sim.lose_leader(0) && sim.lose_leader(1));
    sim.pass(Duration::from_secs(100)).unwrap();
    assert!(sim.is_led(0) && sim.is_led(1));
    assert_eq!((sim.total_believed(0), sim.total_believed(1)), (0, 6 * FLOOR));
    // Nobody else may have it, as it is in use.
    assert!(sim.leased(0, 1) >= 6 * FLOOR && sim.leased(0, 1) <= RESERVED);
    sim.pass(Duration::from_secs(120)).unwrap();
    assert!(sim.total_believed(0) > LEASED * 99 / 100, "{} is back", sim.total_believed(0));
    assert_eq!(sim.total_believed(1), 6 * FLOOR);
}

#[test]
fn floors_end_as_well() {
    let mut sim = Simulation::new(6, &plan());
    sim.pass(Duration::from_secs(30)).unwrap();
    for leaf in [1, 2] {
        sim.cut_off_below(leaf, Duration::from_secs(900));
    }
    sim.pass(Duration::from_secs(700)).unwrap();
    assert_eq!((sim.total_believed(0), sim.total_believed(1)), (0, 0));
}

#[test]
fn whatever_goes_wrong_neither_passes_its_part() {
    let mut happened = 0;
    for seed in 0..40 {
        let mut plan = plan();
        plan.odd_clocks = true;
        for site in &mut plan.sites {
            // Short ones, so that many end while somebody is cut off.
            site.terms =
                Terms { lease_length: Duration::from_secs(6), refresh_interval: Duration::from_secs(1) };
        }
        plan.faults = FaultPlan {
            until: Duration::from_secs(120),
            loss: 20,
            twice: 10,
            slow: 20,
            spell: Duration::from_secs(10),
            restless: Some(Duration::from_secs(10)),
            ..FaultPlan::none()
        };
        for kind in Fault::ALL {
            // Two lives of a client have a floor each, and there is no more of it for that.
            plan.faults.gaps[kind as usize] = (kind != Fault::Twin).then_some(Duration::from_secs(15));
        }
        let mut sim = Simulation::new(seed, &plan);
        sim.pass(Duration::from_secs(200)).unwrap_or_else(|violation| panic!("{violation}"));
        happened += sim.tally().gaps.iter().sum::<u64>();
    }
    assert!(happened > 2_000, "{happened} things went wrong");
}
