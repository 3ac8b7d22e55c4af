//! Servers that remember in a file, and sites that are given another way to remember: nobody is ever given what others have,
//! and those who have something keep it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use lessor_proto::Time;
use lessor_sim::plan::{DiskPlan, Election, EtcdPlan, Keeps, Memory, SimulationPlan};
use lessor_sim::simulation::{News, Observer, Simulation};

/// The least and the most that all clients together believed.
struct Range {
    least: u128,
    most: u128,
}

impl Observer for Range {
    fn hear(&mut self, _: Time, news: News) {
        self.least = self.least.min(news.total);
        self.most = self.most.max(news.total);
    }
}

/// Runs for `seconds` seconds, and returns the range of what clients believed in them, whatever had just been
/// done to the simulation.
fn watched(sim: &mut Simulation, seconds: u64) -> Range {
    let now = sim.total_believed(0);
    let mut range = Range { least: now, most: now };
    sim.run_until_heard(sim.now() + Duration::from_secs(seconds), &mut range).unwrap();
    range
}

/// A root and two leaves with three clients each, who want `wants` of 60 each, and a state directory for each server.
fn sim(wants: f64) -> Simulation {
    sim_on(DiskPlan::default(), wants)
}

fn sim_on(disk: DiskPlan, wants: f64) -> Simulation {
    let mut plan = SimulationPlan::tree(&[2], 3, 60.0, wants);
    plan.election = Election::Alone;
    plan.memory = Memory { disk: Some(disk), etcd: Some(EtcdPlan::default()) };
    let mut sim = Simulation::new(3, &plan);
    sim.pass(Duration::from_secs(90)).unwrap();
    assert!(sim.total_believed(0) > 59_000_000 || wants < 10.0);
    sim
}

#[test]
fn whoever_comes_back_with_its_memory_takes_nothing_away_and_gives_nobody_more() {
    for (site, grows) in [(0, false), (1, false), (0, true), (1, true)] {
        let mut sim = sim_on(DiskPlan { grows, ..DiskPlan::default() }, 20.0);
        assert!(sim.lose_leader(site));
        let Range { least, most } = watched(&mut sim, 30);
        assert!(sim.is_led(site) && least > 59_000_000 && most <= 60_000_000, "{site}: {least} to {most}");
        sim.judge().unwrap();
    }
}

#[test]
fn what_was_never_out_is_there_at_once_for_those_who_come_to_want_it() {
    let mut sim = sim(5.0);
    assert!(sim.lose_leader(0));
    sim.pass(Duration::from_secs(2)).unwrap();
    sim.set_wants(0, 20.0);
    let Range { most, .. } = watched(&mut sim, 10);
    // Marks are above what is out, so that a little of the rest counts as out as well.
    assert!(most > 40_000_000 && most <= 60_000_000, "{most}");
}

#[test]
fn after_a_loss_of_power_holders_live_on_their_leases_and_get_them_again() {
    for grows in [false, true] {
        let mut sim = sim_on(DiskPlan { grows, ..DiskPlan::default() }, 20.0);
        assert!(sim.lose_power_of(0, Duration::from_secs(1)));
        let Range { least, most } = watched(&mut sim, 30);
        assert!(least > 59_000_000 && most <= 60_000_000, "{least} to {most}");
        // Whoever showed what it had cannot be believed: it ends, and is granted anew.
        let Range { most, .. } = watched(&mut sim, 120);
        assert!(most <= 60_000_000, "{most}");
        sim.judge().unwrap();
    }
}

#[test]
fn from_one_way_to_remember_to_another_nobody_loses_a_lease_or_is_locked_out() {
    use Keeps::{Etcd, File, Nothing};
    for site in [0, 1] {
        let mut sim = sim(20.0);
        for way in [File, Etcd, Etcd, Nothing, Etcd, File, Nothing, Nothing, File] {
            sim.keep_in(site, way);
            let Range { least, most } = watched(&mut sim, 150);
            // A leaf that succeeds nobody gets its part when the one before has ended, to which a third is due until then.
            let gone = if site == 0 { 1_000_000 } else { 40_500_000 };
            assert!(least + gone > 60_000_000 && most <= 60_000_000, "{site} {way:?}: {least} to {most}");
            sim.judge().unwrap();
        }
    }
}

#[test]
fn on_a_full_disk_nothing_is_handed_out_beyond_what_stands_there() {
    let mut sim = sim(0.1);
    let before = sim.total_believed(0);
    sim.fill_disk_for(0, Duration::from_secs(20));
    (0..6).for_each(|client| sim.set_wants(client, 20.0));
    let Range { least, most } = watched(&mut sim, 15);
    assert!(least >= before * 9 / 10 && most < 60_000_000, "{least} to {most} of {before}");
    let Range { most, .. } = watched(&mut sim, 30);
    assert!(most > 59_000_000 && most <= 60_000_000, "{most}");
}
