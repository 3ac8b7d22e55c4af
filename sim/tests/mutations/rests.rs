//! A leader under whose predecessor everything was out, some of it left from before that one and soon over.
//!
//! Capacity is 10, leases last 60 s, and what was left from before may last for 20 s more. `kept` has 6 of the last leader and is
//! not heard of, `back` has 4 of the one before.

use std::time::Duration;

use lessor_proto::message::HolderKind;
use lessor_proto::{Amount, Epoch, Time};
use lessor_server::node::{Node, NodeConfig};
use lessor_server::record::{Record, RestOver};
use lessor_sim::mutation::Mutation;

use super::hall::{LEASE, Report, ask, repository, resource, units};

fn lead(without: Option<Mutation>) -> Node {
    let record = Record {
        epoch: Epoch(2),
        marks: [(resource(), units(10))].into(),
        rests: [(resource(), units(4))].into(),
        rest_over: RestOver { lease: Duration::from_secs(20), safe_lease: Duration::ZERO },
        longest_lease: LEASE,
        ..Record::default()
    };
    let rules = without.map(Mutation::node).unwrap_or_default();
    let config =
        NodeConfig { record: Some(record), rules, trust_claims: true, ..NodeConfig::new("root", Epoch(3)) };
    Node::new(Time::ZERO, config, repository(10))
}

fn granted(node: &mut Node, second: u64, name: &str, has: Option<(u64, u64, u64)>) -> Amount {
    let now = Time::ZERO + Duration::from_secs(second);
    ask(node, now, (HolderKind::Client, name, 1), &Report { wants: 4.0, has, ..Report::default() })
}

/// One of before the last leader claims, and a newcomer asks when what was left from before is over. Then all that is not known
/// to be with anybody is of the last leader.
pub(crate) fn claimed_from_the_rest(without: Option<Mutation>) -> Option<String> {
    let mut node = lead(without);
    let back = granted(&mut node, 1, "back", Some((1, 1, 4)));
    assert_eq!(back, units(4), "who shows a lease keeps it");
    let newcomer = granted(&mut node, 30, "new", None);
    (newcomer > Amount::ZERO).then(|| format!("{newcomer} are granted beside 6 and 4 of 10"))
}

/// Nobody of before the last leader is heard of, and a newcomer asks before and after that is over.
#[test]
fn what_was_left_from_before_is_free_when_that_is_over() {
    let mut node = lead(None);
    assert_eq!(granted(&mut node, 1, "kept", Some((2, 1, 4))), units(4));
    assert_eq!(granted(&mut node, 19, "new", None), Amount::ZERO);
    assert_eq!(granted(&mut node, 21, "new", None), units(4));
}
