//! Doorman's own simulation: its rules, one by one.

use super::*;
use crate::measure::{Figures, median};
use crate::workload::Scenario;

fn runs(scenario: Scenario, seeds: u64) -> Vec<Figures> {
    (1..=seeds).map(|seed| run(&Workload::draw(scenario, seed)).figures()).collect()
}

fn check(
    what: &str,
    figures: &[Figures],
    figure: fn(&Figures) -> Option<f64>,
    wanted: std::ops::RangeInclusive<f64>,
) {
    let found = median(&figures.iter().filter_map(figure).collect::<Vec<f64>>());
    assert!(found.is_some_and(|found| wanted.contains(&found)), "{what}: {found:?}, wanted {wanted:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let [first, again, other] = [9, 9, 10].map(|seed| run(&Workload::draw(Scenario::Seven, seed)));
    assert_eq!(first, again);
    assert_ne!(first.trace_hash, other.trace_hash);
}

// The ranges are what lies between the 5th and the 95th of a hundred runs of the original, a little wider.

#[test]
fn a_calm_tree_is_as_good_as_the_original() {
    let figures = runs(Scenario::Five, 20);
    check("b", &figures, |run| run.b_mean_conv, 0.9888..=0.9917);
    check("b whole", &figures, |run| run.b_mean_whole, 0.760..=0.780);
    check("b p5", &figures, |run| run.b_p5_conv, 0.975..=0.984);
    check("error", &figures, |run| run.allocation_error_conv, 0.0083..=0.0103);
    check("calls", &figures, |run| Some(run.calls_per_client_minute), 33.4..=33.6);
    for run in figures {
        assert_eq!(run.below95_total_seconds, Some(0));
        assert!(run.overshoot_seconds <= 8.0 && run.believed_max < 503.0, "{run:?}");
    }
}

#[test]
fn a_spike_costs_as_much_as_in_the_original() {
    let figures = runs(Scenario::Six, 20);
    check("b", &figures, |run| run.b_mean_conv, 0.968..=0.985);
    check("b whole", &figures, |run| run.b_mean_whole, 0.75..=0.77);
    check("b p5", &figures, |run| run.b_p5_conv, 0.88..=0.95);
    check("error", &figures, |run| run.allocation_error_conv, 0.036..=0.050);
    check("below", &figures, |run| Some(run.below95_total_seconds? as f64), 10.0..=18.0);
    check("longest", &figures, |run| Some(run.below95_longest_seconds? as f64), 14.0..=24.0);
    check("too much", &figures, |run| Some(run.overshoot_seconds), 0.0..=4.0);
}

#[test]
fn an_hour_of_faults_costs_as_much_as_in_the_original() {
    let figures = runs(Scenario::Seven, 20);
    check("b", &figures, |run| run.b_mean_conv, 0.937..=0.972);
    check("b whole", &figures, |run| run.b_mean_whole, 0.92..=0.96);
    check("b p5", &figures, |run| run.b_p5_conv, 0.77..=0.88);
    check("error", &figures, |run| run.allocation_error_conv, 0.027..=0.043);
    check("below", &figures, |run| Some(run.below95_total_seconds? as f64), 480.0..=760.0);
    check("longest", &figures, |run| Some(run.below95_longest_seconds? as f64), 70.0..=130.0);
    check("too much", &figures, |run| Some(run.overshoot_seconds), 20.0..=151.0);
    check("calls", &figures, |run| Some(run.calls_per_client_minute), 32.9..=33.5);
}

#[test]
fn nothing_is_given_out_while_all_learn() {
    for (scenario, earliest) in [(Scenario::One, 64), (Scenario::Four, 64), (Scenario::Five, 61)] {
        for seed in 1..=20 {
            let recording = run(&Workload::draw(scenario, seed));
            let first = recording.seconds.iter().position(|second| second.b > 0.0);
            assert!(
                first.is_some_and(|first| (earliest..=70).contains(&first)),
                "{scenario} {seed}: {first:?}"
            );
        }
    }
}

#[test]
fn capacity_survives_the_loss_of_the_root_for_a_while() {
    for seed in 1..=20 {
        let recording = run(&Workload::draw(Scenario::Three, seed));
        let believes = |at: usize| recording.samples[at].totals.believes;
        assert!(believes(150) > 100.0, "seed {seed}: leases last at least 36 s longer");
        assert!(believes(181) < 1e-9, "seed {seed}: and at most 60 s");
    }
}
