//! By which numbers a holder is granted that was forgotten and is heard of again.

use std::time::Duration;

use lessor_proto::message::{Ask, HolderKind, Order};
use lessor_proto::{ClientId, Incarnation, ReportId, Time};
use lessor_server::node::Node;
use lessor_sim::mutation::Mutation;

use super::hall::{self, LEASE, Report};

/// A holder adopts grant after grant, and all of them end while nothing of it comes through. Then its reports come, the
/// oldest first. What it is granted for the last one must be above what it shows there, or it does not adopt that.
pub(crate) fn late_and_forgotten(without: Option<Mutation>) -> Option<String> {
    let mut node = hall::first(without, 10);
    let mut seq = 0;
    for id in 1..=8 {
        seq = ask(&mut node, Time::ZERO + Duration::from_secs(id), id, (id > 1).then_some(seq));
    }
    assert_eq!(seq, 8);
    let later = Time::ZERO + LEASE * 3;
    node.advance(later);
    assert!(node.books(later, &hall::resource()).is_none_or(|books| books.children.is_empty()));
    ask(&mut node, later, 9, Some(2));
    let granted = ask(&mut node, later, 10, Some(8));
    (granted <= 8).then(|| format!("grant {granted} comes after grant 8"))
}

/// One report, which shows the grant that was adopted, and the number of what is granted for it.
fn ask(node: &mut Node, now: Time, id: u64, shown: Option<u64>) -> u64 {
    let report = Report {
        wants: 10.0,
        has: shown.map(|seq| (1, seq, 0)),
        held: shown.map(|_| 0),
        ..Report::default()
    };
    let ask = Ask {
        kind: HolderKind::Client,
        holder: ClientId::new("c", 16).expect("a name"),
        incarnation: Some(Incarnation(1)),
        report_id: Some(ReportId(id)),
        target_epoch: None,
        line: None,
        reports: vec![report.told()],
    };
    let answer = node.ask(now, &ask).expect("it is asked well");
    let Order { seq, .. } = answer.grants[0].order.expect("grants are numbered");
    seq
}
