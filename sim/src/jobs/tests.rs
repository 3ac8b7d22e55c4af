//! Holders at one server and at several.

use super::*;

#[test]
fn who_waits_is_told_within_two_trips_at_one_server_and_below_leaves() {
    for (holders, leaves) in [(2, 0), (5, 0), (2, 2), (5, 3)] {
        let run = JobsRun::of(holders, leaves);
        for seed in 0..2 {
            let report = run.play(seed);
            assert_eq!(report.fault, None, "{holders} below {leaves}, seed {seed}: {report:?}");
            assert!(report.told > 30, "{report:?}");
            assert!(report.longest <= run.two_trips() && report.longest > run.way, "{report:?}");
            // Each wait is said once and answered once, and each of the others is asked once, on each level.
            let each = 2 * (holders as u64) * if leaves > 0 { 2 } else { 1 };
            assert!(report.messages <= (report.jobs + report.told) * each, "{report:?}");
        }
    }
}

#[test]
fn when_everything_goes_wrong_nobody_is_told_of_what_was_not_done_and_then_all_are_again() {
    let reports: Vec<JobsReport> = (0..12).map(|seed| JobsRun::drawn(seed).play(seed)).collect();
    for (seed, report) in reports.iter().enumerate() {
        assert_eq!(report.fault, None, "seed {seed}: {report:?}");
    }
    assert!(reports.iter().all(|report| report.told > 30 && report.faults > 3), "{reports:?}");
}
