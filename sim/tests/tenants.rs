//! Clients that tell each other what a domain does keep to its tiers nearly as one who is asked for every hit, and refuse
//! nothing without a reason. Those that do not tell each other are far from it.

use std::time::Duration;

use lessor_sim::tenants::{Ask, TenantsReport, TenantsRun, TenantsTraffic, TenantsWay};

/// The part that clients of different leaves grant beyond one who is asked for every hit, in trees of two levels
/// and of three.
const MOST_OVER: [f64; 2] = [0.06, 0.08];

const SHARED: [TenantsWay; 2] = [TenantsWay::Shared(Ask::AtOnce), TenantsWay::Shared(Ask::Confirmed)];

/// The numbers of clients below leaves; sixteen take minutes where nothing is optimised.
const BELOW_LEAVES: &[usize] = if cfg!(debug_assertions) { &[4] } else { &[4, 16] };

/// Two minutes of each traffic and two seeds, with four clients and with sixteen.
fn reports(way: TenantsWay) -> impl Iterator<Item = (TenantsRun, TenantsReport)> {
    [4, 16].into_iter().flat_map(move |clients| {
        TenantsTraffic::ALL.into_iter().map(move |traffic| {
            let run = TenantsRun { clients, traffic, way, seconds: 120, ..TenantsRun::default() };
            let report = run.play(1).plus(run.play(2));
            println!("{way}, {clients} clients, {traffic}: {:.4} over, {report:?}", report.over());
            (run, report)
        })
    })
}

/// Some simulations whose server is lost in second 60, and another one comes a second later.
fn lost(way: TenantsWay, seconds: u64) -> TenantsReport {
    let run = TenantsRun { way, seconds, lost_at: Some(Duration::from_secs(60)), ..TenantsRun::default() };
    (1..=4).map(|seed| run.play(seed)).fold(TenantsReport::default(), TenantsReport::plus)
}

#[test]
fn clients_that_tell_each_other_keep_to_the_tiers_together() {
    for (run, report) in SHARED.into_iter().flat_map(reports) {
        assert!(report.refused > 500, "{run:?}: there is something to refuse: {report:?}");
        assert_eq!(report.unexcused, 0, "{run:?}: {report:?}");
        assert!(report.over() < 0.06, "{run:?}: {report:?}");
        assert_eq!(report.unheard, 0, "{run:?}: {report:?}");
        assert!(report.reports > 0 && report.news > 0, "{run:?}: {report:?}");
    }
}

#[test]
fn clients_that_know_nothing_of_each_other_are_far_from_it() {
    for (run, report) in reports(TenantsWay::Alone) {
        assert_eq!((report.reports, report.news), (0, 0), "{run:?}: {report:?}");
        if run.traffic == TenantsTraffic::Uniform {
            assert!(report.over() > 0.3, "{run:?}: {report:?}");
        }
    }
}

#[test]
fn clients_find_each_other_again_when_a_server_is_back() {
    for way in SHARED {
        let [before, until, whole] = [60, 65, 90].map(|seconds| lost(way, seconds));
        println!("{way}: {before:?}\n{until:?}\n{whole:?}");
        assert!(whole.over() < 0.06, "{way}: {whole:?}");
        assert_eq!(whole.unexcused, 0, "{way}: {whole:?}");
        assert_eq!(before.unheard, 0, "{way}: {before:?}");
        assert!(until.unheard > 0, "{way}: {until:?}");
        // The same requests come until second 65, so what is more in the longer run was later.
        assert_eq!(whole.unheard, until.unheard, "{way}");
        assert!(whole.news > until.news, "{way}: {until:?} {whole:?}");
    }
}

/// The last of two leaves is lost in second 60, and another one begins in its place a second later: its clients say everything
/// anew, and what the one before had said of them counts no more.
#[test]
fn clients_of_different_leaves_find_each_other_again_when_a_leaf_is_back() {
    for way in SHARED {
        let lost_at = Some(Duration::from_secs(60));
        let run = TenantsRun { levels: 2, way, seconds: 90, lost_at, ..TenantsRun::default() };
        let report = (1..=4).map(|seed| run.play(seed)).fold(TenantsReport::default(), TenantsReport::plus);
        println!("{way}: {:.4} over, {report:?}", report.over());
        assert!(report.over() < MOST_OVER[0], "{way}: {report:?}");
        assert_eq!(report.unexcused, 0, "{way}: {report:?}");
        assert!(report.unheard > 0, "{way}: the leaf is missed: {report:?}");
    }
}

/// Clients of different leaves, below one root or with nodes between.
#[test]
fn clients_of_different_leaves_keep_to_the_tiers_together() {
    let deepest = if cfg!(debug_assertions) { 2 } else { 3 };
    for (levels, way) in (2..=deepest).flat_map(|levels| SHARED.map(|way| (levels, way))) {
        for (clients, traffic) in
            BELOW_LEAVES.iter().flat_map(|&clients| TenantsTraffic::ALL.map(|each| (clients, each)))
        {
            let run = TenantsRun { clients, levels, traffic, way, seconds: 120, ..TenantsRun::default() };
            let report = run.play(1).plus(run.play(2));
            println!(
                "{way}, {levels} levels, {clients} clients, {traffic}: {:.4} over, {report:?}",
                report.over()
            );
            assert!(report.refused > 500, "{run:?}: there is something to refuse: {report:?}");
            assert_eq!(report.unexcused, 0, "{run:?}: {report:?}");
            assert!(report.over() < MOST_OVER[levels as usize - 2], "{run:?}: {report:?}");
            assert_eq!(report.unheard, 0, "{run:?}: {report:?}");
        }
    }
}
