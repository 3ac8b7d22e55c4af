//! A kind that is changed while something is out.

use std::time::Duration;

use lessor_proto::message::{Ask, HolderKind};
use lessor_proto::{Amount, ClientId, Time};
use lessor_server::node::Node;
use lessor_server::repository::{Kind, Repository, Template};
use lessor_sim::mutation::Mutation;

use super::hall::{self, LEASE, Report, units};

/// Of a rate of 10 one holder has 8 and is not heard of any more; then it is a gauge of 10 units, of which another wants 5.
/// Nothing says how many units 8 a second are.
pub(crate) fn a_rate_that_becomes_a_gauge(without: Option<Mutation>) -> Option<String> {
    let mut node = hall::first(without, 10);
    let rate = ask(&mut node, Time::ZERO, "rate", &Report { wants: 8.0, ..Report::default() }, false);
    assert_eq!(rate, units(8), "the first to come is served");
    let repository = node.repository().templates()[0].clone();
    let gauge = Template { kind: Kind::Gauge, ..Template::clone(&repository) };
    node.reload(Time::ZERO, Repository::new(vec![gauge]).expect("it holds together"));
    let wish = Report { wants: 5.0, ..Report::default() };
    let early = ask(&mut node, Time::ZERO + LEASE / 2, "gauge", &wish, true);
    let late = ask(&mut node, Time::ZERO + LEASE + Duration::from_secs(2), "gauge", &wish, true);
    assert_eq!(late, units(5), "nothing of the rate is out any more");
    (early > Amount::ZERO).then(|| format!("{early} units are granted while 8 a second are out"))
}

pub(crate) fn ask(node: &mut Node, now: Time, name: &str, wish: &Report, integer: bool) -> Amount {
    let ask = Ask {
        kind: HolderKind::Client,
        holder: ClientId::new(name, 16).expect("a name"),
        incarnation: Some(1),
        report_id: Some(1 + now.as_nanos()),
        target_epoch: None,
        line: None,
        reports: vec![lessor_proto::message::Report { integer: Some(integer), ..wish.told() }],
    };
    let answer = node.ask(now, &ask).expect("it is asked well");
    answer.grants.first().map_or(Amount::ZERO, |grant| grant.capacity)
}
