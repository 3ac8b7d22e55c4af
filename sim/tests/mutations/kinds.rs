//! A kind that is changed while something is out.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{self, Action, Session, SessionConfig};
use lessor_client::{Failure, Kind as HeldAs};
use lessor_proto::message::{Answer, Ask, Grant, HolderKind};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, ResourceId, Time};
use lessor_server::node::{Node, NodeConfig};
use lessor_server::record::Record;
use lessor_server::repository::{Kind, Repository, Template};
use lessor_sim::mutation::Mutation;

use super::hall::{self, LEASE, Report, units};
use super::units::grant;

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
        incarnation: Some(Incarnation(1)),
        report_id: Some(ReportId(1 + now.as_nanos())),
        target_epoch: None,
        line: None,
        reports: vec![lessor_proto::message::Report { integer: Some(integer), ..wish.told() }],
    };
    let answer = node.ask(now, &ask).expect("it is asked well");
    answer.grants.first().map_or(Amount::ZERO, |grant| grant.capacity)
}

/// The last leader left 8 a second of 10, by its record, and the next one takes it for a gauge of 10 units, of which somebody
/// wants 5.
pub(crate) fn a_gauge_that_was_a_rate(without: Option<Mutation>) -> Option<String> {
    let marks = [(hall::resource(), units(8))].into();
    let kinds = [(hall::resource(), Kind::Rate)].into();
    let mut node = gauge(without, Record { marks, kinds, longest_lease: LEASE, ..Record::default() });
    let wish = Report { wants: 5.0, ..Report::default() };
    let early = ask_written(&mut node, Time::ZERO + LEASE / 2, &wish, &mut BTreeMap::new());
    let late =
        ask_written(&mut node, Time::ZERO + LEASE + Duration::from_secs(2), &wish, &mut BTreeMap::new());
    assert_eq!(late, units(5), "nothing of the rate is out any more");
    (early > Amount::ZERO).then(|| format!("{early} units are granted while 8 a second may be out"))
}

/// As soon as the rate that the last leader left is over, somebody is granted units of the gauge: what does the record say
/// then of the kind of what is out?
pub(crate) fn units_under_the_mark_of_a_rate(without: Option<Mutation>) -> Option<String> {
    let marks = [(hall::resource(), units(8))].into();
    let kinds: BTreeMap<ResourceId, Kind> = [(hall::resource(), Kind::Rate)].into();
    let record = Record { marks, kinds: kinds.clone(), longest_lease: LEASE, ..Record::default() };
    let (mut node, mut written) = (gauge(without, record), kinds);
    let (wish, over) =
        (Report { wants: 5.0, ..Report::default() }, Time::ZERO + LEASE + Duration::from_secs(2));
    // Before it is written how much of the mark is left from before.
    ask_written(&mut node, Time::ZERO + Duration::from_secs(1), &wish, &mut written);
    let early = ask(&mut node, over, "gauge", &wish, true);
    let late = ask_written(&mut node, over, &wish, &mut written);
    assert_eq!(late, units(5), "it is served when that is written");
    let said = written.get(&hall::resource());
    let is_wrong = early > Amount::ZERO || said != Some(&Kind::Gauge);
    is_wrong
        .then(|| format!("{early} units were granted at once, and {late} are out: the record says {said:?}"))
}

/// A holder has 10 units of a gauge, of which 5 are in flight. Then the template says a rate, and there is another server, which
/// remembers nothing and takes it for a rate from the start. Units go on for as long as the lease is renewed, as those below have
/// leases that end five seconds before it does, and their holder wants nothing of the rate; another wants all 10 a second.
pub(crate) fn units_told_as_a_rate(without: Option<Mutation>) -> Option<String> {
    let second = |second| Time::ZERO + Duration::from_secs(second);
    let mut above = hall::learning(without);
    let rules = without.map(Mutation::client).unwrap_or_default();
    let name = ClientId::new("paris", 16).expect("a name");
    let config = SessionConfig {
        kind: HolderKind::Node,
        rules,
        ..SessionConfig::new(name, Incarnation(1), vec!["above".into()])
    };
    let mut session = Session::new(config);
    session.add(Time::ZERO, hall::resource(), HoldingConfig::new(HeldAs::Gauge, 10.0, 0));
    let units_before = Grant { generation: Some(Grant::GAUGE), ..grant(&hall::resource(), 10) };
    let (mut ends, mut in_flight, mut others) = (Time::ZERO, Amount::ZERO, Amount::ZERO);
    for at in 0..150 {
        let now = second(at);
        match at {
            0 => {}
            1 => in_flight = units(5),
            _ if now >= ends => in_flight = Amount::ZERO,
            _ => {}
        }
        session.set_in_use(now, &hall::resource(), in_flight);
        if at == 1 {
            session.add(now, hall::resource(), HoldingConfig::new(HeldAs::Rate, 0.0, 0));
        }
        while let Some(action) = session.poll(now) {
            let Action::Ask { id, ask, .. } = action else { continue };
            let answer = match at {
                0 => Ok(Answer { grants: vec![units_before.clone()], ..Answer::default() }),
                _ => above.ask(now, &ask),
            };
            let told = answer.iter().flat_map(|answer| &answer.grants);
            ends = told.map(|grant| now + (grant.length - Duration::from_secs(5))).fold(ends, Time::max);
            let heard = match answer {
                Ok(answer) => session::Event::Answered { id, answer },
                Err(refusal) => {
                    session::Event::Failed { id, failure: Failure::Refused(format!("{refusal:?}")) }
                }
            };
            session.handle(now, heard);
        }
        if at % 5 == 1 {
            others = ask(&mut above, now, "other", &Report { wants: 10.0, ..Report::default() }, false);
        }
        if others.saturating_add(in_flight) > units(10) {
            return Some(format!(
                "{in_flight} units are in flight after {at} s, and {others} a second granted"
            ));
        }
    }
    assert_eq!(others, units(10), "units that nobody renews end with their lease");
    None
}

fn gauge(without: Option<Mutation>, record: Record) -> Node {
    let rules = without.map(Mutation::node).unwrap_or_default();
    let config = NodeConfig { record: Some(record), rules, marks: true, ..NodeConfig::new("root", Epoch(2)) };
    let template = hall::repository(10).templates()[0].clone();
    let gauge = Template { kind: Kind::Gauge, ..Template::clone(&template) };
    Node::new(Time::ZERO, config, Repository::new(vec![gauge]).expect("it holds together"))
}

/// Asks, lets all be written that is to be, and asks again. The kinds that the record says are noted in `written`.
fn ask_written(
    node: &mut Node,
    now: Time,
    wish: &Report,
    written: &mut BTreeMap<ResourceId, Kind>,
) -> Amount {
    ask(node, now, "gauge", wish, true);
    let later = now + Duration::from_millis(20);
    while let Some(write) = node.next_marks(later) {
        node.on_marks(later, write.ticket, true);
        write.change.deletes.iter().for_each(|id| _ = written.remove(id));
        written.extend(write.change.kinds);
    }
    ask(node, later, "gauge", wish, true)
}
