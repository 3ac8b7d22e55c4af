//! Windows: never more uses than the limit in any, and nearly all of it once there is demand.

use std::time::Duration;

use lessor_sim::windows::{WindowsReport, WindowsRun, WindowsTraffic};

/// Plays a run with some seeds: no window has more uses than the limit.
fn play(run: &WindowsRun) -> Vec<WindowsReport> {
    let reports: Vec<WindowsReport> = (1..4).map(|seed| run.play(seed)).collect();
    for report in &reports {
        println!("{} below {} leaves: {report:?}", run.traffic, run.leaves);
        assert_eq!(report.over, 0, "{report:?}");
        assert!(report.most <= u64::from(run.limit) && report.granted > 0, "{report:?}");
    }
    reports
}

#[test]
fn bursts_at_ten_holders_at_once_are_granted_all_of_the_limit_in_each_window() {
    let run = WindowsRun::of(100, 60, WindowsTraffic::Bursts);
    for report in play(&run) {
        assert_eq!((report.most, report.least, report.wrongly_refused), (100, 100, 0), "{report:?}");
    }
    // The ways to the root are longer there.
    for report in play(&WindowsRun { leaves: 3, waits: Duration::from_millis(250), ..run }) {
        assert!(report.least >= 99, "{report:?}");
    }
}

#[test]
fn where_more_is_asked_for_than_there_is_nearly_all_of_it_is_granted() {
    for traffic in [WindowsTraffic::Even(200), WindowsTraffic::One(200), WindowsTraffic::Moving(200)] {
        for report in play(&WindowsRun::of(100, 60, traffic)) {
            assert!(report.share >= 0.985 && report.least >= 90, "{report:?}");
            assert!(report.wrong() < 0.15 && report.messages_a_use() < 10.0, "{report:?}");
        }
    }
    // Many at once at each: in each full window.
    for report in play(&WindowsRun::of(100, 60, WindowsTraffic::Even(1_000))) {
        assert!(report.share >= 0.99 && report.least >= 99, "{report:?}");
    }
}

#[test]
fn a_limit_of_thousands_a_second_is_kept_nearly_without_messages() {
    for report in play(&WindowsRun::of(10_000, 1, WindowsTraffic::Even(90))) {
        assert!(report.at_once * 1_000 >= report.granted * 999, "{report:?}");
        assert!(report.wrong() < 0.001 && report.messages_a_use() < 0.5, "{report:?}");
    }
}

#[test]
fn five_an_hour_go_to_whoever_asks() {
    for report in play(&WindowsRun::of(5, 3_600, WindowsTraffic::Even(200))) {
        assert_eq!(report.wrongly_refused, 0, "{report:?}");
    }
}

#[test]
fn holders_that_die_are_cut_off_or_leave_take_nothing_along_that_counts_twice() {
    let run =
        WindowsRun { dying: 2, cut: 2, leaving: 2, ..WindowsRun::of(100, 60, WindowsTraffic::Even(400)) };
    for leaves in [0, 3] {
        for report in play(&WindowsRun { leaves, ..run }) {
            // What is lost lies with those until their leases end.
            assert!(report.share > 0.8, "{report:?}");
        }
    }
}

/// The simulations in which everything goes wrong.
const SEEDS: u64 = 60;

#[test]
fn whatever_goes_wrong_no_window_has_more_uses_than_the_limit_and_then_nearly_all_are_granted_again() {
    let mut faults = 0;
    for seed in 1..=SEEDS {
        let run = WindowsRun::drawn(seed);
        let report = run.play(seed);
        assert_eq!(report.over, 0, "seed {seed}: {report:?}");
        assert!(report.last * 100 >= u64::from(run.limit) * 95, "seed {seed}: {report:?}");
        faults += report.faults;
    }
    assert!(faults > SEEDS * 20, "{faults} faults");
}
