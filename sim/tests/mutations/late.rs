//! Claims that come late: after a report from before the election, or after another leader of the node has claimed.

use std::time::Duration;

use lessor_proto::message::HolderKind::Node as Below;
use lessor_proto::message::{Ask, Grant, HolderKind};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, Time};
use lessor_server::node::Node;
use lessor_sim::mutation::Mutation;

use super::hall::{self, Report, units};

/// Under the epoch before 6 of 10 units were out to a node below. A report that its leader before sent when it had nothing
/// comes first, and then its leader shows the 6: they are its own, and not lost to it with the rest of what was out.
pub(crate) fn after_an_old_report(without: Option<Mutation>) -> Option<String> {
    let mut above = hall::successor_of_units(without, 10, false);
    hall::ask(&mut above, Time::ZERO, (Below, "n", 1), &Report { wants: 6.0, ..Report::default() });
    ask(&mut above, Time::ZERO, 1, &shown(6));
    let charged = charged(&above, Time::ZERO);
    (charged != units(6)).then(|| format!("6 units are shown, and {charged} charged"))
}

/// Two leaders of a node show what it had under the epoch before: first 4 units, then 6, all of them in use. The second claims
/// nothing any more, so nobody counts its units when what was out before is over. Until then they may be used, and
/// after that the node is granted what is due to it.
pub(crate) fn after_another_leader(without: Option<Mutation>) -> Option<String> {
    let mut above = hall::successor_of_units(without, 10, false);
    hall::ask(&mut above, Time::ZERO, (Below, "n", 1), &shown(4));
    let mut in_use_until = Time::ZERO + hall::LEASE;
    let mut order = (1, 6);
    for second in 1..180 {
        let now = Time::ZERO + Duration::from_secs(second);
        above.advance(now);
        let in_use = if now < in_use_until { 6 } else { 0 };
        if second % 5 == 0 {
            let capacity = if order.0 == 1 { in_use } else { 0 };
            let has = Some((order.0, order.1, capacity));
            let report = Report { wants: 6.0, has, held: Some(in_use), ..Report::default() };
            if let Some(grant) = ask(&mut above, now, second, &report) {
                if in_use > 0 && grant.capacity < units(6) {
                    in_use_until = now + grant.length;
                }
                order = grant.order.map_or(order, |order| (order.epoch.0, order.seq));
            }
        }
        let books = above.books(now, &hall::resource()).expect("it is asked");
        let counted = charged(&above, now).saturating_add(books.ghost);
        if now < in_use_until && counted < units(6) {
            return Some(format!("6 units are in use after {second} s, and {counted} counted"));
        }
    }
    let end = Time::ZERO + Duration::from_secs(180);
    let report = Report { wants: 6.0, has: Some((order.0, order.1, 0)), held: Some(0), ..Report::default() };
    let granted = ask(&mut above, end, 180, &report).map_or(Amount::ZERO, |grant| grant.capacity);
    (granted != units(6)).then(|| format!("{granted} of 6 units are granted when all is over"))
}

fn shown(number: u64) -> Report {
    Report { wants: 6.0, has: Some((1, 5, number)), held: Some(number), ..Report::default() }
}

/// The amount that the node is charged for.
fn charged(above: &Node, now: Time) -> Amount {
    let books = above.books(now, &hall::resource()).expect("it is asked");
    books.children.iter().map(|child| child.charge).fold(Amount::ZERO, Amount::saturating_add)
}

/// The second leader of the node reports.
fn ask(above: &mut Node, now: Time, report_id: u64, report: &Report) -> Option<Grant> {
    let ask = Ask {
        kind: HolderKind::Node,
        holder: ClientId::new("n", 16).expect("a name"),
        incarnation: Some(Incarnation(2)),
        report_id: Some(ReportId(report_id)),
        target_epoch: Some(Epoch(2)),
        line: Some(1),
        reports: vec![report.told()],
    };
    above.ask(now, &ask).expect("it is asked well").grants.pop()
}
