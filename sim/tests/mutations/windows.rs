//! Windows that have more uses than the limit, once a rule is taken out.

use std::time::Duration;

use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::window::ExactWindow;
use lessor_proto::message::UseWindow;
use lessor_proto::{Amount, Drift, Time};
use lessor_sim::mutation::Mutation;
use lessor_sim::windows::{WindowsRun, WindowsTraffic};

/// The fault of a run: more uses than the limit.
fn over(run: &WindowsRun, without: Option<Mutation>) -> Option<String> {
    let rules = without.map(Mutation::client).unwrap_or_default();
    let grantors = without.map(Mutation::node).unwrap_or_default();
    let report = WindowsRun { rules, grantors, ..*run }.play(1);
    assert!(report.granted > 1_000, "{report:?}");
    (report.over > 0).then(|| format!("{} uses in a window of {}", report.most, run.limit))
}

/// A few holders, and everything goes wrong.
pub(crate) fn in_which_all_goes_wrong(seed: u64, without: Mutation) -> Option<String> {
    let run = WindowsRun { rules: without.client(), grantors: without.node(), ..WindowsRun::drawn(seed) };
    let report = run.play(seed);
    (report.over > 0).then(|| format!("{} uses in a window of {}", report.most, run.limit))
}

fn run(traffic: WindowsTraffic) -> WindowsRun {
    WindowsRun::of(100, 60, traffic)
}

/// Two of ten holders are cut off, and requests go on coming to them.
pub(crate) fn of_one_that_is_cut_off(without: Option<Mutation>) -> Option<String> {
    over(&WindowsRun { cut: 2, ..run(WindowsTraffic::Even(400)) }, without)
}

/// All units are spent, and again as soon as they are free, by holders of which half count too fast.
pub(crate) fn on_fast_clocks(without: Option<Mutation>) -> Option<String> {
    over(&run(WindowsTraffic::Even(400)), without)
}

/// Four of ten holders leave with all that they have.
pub(crate) fn of_some_who_leave(without: Option<Mutation>) -> Option<String> {
    over(&WindowsRun { leaving: 4, ..run(WindowsTraffic::Even(400)) }, without)
}

/// Demand moves, and what has been spent is recalled from where it was.
pub(crate) fn that_are_recalled(without: Option<Mutation>) -> Option<String> {
    over(&run(WindowsTraffic::Moving(400)), without)
}

/// Of uses at 0 and 50 s the second one is undone.
pub(crate) fn of_which_one_is_undone(without: Option<Mutation>) -> Option<String> {
    let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
    let rules = without.map(Mutation::client).unwrap_or_default();
    let window = ExactWindow::with_rules(Drift::DEFAULT, rules, Time::ZERO);
    let lease = Allowance::new(Some(Amount::from_units(2)), at(1_000));
    let length = Duration::from_secs(60);
    window.allow(Time::ZERO, Allowance { window: Some(UseWindow { length, limit: 2 }), ..lease });
    // The one at 0 is undone, and the one at 50 counts.
    for second in [0, 50] {
        window.try_acquire(1, || at(second)).expect("it fits");
    }
    assert_eq!(window.refund(1, at(51)), 1);
    let granted = (61..110).filter(|&second| window.try_acquire(1, || at(second)).is_ok()).count();
    (granted > 1).then(|| format!("{granted} uses beside the one at 50 s, of 2 in all"))
}
