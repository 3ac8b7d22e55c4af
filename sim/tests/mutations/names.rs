//! A name that is given to two nodes.

use lessor_proto::Time;
use lessor_proto::message::{Ask, HolderKind};
use lessor_proto::{Amount, ClientId, Incarnation, ReportId};
use lessor_server::node::Node;
use lessor_sim::mutation::Mutation;

use super::hall::{self, Report, units};

/// Two nodes of one name, neither of which succeeds the other, want 8 of 10 each. Each goes on with what it was granted
/// last; the one that came first asks again at the end.
pub(crate) fn two_of_one_name(without: Option<Mutation>) -> Option<String> {
    let mut node = hall::first(without, 10);
    let wish = Report { wants: 8.0, ..Report::default() };
    let elder = ask(&mut node, 1, 1, &wish);
    let younger = ask(&mut node, 2, 1, &wish);
    assert!(elder > Amount::ZERO, "the first to come is served");
    let all = elder.saturating_add(younger);
    if all > units(10) {
        return Some(format!("{all} of 10 are in use by two of one name"));
    }
    // The elder gives back what is too much, and then both are served.
    let shown = Report { has: Some((1, 2, 5)), held: Some(5), ..wish };
    let cut = ask(&mut node, 1, 2, &wish);
    let elder = ask(&mut node, 1, 3, &shown);
    let younger = ask(&mut node, 2, 2, &wish);
    assert_eq!((cut, elder, younger), (units(5), units(5), units(5)), "each has its share");
    None
}

fn ask(node: &mut Node, incarnation: u64, report: u64, wish: &Report) -> Amount {
    let ask = Ask {
        kind: HolderKind::Node,
        holder: ClientId::new("paris", 16).expect("a name"),
        incarnation: Some(Incarnation(incarnation)),
        report_id: Some(ReportId(report)),
        target_epoch: None,
        line: None,
        reports: vec![wish.told()],
    };
    let answer = node.ask(Time::ZERO, &ask).expect("it is asked well");
    answer.grants.first().map_or(Amount::ZERO, |grant| grant.capacity)
}
