//! A leaf whose template goes away while its lease from above and its holders live: it hands out nothing of that and gives it
//! back, and when the template returns its holders have their shares again.

use std::time::Duration;

use lessor_proto::Amount;
use lessor_server::repository::{SharePolicy, Template};

use super::holders::template;
use super::village::Village;

/// The leaf whose template goes away, and the client below it; another client is below the other leaf.
const LEAF: usize = 1;
const HERE: usize = 0;
const THERE: usize = 1;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Two leaves with a client each that wants 80 of 100.
fn village() -> Village {
    let mut village = Village::new(template(100.0), 2);
    village.come(80.0);
    village.come(80.0);
    village.pass(seconds(20));
    assert_eq!([has(&village, HERE), has(&village, THERE)], [50, 50]);
    village.peak = 0;
    village
}

/// The amount that a client may use at this moment, in units.
fn has(village: &Village, client: usize) -> u64 {
    let allowance = village.clients[client].allowance;
    let capacity = allowance.capacity.filter(|_| village.now < allowance.until);
    let units = capacity.unwrap_or(Amount::ZERO);
    assert_eq!(units, Amount::from_units(units.floor_units()), "shares are whole here");
    units.floor_units()
}

#[test]
fn what_no_template_covers_at_a_leaf_is_taken_back_there_and_others_have_it() {
    let mut village = village();
    village.configure_one(LEAF, None);
    village.pass(seconds(1));
    assert_eq!(has(&village, HERE), 0, "nothing is granted of what no template covers");
    village.pass(seconds(300));
    assert_eq!(
        [has(&village, HERE), has(&village, THERE)],
        [0, 80],
        "the leaf keeps nothing that it does not hand out"
    );
    assert!(village.peak <= 100_000_000, "{} were believed", village.peak);
}

#[test]
fn when_the_lease_from_above_changes_meanwhile_nobody_exceeds_it_and_all_is_as_it_was_when_the_template_is_back()
 {
    let mut village = village();
    village.configure_one(LEAF, None);
    village.pass(seconds(30));
    // The root and the other leaf have less, and then more than before.
    for (capacity, there) in [(60_u32, 60), (120, 80)] {
        [0, 2]
            .into_iter()
            .for_each(|place| village.configure_one(place, Some(template(f64::from(capacity)))));
        village.pass(seconds(200));
        assert_eq!([has(&village, HERE), has(&village, THERE)], [0, there], "of {capacity}");
        village.peak = 0;
        village.pass(seconds(100));
        assert!(
            village.peak <= u64::from(capacity) * 1_000_000,
            "{} of {capacity} were believed",
            village.peak
        );
    }
    village.configure_one(LEAF, Some(template(120.0)));
    village.pass(seconds(20));
    assert_eq!([has(&village, HERE), has(&village, THERE)], [60, 60], "both have their shares");
    assert!(village.peak <= 120_000_000, "{} were believed", village.peak);
}

#[test]
fn a_template_that_is_back_at_once_costs_nothing() {
    let mut village = village();
    village.configure_one(LEAF, None);
    village.configure_one(LEAF, Some(template(100.0)));
    village.pass(Duration::from_millis(500));
    assert_eq!([has(&village, HERE), has(&village, THERE)], [50, 50], "the lease from above had not changed");
    assert!(village.peak <= 100_000_000, "{} were believed", village.peak);
}

#[test]
fn a_leaf_whose_template_comes_to_limit_the_sum_asks_the_node_above() {
    let unlimited = Template { policy: SharePolicy::None, ..template(100.0) };
    let mut village = Village::new(unlimited, 2);
    village.come(80.0);
    village.come(80.0);
    village.pass(seconds(20));
    assert_eq!([has(&village, HERE), has(&village, THERE)], [80, 80], "nothing limits the sum");
    village.configure(template(100.0));
    village.pass(seconds(300));
    assert_eq!([has(&village, HERE), has(&village, THERE)], [50, 50]);
    village.peak = 0;
    village.pass(seconds(100));
    assert!(village.peak <= 100_000_000, "{} were believed", village.peak);
}
