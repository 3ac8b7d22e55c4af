//! Leaders that hear nothing of etcd for a while, and may not act before they do: those below stay connected as long as nobody
//! else can lead, and go where somebody does after that.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use lessor_proto::Amount;
use lessor_sim::plan::{Election, EtcdPlan, Link, Scrutiny, SimulationPlan, Terms};
use lessor_sim::simulation::Simulation;

/// Clients of the leaf.
const CLIENTS: u32 = 50;
/// The site of the leaf, whose leaders lapse.
const LEAF: u32 = 1;

/// A root and a leaf of two tasks each, as with the defaults: a leader may act for 4 s, and its key ends after 10 s.
fn town(seed: u64) -> Simulation {
    let mut plan = SimulationPlan::tree(&[1], CLIENTS as usize, 500.0, 20.0);
    for site in &mut plan.sites {
        (site.authority, site.tasks) = (Duration::from_secs(4), 2);
        site.terms =
            Terms { lease_length: Duration::from_secs(60), refresh_interval: Duration::from_secs(5) };
    }
    plan.watch = Scrutiny::Loose(1_000);
    plan.election = Election::Etcd(EtcdPlan {
        ttl: Duration::from_secs(10),
        keep_alive: Duration::from_secs(1),
        call_timeout: Duration::from_secs(1),
        link: Link::NEAR,
    });
    let mut sim = Simulation::new(seed, &plan);
    sim.pass(Duration::from_secs(30)).unwrap();
    sim
}

/// Lets so many milliseconds pass, in which somebody wants something else every now and then, and counts those who came to have
/// no lease, and the moments at which the leaf was led.
fn pass(sim: &mut Simulation, millis: u32) -> (u32, u32) {
    let (mut lost, mut led) = (0, 0);
    let mut had: Vec<bool> = (0..CLIENTS).map(|client| sim.lease_of(client) > Amount::ZERO).collect();
    for milli in 0..millis {
        if milli % 100 == 0 {
            let wants = 10.0 + f64::from(milli / 100 % 20);
            sim.set_wants(milli / 100 % CLIENTS, wants);
        }
        sim.pass(Duration::from_millis(1)).unwrap();
        led += u32::from(sim.is_led(LEAF));
        for (client, had) in (0..CLIENTS).zip(&mut had) {
            let has = sim.lease_of(client) > Amount::ZERO;
            lost += u32::from(std::mem::replace(had, has) && !has);
        }
    }
    (lost, led)
}

#[test]
fn those_below_stay_with_a_leader_whose_authority_lapses_while_nobody_else_can_lead() {
    for seed in 0..5 {
        let mut sim = town(seed);
        let (task, before) = (sim.leading_task(LEAF), sim.counts().streams);
        for _ in 0..3 {
            assert!(sim.cut_leader_from_etcd(LEAF, Duration::from_secs(7)));
            let (lost, led) = pass(&mut sim, 10_000);
            assert!(led < 9_000, "seed {seed}: authority has lapsed for a while, led {led} ms");
            assert_eq!(lost, 0, "seed {seed}");
            assert_eq!(sim.leading_task(LEAF), task, "seed {seed}: the same task leads");
        }
        assert_eq!(sim.counts().streams - before, 0, "seed {seed}: streams that were opened anew");
        sim.pass(Duration::from_secs(5)).unwrap();
        assert!(sim.total_believed(0) > 495_000_000, "seed {seed}: all of it is in use");
        sim.judge().unwrap();
    }
}

#[test]
fn those_below_go_to_the_next_leader_when_the_key_of_one_that_lapsed_has_ended() {
    for seed in 0..5 {
        let mut sim = town(seed);
        let (task, before) = (sim.leading_task(LEAF), sim.counts().streams);
        assert!(sim.cut_leader_from_etcd(LEAF, Duration::from_secs(20)));
        let (lost, _) = pass(&mut sim, 25_000);
        assert_eq!(lost, 0, "seed {seed}");
        assert!(
            sim.leading_task(LEAF).is_some_and(|leader| Some(leader) != task),
            "seed {seed}: another leads"
        );
        let opened = sim.counts().streams - before;
        assert!(opened > u64::from(CLIENTS), "seed {seed}: {opened} streams are all of them, and the leaf's");
        assert!(opened <= 5 * u64::from(CLIENTS), "seed {seed}: {opened} streams are a herd that knocks");
        sim.pass(Duration::from_secs(5)).unwrap();
        assert!(sim.total_believed(0) > 495_000_000, "seed {seed}: all of it is in use");
        sim.judge().unwrap();
    }
}
