//! The part of the swarm that runs with all other tests: simulations in which everything goes wrong, from seed 0 on, and
//! everybody must have its share when the faults are over.

use std::time::Duration;

use lessor_proto::Drift;
use lessor_sim::faults::Fault;
use lessor_sim::plan::{BadPlan, Election, EtcdPlan, LimitPlan, SimulationPlan};
use lessor_sim::swarm::{Options, SwarmReport, plan, run, run_one};

/// No further simulation is begun after so many events; fewer where nothing is optimised.
const EVENTS: u64 = if cfg!(debug_assertions) { 300_000 } else { 6_000_000 };

#[test]
fn no_simulation_of_the_swarm_breaks_a_rule() {
    let report = run(0..u64::MAX, &Options { budget: EVENTS, ..Options::default() });
    println!("{report}");
    assert!(report.violations.is_empty(), "{report}");
    assert!(report.events >= EVENTS, "{report}");
    // The few simulations of a build without optimisation need not have had everything. The limits of domains change in so few
    // that the test of shared domains looks for that.
    // Rights and caps change, leases are recalled and operators override where there are limits, which tests below run.
    let of_others = [
        "limit of a domain changed",
        "right changed",
        "cap of a template changed",
        "lease recalled by an operator",
        "templates put back to an older copy",
        "tree looked at",
        "override by an operator",
        "second limit taken out",
    ];
    let all = report.faults.counts().all(|(name, count)| count > 0 || of_others.contains(&name));
    assert!(all || cfg!(debug_assertions), "something never went wrong:\n{report}");
}

#[test]
fn no_simulation_with_limits_and_rules_of_access_breaks_a_rule() {
    let options = Options::default();
    let mut report = SwarmReport::default();
    for seed in (9_200_000..).filter(|&seed| plan(seed, &options).limits != LimitPlan::default()) {
        report.add(run_one(seed, &options));
        if report.events >= EVENTS / 2 || !report.violations.is_empty() {
            break;
        }
    }
    println!("{report}");
    assert!(report.violations.is_empty(), "{report}");
    let of_limits = ["right changed", "cap of a template changed", "lease recalled by an operator"];
    let counts = report.faults.counts().filter(|&(name, count)| of_limits.contains(&name) && count > 0);
    assert!(
        counts.count() == of_limits.len() || cfg!(debug_assertions),
        "something never went wrong:\n{report}"
    );
}

#[test]
fn no_simulation_whose_tasks_follow_templates_at_etcd_breaks_a_rule() {
    let options = Options::default();
    let mut report = SwarmReport::default();
    for seed in (10_200_000..).filter(|&seed| plan(seed, &options).follows) {
        report.add(run_one(seed, &options));
        if report.events >= EVENTS / 2 || !report.violations.is_empty() {
            break;
        }
    }
    println!("{report}");
    assert!(report.violations.is_empty(), "{report}");
    let restored =
        report.faults.counts().any(|(name, count)| count > 0 && name.starts_with("templates put back"));
    assert!(restored || cfg!(debug_assertions), "something never went wrong:\n{report}");
}

#[test]
fn no_simulation_of_limits_on_windows_breaks_a_rule() {
    let options = Options::default();
    let mut report = SwarmReport::default();
    let is_of_windows =
        |seed: &u64| plan(*seed, &options).resources.iter().any(|found| found.window.is_some());
    for seed in (10_300_000..).filter(is_of_windows) {
        report.add(run_one(seed, &options));
        if report.events >= EVENTS / 2 || !report.violations.is_empty() {
            break;
        }
    }
    println!("{report}");
    assert!(report.violations.is_empty(), "{report}");
    assert!(report.hits > 100 * report.seeds, "hardly any use is made:\n{report}");
}

#[test]
fn no_simulation_in_which_changes_are_added_to_files_breaks_a_rule() {
    let options = Options::default();
    let mut report = SwarmReport::default();
    let grows = |seed: &u64| plan(*seed, &options).memory.disk.is_some_and(|disk| disk.grows);
    for seed in (14_000_000..).filter(grows) {
        report.add(run_one(seed, &options));
        if report.events >= EVENTS / 4 || !report.violations.is_empty() {
            break;
        }
    }
    println!("{report}");
    assert!(report.violations.is_empty(), "{report}");
    for name in ["machine with a state directory lost", "disk full", "state file damaged"] {
        let happened = report.faults.counts().any(|(fault, count)| fault.starts_with(name) && count > 0);
        assert!(happened || cfg!(debug_assertions), "{name}: never\n{report}");
    }
}

#[test]
fn no_simulation_in_which_operators_look_at_the_tree_breaks_a_rule() {
    let options = Options::default();
    let mut report = SwarmReport::default();
    let [mut shown, mut unseen] = [0, 0];
    for seed in (11_400_000..).filter(|&seed| plan(seed, &options).faults.every(Fault::Look).is_some()) {
        let run = run_one(seed, &options);
        shown += run.counts.nodes_shown;
        unseen += run.counts.nodes_unseen;
        report.add(run);
        if report.events >= EVENTS / 2 || !report.violations.is_empty() {
            break;
        }
    }
    println!("{shown} nodes were shown, {unseen} were not\n{report}");
    assert!(report.violations.is_empty(), "{report}");
    assert!(shown > 100 && (unseen > 10 || cfg!(debug_assertions)), "{shown} and {unseen}");
}

#[test]
fn no_simulation_in_which_operators_override_breaks_a_rule() {
    let options = Options::default();
    let (mut report, mut passed, mut heard) = (SwarmReport::default(), 0, 0);
    for seed in (12_000_000..).filter(|&seed| plan(seed, &options).faults.every(Fault::Override).is_some()) {
        let run = run_one(seed, &options);
        passed += run.counts.passed;
        heard += run.counts.passed_heard;
        report.add(run);
        // On until enough was let pass, and not for ever: it is in one simulation of eight.
        let is_enough = passed > 5 && heard > 5 || report.events >= 20 * EVENTS;
        if report.events >= EVENTS / 2 && is_enough || !report.violations.is_empty() {
            break;
        }
    }
    println!("{passed} hits were let pass, {heard} units heard of\n{report}");
    assert!(report.violations.is_empty(), "{report}");
    assert!(passed > 5 && heard > 5, "{passed} hits were let pass, {heard} units heard of");
    let overridden = report.faults.counts().find(|&(name, _)| name == "override by an operator");
    assert!(overridden.is_some_and(|(_, count)| count > 10), "nobody overrides:\n{report}");
}

#[test]
fn no_simulation_in_which_a_second_limit_is_tried_breaks_a_rule() {
    let options = Options::default();
    let mut report = SwarmReport::default();
    let is_tried =
        |seed: &u64| plan(*seed, &options).resources.iter().any(|found| found.companion_of.is_some());
    for seed in (13_000_000..).filter(is_tried) {
        report.add(run_one(seed, &options));
        if report.events >= EVENTS / 2 || !report.violations.is_empty() {
            break;
        }
    }
    println!("{report}");
    assert!(report.violations.is_empty(), "{report}");
    assert!(report.companions > 10 * report.seeds, "hardly anybody has a companion:\n{report}");
    assert!(report.beside > 10 * report.seeds, "hardly anything is asked of second limits:\n{report}");
    let taken_out = report.faults.counts().find(|&(name, _)| name == "second limit taken out");
    assert!(taken_out.is_some_and(|(_, count)| count > report.seeds / 2), "it is always tried:\n{report}");
}

/// Seeds that broke a rule once, and show it again where what mended them is taken back. A change of what is drawn, or of what
/// servers say when, may take them elsewhere.
const MENDED: [u64; 60] = [
    347, 1_471, 1_879, 2_003_468, 7_030_276, 7_032_276, 7_044_243, 7_044_578, 7_045_470, 7_045_623,
    7_207_852, 7_212_607, 7_430_449, 7_450_691, 7_451_849, 7_464_004, 7_500_393, 305_060, 7_561_247,
    7_563_174, 7_581_225, 7_582_895, 7_601_193, 7_615_977, 7_627_365, 7_646_597, 7_672_026, 7_686_814,
    7_698_027, 7_706_345, 8_300_029, 8_300_235, 8_300_356, 8_300_586, 8_300_621, 8_301_117, 8_301_199,
    8_301_223, 8_301_540, 9_005_975, 9_010_431, 9_014_714, 9_001_049, 9_001_310, 9_014_939, 9_000_772,
    9_015_224, 9_007_555, 9_011_055, 9_009_712, 9_304_357, 9_301_397, 9_313_796, 9_305_444, 9_309_664,
    9_513_423, 9_611_653, 9_804_520, 9_868_499, 9_882_202,
];

#[test]
fn no_simulation_breaks_a_rule_that_it_broke_once() {
    for seed in MENDED {
        let run = run_one(seed, &Options::default());
        assert!(run.violation.is_none(), "seed {seed}: {:?}", run.violation);
    }
}

/// The number of simulations that are drawn and looked at, and not run.
const DRAWN: u64 = if cfg!(debug_assertions) { 10_000 } else { 100_000 };

#[test]
fn every_simulation_that_is_drawn_can_work() {
    // Those whose leases at etcd were once drawn shorter than authority needs, by less than a millisecond.
    let once_impossible = [1_000_545, 2_000_847, 2_002_086];
    for seed in once_impossible.into_iter().chain(0..DRAWN) {
        if let Err(problem) = plan(seed, &Options::default()).check() {
            panic!("seed {seed}: {problem}");
        }
    }
}

#[test]
fn a_simulation_whose_leaders_would_outlive_their_keys_cannot_work() {
    let mut plan = SimulationPlan::flat(1, 10.0, 1.0);
    plan.drift = Drift::from_parts_per_million(50_000);
    plan.sites[0].authority = Duration::from_millis(2_715);
    let etcd = |ttl| EtcdPlan { ttl: Duration::from_secs(ttl), ..EtcdPlan::default() };
    plan.election = Election::Etcd(etcd(3));
    let problem = plan.check().expect_err("3.0008 s are needed");
    assert!(matches!(problem, BadPlan::Election { .. }), "{problem}");
    plan.election = Election::Etcd(etcd(4));
    assert!(plan.check().is_ok());
    plan.sites[0].parent = Some(0);
    assert!(matches!(plan.check(), Err(BadPlan::Reference { .. })));
}
