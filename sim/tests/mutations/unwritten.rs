//! A leader whose record does not say what is out, and what a successor would make of what it says.

use std::time::Duration;

use lessor_client::Transport;
use lessor_client::internals::session::{self, Action};
use lessor_proto::message::{Ask, Band, Has, HolderKind, Lasts, Order, Report};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, Time};
use lessor_server::node::{Node, NodeConfig, Output, ParentConfig};
use lessor_server::record::{Record, Terms, Unknown};
use lessor_server::repository::{Glob, Repository, SafeCapacity, Template};
use lessor_sim::mutation::Mutation;

use super::hall::{self, resource, units};

/// The length of leases by the templates at first, and by those that come later.
const SHORT: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(60);

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

fn leases(lease_length: Duration) -> Repository {
    let template = Template {
        safe_capacity: SafeCapacity::Fixed(Amount::ZERO),
        lease_length,
        refresh_interval: Duration::from_secs(5),
        learning: lease_length,
        ..Template::new(Glob::new("*").expect("a glob"), units(10))
    };
    Repository::new(vec![template]).expect("it holds together")
}

/// A leader that begins with that record.
fn begin(without: Option<Mutation>, record: Record, parent: Option<ParentConfig>, told: Repository) -> Node {
    let rules = without.map(Mutation::node).unwrap_or_default();
    let (record, line) = (Some(record), parent.as_ref().map(|_| 1));
    let base = NodeConfig::new("node", Epoch(7));
    let config = NodeConfig { record, rules, marks: true, trust_claims: true, parent, line, ..base };
    Node::new(Time::ZERO, config, told)
}

/// Writes what is to be written. Returns what stands beside the marks if that is another thing now.
fn write(node: &mut Node, now: Time) -> Option<Terms> {
    let (later, mut header) = (now + Duration::from_millis(10), None);
    while let Some(write) = node.next_marks(later) {
        header = write.change.terms.or(header);
        node.on_marks(later, write.ticket, true);
    }
    header
}

/// The amount that is granted to a client that wants all there is, and perhaps shows as many units of the
/// leader of epoch 3.
fn ask(node: &mut Node, now: Time, id: u64, shown: Option<u64>) -> Option<Amount> {
    let has = shown.map(|amount| Has {
        capacity: units(amount),
        order: Some(Order { epoch: Epoch(3), seq: 1 }),
        token: Vec::new(),
        lasts: Some(Lasts { length: LONG, remaining: SHORT, counts: SHORT }),
        expiry: 0,
    });
    let wish = Band { priority: 0, subclients: 1, wants: 10.0 };
    let bands = [wish].into_iter().collect();
    let resource = resource();
    let report = Report {
        resource,
        bands,
        has,
        held: None,
        domains: None,
        integer: None,
        peak: None,
        unenforced: None,
    };
    let ask = Ask {
        kind: HolderKind::Client,
        holder: ClientId::new("client", 16).expect("a name"),
        incarnation: Some(Incarnation(1)),
        report_id: Some(ReportId(id)),
        target_epoch: None,
        line: None,
        reports: vec![report],
    };
    let answer = node.ask(now, &ask).expect("it is asked well");
    answer.grants.first().map(|grant| grant.capacity)
}

/// A root has learnt for as long as its templates said when others come by which it is to learn for longer. A client shows 6
/// before the record can say so.
pub(crate) fn shown_before(without: Option<Mutation>) -> Option<String> {
    let unknown = Record { unknown: Unknown::All, ..Record::default() };
    let mut node = begin(without, unknown, None, leases(SHORT));
    write(&mut node, at(0));
    let header = write(&mut node, at(30)).expect("it has learnt");
    assert!(header.unknown == Unknown::Nothing, "and says so");
    node.reload(at(31), leases(LONG));
    ask(&mut node, at(31), 1, Some(6));
    let early = node.books(at(31), &resource()).map_or(0, |books| books.total);
    let header = write(&mut node, at(31)).expect("it learns again");
    assert!(header.unknown == Unknown::All, "and says so");
    assert_eq!(ask(&mut node, at(32), 2, Some(6)), Some(units(6)), "who shows a lease keeps it");
    (early > 0).then(|| format!("{early} are charged, and a successor would find that nothing is out"))
}

/// A root begins with an empty record, and without templates.
pub(crate) fn without_templates(without: Option<Mutation>) -> Option<String> {
    let told = Repository::new(Vec::new()).expect("an empty one");
    let mut node = begin(without, Record { unknown: Unknown::All, ..Record::default() }, None, told);
    let header = write(&mut node, at(0)).expect("the first write");
    (header.unknown == Unknown::Nothing).then(|| "a successor would find that nothing is out".to_owned())
}

/// The record of a leaf says that nothing is out in its line of succession, which has just begun. A client has 8 of a leader
/// before that, which the node above charges to another line; there are 4 for this one.
pub(crate) fn of_an_earlier_line(without: Option<Mutation>) -> Option<String> {
    let mut above = hall::first(None, 4);
    let parent = ParentConfig { servers: vec!["above:1".into()], transport: Transport::Poll, eager: true };
    let record = Record { epoch: Epoch(5), longest_lease: LONG, ..Record::default() };
    let mut node = begin(without, record, Some(parent), leases(LONG));
    write(&mut node, at(0));
    let now = at(5);
    assert_eq!(ask(&mut node, now, 1, Some(8)), None, "there is nothing yet to grant from");
    for _ in 0..20 {
        let Some(output) = node.poll(now) else { break };
        let Output::Parent(Action::Ask { id, ask, .. }) = output else { continue };
        let answer = above.ask(now, &ask).expect("it is asked well");
        node.on_parent(now, session::Event::Answered { id, answer });
    }
    write(&mut node, now);
    let early = ask(&mut node, at(6), 2, Some(8)).filter(|&granted| granted < units(8));
    early.map(|granted| format!("{granted} are granted to one who uses 8, which are charged to nobody then"))
}
