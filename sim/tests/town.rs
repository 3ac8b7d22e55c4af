//! What a tree of nodes does when nothing goes wrong, and that what goes wrong is the same each time.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use lessor_proto::Time;
use lessor_sim::plan::{Link, TownPlan, Way};
use lessor_sim::swarm::{Options, run};
use lessor_sim::town::{News, Observer, Town};

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
fn tree(wants: f64) -> Town {
    let mut plan = TownPlan::tree(&[2, 2], 3, 120.0, wants);
    plan.places.iter_mut().for_each(|place| place.link = Link::fixed(HOP));
    plan.clients.iter_mut().for_each(|client| client.link = Link::fixed(HOP));
    let mut town = Town::new(1, &plan);
    town.pass(Duration::from_secs(30)).unwrap();
    town
}

#[test]
fn a_tree_hands_out_what_its_clients_want() {
    let town = tree(8.0);
    assert_eq!(town.total_believed(0), 96_000_000);
    assert!((0..12).all(|client| town.believed(client).as_f64() > 7.999));
}

#[test]
fn capacity_moves_to_where_it_is_wanted_within_two_round_trips_of_the_path() {
    let mut town = tree(20.0);
    let (before, mut ears) = (town.now(), Ears::default());
    town.set_wants(0, 4.0);
    town.run_until_heard(before + HOP * 14, &mut ears).unwrap();
    // Three hops up and three down, twice, and what nodes take to gather changes.
    assert!(ears.last.unwrap().since(before) < HOP * 13, "{:?}", ears.last);
    assert!(ears.peak <= 120_000_000);
    town.judge().unwrap();
}

#[test]
fn what_nobody_wants_is_near_to_those_who_come_to_want_it() {
    // The root keeps half of the 24 that are spare, each region half of its 6, and each leaf 1.5. A mark takes half a hop.
    for (wants, hops) in [(9.0, 3), (11.0, 6), (16.0, 8)] {
        let mut town = tree(8.0);
        let (before, mut ears) = (town.now(), Ears::default());
        town.set_wants(0, wants);
        while town.believed(0).as_f64() < wants - 1e-3 && town.now() < before + HOP * 20 {
            town.run_until_heard(town.now() + HOP / 10, &mut ears).unwrap();
        }
        let took = town.now().since(before);
        assert!(took < HOP * hops, "{took:?} for {wants}");
        town.pass(Duration::from_secs(30)).unwrap();
        town.judge().unwrap();
    }
}

#[test]
fn nobody_speaks_when_there_is_nothing_to_say() {
    let mut town = tree(20.0);
    let before = town.counts();
    town.pass(Duration::from_secs(120)).unwrap();
    town.judge_silence(&before).unwrap();
    assert!(town.counts().heartbeats > before.heartbeats + 100);
}

#[test]
fn a_lost_root_is_not_noticed_below_while_leases_last() {
    let mut town = tree(20.0);
    assert!(town.lose_leader(0));
    town.pass(Duration::from_secs(5)).unwrap();
    assert!(town.total_believed(0) > 119_000_000 && !town.is_led(0));
    // Etcd lets the key go, and its watchers know at once.
    town.pass(Duration::from_secs(7)).unwrap();
    assert!(town.is_led(0));
    town.set_wants(3, 0.0);
    town.pass(Duration::from_secs(90)).unwrap();
    town.judge().unwrap();
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
    let mut town = tree(20.0);
    assert!((0..7).all(|place| town.lose_leader(place)));
    let mut least = Least(u128::MAX);
    town.run_until_heard(town.now() + Duration::from_secs(80), &mut least).unwrap();
    assert!(least.0 > 119_000_000, "they fell to {}", least.0);
    town.judge().unwrap();
}

#[test]
fn those_who_poll_get_their_share_too() {
    for way in [Way::Poll, Way::Legacy] {
        let mut plan = TownPlan::tree(&[2], 3, 60.0, 20.0);
        plan.clients.iter_mut().for_each(|client| client.way = way);
        let mut town = Town::new(3, &plan);
        town.pass(Duration::from_secs(60)).unwrap();
        town.judge().unwrap();
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
fn a_flat_town_of_pollers_breaks_no_rule_whatever_goes_wrong() {
    let options = Options { flat: true, polling: true, ..Options::default() };
    let report = run(0..100, &options);
    assert!(report.violations.is_empty(), "{report}");
    assert!(report.faults.lost > 1_000 && report.faults.mischief.iter().sum::<u64>() > 1_000, "{report}");
}
