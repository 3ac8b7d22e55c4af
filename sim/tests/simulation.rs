//! Simulations of a tree of nodes: what it does when nothing goes wrong, and that what goes wrong is the same each
//! time.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use lessor_proto::Time;
use lessor_sim::plan::{Election, Link, SimulationPlan, Way};
use lessor_sim::simulation::{News, Observer, Simulation};
use lessor_sim::swarm::{Options, run};

/// One way between two levels.
const HOP: Duration = Duration::from_millis(10);

/// When the beliefs of a client last changed, and the most that all of them believed.
#[derive(Default)]
struct Ears {
    last: Option<Time>,
    peak: u128,
}

impl Observer for Ears {
    fn hear(&mut self, now: Time, news: News) {
        self.last = Some(now);
        self.peak = self.peak.max(news.total);
    }
}

/// Root, two regions, two leaves each, three clients at each leaf: 12 who want `wants` of 120 each.
fn tree(wants: f64) -> Simulation {
    let mut plan = SimulationPlan::tree(&[2, 2], 3, 120.0, wants);
    plan.sites.iter_mut().for_each(|site| site.link = Link::fixed(HOP));
    plan.clients.iter_mut().for_each(|client| client.link = Link::fixed(HOP));
    let mut sim = Simulation::new(1, &plan);
    sim.pass(Duration::from_secs(30)).unwrap();
    sim
}

#[test]
fn a_tree_hands_out_what_its_clients_want() {
    let sim = tree(8.0);
    assert_eq!(sim.total_believed(0), 96_000_000);
    assert!((0..12).all(|client| sim.believed(client).as_f64() > 7.999));
}

#[test]
fn capacity_moves_to_where_it_is_wanted_within_two_round_trips_of_the_path() {
    let mut sim = tree(20.0);
    let (before, mut ears) = (sim.now(), Ears::default());
    sim.set_wants(0, 4.0);
    sim.run_until_heard(before + HOP * 14, &mut ears).unwrap();
    // Three hops up and three down, twice, and what nodes take to gather changes.
    assert!(ears.last.unwrap().since(before) < HOP * 13, "{:?}", ears.last);
    assert!(ears.peak <= 120_000_000);
    sim.judge().unwrap();
}

#[test]
fn what_nobody_wants_is_near_to_those_who_come_to_want_it() {
    // The root keeps half of the 24 that are spare, each region half of its 6, and each leaf 1.5. A mark takes half a hop.
    for (wants, hops) in [(9.0, 3), (11.0, 6), (16.0, 8)] {
        let mut sim = tree(8.0);
        let (before, mut ears) = (sim.now(), Ears::default());
        sim.set_wants(0, wants);
        while sim.believed(0).as_f64() < wants - 1e-3 && sim.now() < before + HOP * 20 {
            sim.run_until_heard(sim.now() + HOP / 10, &mut ears).unwrap();
        }
        let took = sim.now().since(before);
        assert!(took < HOP * hops, "{took:?} for {wants}");
        sim.pass(Duration::from_secs(30)).unwrap();
        sim.judge().unwrap();
    }
}

#[test]
fn nobody_speaks_when_there_is_nothing_to_say() {
    let mut sim = tree(20.0);
    let before = sim.counts();
    sim.pass(Duration::from_secs(120)).unwrap();
    sim.judge_silence(&before).unwrap();
    assert!(sim.counts().heartbeats > before.heartbeats + 100);
}

#[test]
fn a_lost_root_is_not_noticed_below_while_leases_last() {
    let mut sim = tree(20.0);
    assert!(sim.lose_leader(0));
    sim.pass(Duration::from_secs(5)).unwrap();
    assert!(sim.total_believed(0) > 119_000_000 && !sim.is_led(0));
    // Etcd lets the key go, and its watchers know at once.
    sim.pass(Duration::from_secs(7)).unwrap();
    assert!(sim.is_led(0));
    sim.set_wants(3, 0.0);
    sim.pass(Duration::from_secs(90)).unwrap();
    sim.judge().unwrap();
}

/// The least that all clients together believed.
struct Least(u128);

impl Observer for Least {
    fn hear(&mut self, _: Time, news: News) {
        self.0 = self.0.min(news.total);
    }
}

#[test]
fn when_all_leaders_fall_at_once_their_successors_take_nothing_away() {
    let mut sim = tree(20.0);
    assert!((0..7).all(|site| sim.lose_leader(site)));
    let mut least = Least(u128::MAX);
    sim.run_until_heard(sim.now() + Duration::from_secs(80), &mut least).unwrap();
    assert!(least.0 > 119_000_000, "they fell to {}", least.0);
    sim.judge().unwrap();
}

#[test]
fn a_leader_deposed_by_hand_acts_beside_its_successor_for_its_authority() {
    let mut sim = tree(20.0);
    let before = sim.leading_task(0).unwrap();
    assert!(sim.cut_leader_from_etcd(0, Duration::from_secs(20)) && sim.depose(0));
    sim.pass(Duration::from_secs(1)).unwrap();
    assert_eq!(sim.acting(0), 2);
    assert!(sim.leading_task(0).is_some_and(|task| task != before));
    sim.set_wants(3, 0.0);
    // It counts from when it last spoke to etcd.
    sim.pass(Duration::from_secs(4)).unwrap();
    assert_eq!(sim.acting(0), 1);
    sim.pass(Duration::from_secs(90)).unwrap();
    assert_eq!(sim.acting(0), 1);
    sim.judge().unwrap();
}

#[test]
fn a_leader_that_resigns_is_succeeded_at_once() {
    let mut sim = tree(20.0);
    for site in [0, 1, 3] {
        assert!(sim.resign_leader(site));
        sim.pass(Duration::from_millis(200)).unwrap();
        assert_eq!(sim.acting(site), 1);
        sim.set_wants(3, f64::from(site));
        sim.pass(Duration::from_secs(3)).unwrap();
        // What a mark is too high by waits for the end of what was out.
        assert!(sim.total_believed(0) > 114_000_000, "{site}: {}", sim.total_believed(0));
    }
    sim.pass(Duration::from_secs(60)).unwrap();
    sim.judge().unwrap();
}

#[test]
fn tasks_that_do_not_lead_name_the_one_that_etcd_told_them_of() {
    let mut sim = tree(20.0);
    let name = |number: u8| Some(format!("root:{}", number + 1));
    let leads = sim.leading_task(0).unwrap();
    assert_eq!(sim.named(0), vec![name(leads); 2]);
    assert!(sim.lose_leader(0));
    sim.pass(Duration::from_secs(2)).unwrap();
    // The key is still there.
    assert_eq!(sim.named(0).iter().flatten().count(), 2);
    sim.pass(Duration::from_secs(12)).unwrap();
    assert_eq!(sim.named(0), vec![name(sim.leading_task(0).unwrap()); 2]);
}

#[test]
fn while_etcd_is_not_there_holders_live_on_their_leases() {
    let mut sim = tree(20.0);
    assert!(sim.lose_etcd_for(Duration::from_secs(30)));
    sim.pass(Duration::from_secs(25)).unwrap();
    assert!((0..7).all(|site| !sim.is_led(site)));
    assert!(sim.total_believed(0) > 119_000_000);
    sim.pass(Duration::from_secs(100)).unwrap();
    assert!((0..7).all(|site| sim.is_led(site)));
    sim.judge().unwrap();
}

#[test]
fn servers_that_are_alone_lead_for_ever() {
    let mut plan = SimulationPlan::tree(&[2], 3, 60.0, 20.0);
    plan.election = Election::Alone;
    let mut sim = Simulation::new(3, &plan);
    assert!((0..3).all(|site| sim.is_led(site)));
    // The root learns for as long as a lease lasts, though nobody was there before it.
    sim.pass(Duration::from_secs(30)).unwrap();
    assert_eq!(sim.total_believed(0), 0);
    sim.pass(Duration::from_secs(60)).unwrap();
    assert_eq!((sim.mark_writes(0), sim.depose(0)), (0, false));
    sim.judge().unwrap();
}

#[test]
fn a_lone_root_that_dies_and_comes_back_gives_holders_what_they_have_and_nobody_more() {
    let mut plan = SimulationPlan::tree(&[2], 3, 60.0, 20.0);
    plan.election = Election::Alone;
    let mut sim = Simulation::new(3, &plan);
    sim.pass(Duration::from_secs(90)).unwrap();
    assert_eq!(sim.total_believed(0), 60_000_000);
    assert!(sim.lose_leader(0));
    sim.pass(Duration::from_secs(30)).unwrap();
    assert!(sim.is_led(0));
    assert!(sim.total_believed(0) > 59_000_000, "they fell to {}", sim.total_believed(0));
    sim.set_wants(0, 0.0);
    sim.pass(Duration::from_secs(90)).unwrap();
    sim.judge().unwrap();
}

#[test]
fn those_who_poll_get_their_share_too() {
    for way in [Way::Poll, Way::Legacy] {
        let mut plan = SimulationPlan::tree(&[2], 3, 60.0, 20.0);
        plan.clients.iter_mut().for_each(|client| client.way = way);
        let mut sim = Simulation::new(3, &plan);
        sim.pass(Duration::from_secs(60)).unwrap();
        sim.judge().unwrap();
    }
}

#[test]
fn the_same_seeds_give_the_same_hash_and_others_do_not() {
    let options = Options { judged: false, ..Options::default() };
    let once = run(0..5, &options);
    let twice = run(0..5, &options);
    assert_eq!((once.hash, once.events), (twice.hash, twice.events));
    assert_ne!(once.hash, run(5..10, &options).hash);
}

#[test]
fn a_flat_simulation_of_pollers_breaks_no_rule_whatever_goes_wrong() {
    let options = Options { flat: true, polling: true, ..Options::default() };
    let report = run(0..100, &options);
    assert!(report.violations.is_empty(), "{report}");
    assert!(report.faults.lost > 1_000 && report.faults.gaps.iter().sum::<u64>() > 1_000, "{report}");
}
