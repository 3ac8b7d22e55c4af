//! Clients that say nothing of what they want, held against the table of what may be lost of a capacity that they share by leases,
//! and of what that may cost.

use lessor_sim::spare::{SpareRun, SpareTraffic};

/// The greatest part of the requests of each traffic that may be lost, and the most grants a second that it may cost, in ten seconds.
struct Bound {
    clients: usize,
    leaves: usize,
    of: [(SpareTraffic, f64, u64); 5],
}

fn check(bound: &Bound) {
    let Bound { clients, leaves, of } = *bound;
    for (traffic, most_lost, most_grants) in of {
        let report = SpareRun { seconds: 10, ..SpareRun::of(clients, traffic).below(leaves) }.play(1);
        let (lost, grants) = (report.lost(), report.grants / 10);
        println!(
            "{clients} {leaves} {traffic}: {:.2} %, {grants} grants a second, {} in all of what was had",
            lost * 100.0,
            report.repeated
        );
        assert_eq!(report.over, 0, "{clients} {traffic}: {report:?}");
        // A leaf's lease may be renewed with what it had while those below it take what it has.
        let most_repeated = if leaves > 0 { report.grants / 50 } else { 0 };
        assert!(report.repeated <= most_repeated, "{clients} {traffic}: {report:?}");
        assert!(lost <= most_lost, "{clients} {traffic}: {lost} is lost; {report:?}");
        assert!(grants <= most_grants, "{clients} {traffic}: {grants} grants a second; {report:?}");
    }
}

#[test]
fn a_hundred_clients_lose_no_more_than_was_simulated() {
    check(&Bound {
        clients: 100,
        leaves: 0,
        of: [
            (SpareTraffic::Poisson, 0.016, 47),
            (SpareTraffic::OnOff, 0.095, 138),
            (SpareTraffic::Diurnal, 0.022, 59),
            (SpareTraffic::Hot, 0.12, 80),
            (SpareTraffic::Wake, 0.10, 600),
        ],
    });
}

#[test]
fn a_thousand_clients_lose_no_more_than_was_simulated() {
    check(&Bound {
        clients: 1_000,
        leaves: 0,
        of: [
            (SpareTraffic::Poisson, 0.016, 434),
            (SpareTraffic::OnOff, 0.061, 883),
            (SpareTraffic::Diurnal, 0.02, 548),
            (SpareTraffic::Hot, 0.12, 650),
            (SpareTraffic::Wake, 0.10, 2_255),
        ],
    });
}

#[test]
fn a_thousand_clients_of_ten_leaves_lose_no_more_than_was_simulated() {
    check(&Bound {
        clients: 1_000,
        leaves: 10,
        of: [
            (SpareTraffic::Poisson, 0.028, 526),
            (SpareTraffic::OnOff, 0.064, 2_111),
            (SpareTraffic::Diurnal, 0.028, 2_000),
            (SpareTraffic::Hot, 0.14, 3_000),
            (SpareTraffic::Wake, 0.11, 8_000),
        ],
    });
}
