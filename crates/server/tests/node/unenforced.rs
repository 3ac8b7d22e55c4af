//! Limits that are tried: what clients count of what they let pass goes up the tree, and each unit is counted once.

use std::time::Duration;

use lessor_proto::message::{Ask, Band, HolderKind, Report, Unenforced};
use lessor_proto::{Incarnation, ReportId};
use lessor_server::repository::{Fraction, Template};
use lessor_sim::net::Endpoint;

use super::holders::{client, resource, template};
use super::village::Village;

/// More than a heartbeat of a client, and one of its node.
const SAID: Duration = Duration::from_secs(30);

/// A root and so many leaves, where a limit is tried, and clients that want something of it.
fn village(leaves: usize, clients: usize) -> Village {
    let mut village = Village::new(Template { enforce: Fraction::NONE, ..template(100.0) }, leaves);
    (0..clients).for_each(|_| _ = village.come(10.0));
    village.pass(SAID);
    assert!(village.clients.iter().all(|client| client.allowance.unenforced));
    village
}

fn units(asked: u64, passed: u64) -> Unenforced {
    Unenforced { asked, passed, silent: 0 }
}

/// The units that were said at a place.
fn heard(village: &Village, place: usize) -> Unenforced {
    let row = village.row(place).expect("it leads, and somebody holds something");
    Unenforced {
        asked: row.resource.unenforced_asked,
        passed: row.resource.unenforced_passed,
        silent: row.resource.unenforced_silent,
    }
}

/// The program of a client has counted so much in all.
fn counts(village: &mut Village, index: usize, asked: u64, passed: u64) {
    village.net.sessions[index].set_unenforced(&resource(), units(asked, passed));
}

#[test]
fn a_leaf_says_the_sum_of_its_clients_and_the_root_hears_of_the_whole_tree() {
    let mut village = village(2, 4);
    assert_eq!([0, 1, 2].map(|place| heard(&village, place)), [units(0, 0); 3]);
    for (index, (asked, passed)) in [(100, 7), (50, 0), (3, 3), (1_000, 10)].into_iter().enumerate() {
        counts(&mut village, index, asked / 2, passed / 2);
        village.pass(SAID);
        counts(&mut village, index, asked, passed);
    }
    village.pass(SAID);
    let all = [units(1_153, 20), units(103, 10), units(1_050, 10)];
    assert_eq!([0, 1, 2].map(|place| heard(&village, place)), all);
    village.pass(10 * SAID);
    assert_eq!([0, 1, 2].map(|place| heard(&village, place)), all, "each is said once");
    // It is kept to again: what was counted stays.
    village.configure(template(100.0));
    village.pass(SAID);
    assert_eq!([0, 1, 2].map(|place| heard(&village, place)), all);
}

#[test]
fn a_client_that_begins_anew_and_a_leader_that_is_succeeded_are_not_counted_twice() {
    let mut village = village(1, 2);
    counts(&mut village, 0, 100, 7);
    counts(&mut village, 1, 10, 1);
    village.pass(SAID);
    assert_eq!(heard(&village, 0), units(110, 8));
    // The process ends, and another begins under its name: it counts from nothing.
    village.cut_off(Endpoint::Holder(0), true);
    let again = village.come_as("c0", 8, 10.0);
    counts(&mut village, again, 5, 2);
    village.pass(SAID);
    assert_eq!([0, 1].map(|place| heard(&village, place)), [units(115, 10); 2]);
    // Another opening of the resource in the same process does so as well.
    counts(&mut village, 1, 4, 4);
    village.pass(SAID);
    assert_eq!(heard(&village, 0), units(119, 14));
    village.elect(1);
    counts(&mut village, 1, 24, 5);
    village.pass(4 * SAID);
    assert_eq!(heard(&village, 1), units(20, 1), "the new leader hears what the last one has not heard");
    assert_eq!(heard(&village, 0), units(139, 15), "and the root goes on from what it has");
    village.elect(0);
    village.pass(4 * SAID);
    counts(&mut village, 1, 25, 5);
    village.pass(SAID);
    assert_eq!((heard(&village, 0), heard(&village, 1)), (units(1, 0), units(21, 1)));
}

#[test]
fn who_has_never_said_that_it_counts_is_told_apart() {
    let mut village = village(1, 2);
    let now = village.now;
    // A client of an earlier version, and one that says what cannot be.
    let ask = |name: &str, number, unenforced| Ask {
        kind: HolderKind::Client,
        holder: client(name),
        incarnation: Some(Incarnation(3)),
        report_id: Some(ReportId(number)),
        target_epoch: None,
        line: None,
        reports: vec![Report {
            unenforced,
            ..Report::new(resource(), [Band { priority: 0, subclients: 1, wants: 1.0 }])
        }],
    };
    let leaf = village.net.net.node_mut(1).expect("it leads");
    for number in 1..=2 {
        leaf.ask(now, &ask("old", number, None)).expect("it is answered");
    }
    let most = units(u64::MAX, u64::MAX);
    for number in [1, 2, 2, 1] {
        leaf.ask(now, &ask("liar", number, Some(most))).expect("it is answered");
    }
    assert_eq!(heard(&village, 1), Unenforced { silent: 1, ..most });
    village.pass(Duration::from_secs(10));
    assert_eq!(heard(&village, 0).silent, 1, "the root knows that somebody below is silent");
    // It is forgotten, and is silent no more.
    village.pass(10 * SAID);
    assert_eq!([0, 1].map(|place| heard(&village, place).silent), [0, 0]);
    let leaf = village.net.net.node_mut(1).expect("it leads");
    leaf.ask(village.now, &ask("old", 1, None)).expect("it is answered");
    assert_eq!(heard(&village, 1).silent, 1);
    village.configure(template(100.0));
    assert_eq!(heard(&village, 1).silent, 0, "it keeps to its lease");
    village.configure(Template { enforce: Fraction::NONE, ..template(100.0) });
    assert_eq!(heard(&village, 1).silent, 1);
}
