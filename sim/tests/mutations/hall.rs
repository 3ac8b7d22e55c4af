//! One resource, the node that grants it, and what single holders say to it.

use std::time::Duration;

use lessor_proto::message::{Ask, Band, Bands, Has, HolderKind, Order};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, ResourceId, Time};
use lessor_server::node::{Node, NodeConfig};
use lessor_server::record::Record;
use lessor_server::repository::{Glob, Kind, Repository, SafeCapacity, Template};
use lessor_server::token::{Bearer, Content, Key, TokenKeys};
use lessor_sim::mutation::Mutation;

/// The length of leases.
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// The report of a holder.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Report {
    pub(crate) wants: f64,
    pub(crate) priority: i64,
    /// The lease that it shows: of which epoch, which grant, and how many units.
    pub(crate) has: Option<(u64, u64, u64)>,
    /// The number of units that it promises to keep to.
    pub(crate) held: Option<u64>,
    /// The number of units by the token that it shows with its lease, if it has one.
    pub(crate) token: Option<u64>,
}

pub(crate) fn units(units: u64) -> Amount {
    Amount::from_units(units)
}

pub(crate) fn resource() -> ResourceId {
    ResourceId::new("r", 16).expect("a name")
}

pub(crate) fn repository(capacity: u64) -> Repository {
    let template = Template {
        safe_capacity: SafeCapacity::Fixed(Amount::ZERO),
        lease_length: LEASE,
        refresh_interval: Duration::from_secs(5),
        ..Template::new(Glob::new("*").expect("a glob"), units(capacity))
    };
    Repository::new(vec![template]).expect("it holds together")
}

/// The same of a gauge.
pub(crate) fn gauge(capacity: u64) -> Repository {
    let rate = repository(capacity);
    let template = Template { kind: Kind::Gauge, ..Template::clone(&rate.templates()[0]) };
    Repository::new(vec![template]).expect("it holds together")
}

/// The same of one whose turns last for `quantum`.
pub(crate) fn gauge_in_turns(capacity: u64, quantum: Duration) -> Repository {
    let gauge = gauge(capacity);
    let template = Template { quantum: Some(quantum), ..Template::clone(&gauge.templates()[0]) };
    Repository::new(vec![template]).expect("it holds together")
}

/// The first leader.
pub(crate) fn first(without: Option<Mutation>, capacity: u64) -> Node {
    lead(without, capacity, 1, Some(Record::default()))
}

/// The second leader, under whose predecessor everything was out. It believes what it is shown.
pub(crate) fn successor(without: Option<Mutation>, capacity: u64) -> Node {
    lead(without, capacity, 2, Some(left(capacity)))
}

/// The same of a gauge. If it is `unsure` how long leaders before it went on, it believes nobody.
pub(crate) fn successor_of_units(without: Option<Mutation>, capacity: u64, unsure: bool) -> Node {
    let mut node = lead(without, capacity, 2, Some(Record { unsure, ..left(capacity) }));
    node.reload(Time::ZERO, gauge(capacity));
    node
}

/// The same where only so much was out.
pub(crate) fn successor_of(without: Option<Mutation>, capacity: u64, out: Amount) -> Node {
    let marks = [(resource(), out)].into();
    lead(without, capacity, 2, Some(Record { marks, ..left(capacity) }))
}

/// The same of one that wants to see tokens.
pub(crate) fn careful_successor(without: Option<Mutation>, capacity: u64) -> Node {
    let rules = without.map(Mutation::node).unwrap_or_default();
    let (record, keys) = (Some(left(capacity)), Some(keys()));
    let config = NodeConfig { record, rules, keys, ..NodeConfig::new("root", Epoch(2)) };
    Node::new(Time::ZERO, config, repository(capacity))
}

/// A leader above that remembers nothing.
pub(crate) fn learning(without: Option<Mutation>) -> Node {
    let rules = without.map(Mutation::node).unwrap_or_default();
    let template = Template { learning: LEASE, ..Template::clone(&repository(10).templates()[0]) };
    let repository = Repository::new(vec![template]).expect("it holds together");
    Node::new(Time::ZERO, NodeConfig { rules, ..NodeConfig::new("root", Epoch(2)) }, repository)
}

fn left(capacity: u64) -> Record {
    let marks = [(resource(), units(capacity))].into();
    Record { marks, longest_lease: LEASE, ..Record::default() }
}

fn keys() -> TokenKeys {
    TokenKeys::new(Key::new([7; 32]))
}

fn lead(without: Option<Mutation>, capacity: u64, epoch: u64, record: Option<Record>) -> Node {
    let rules = without.map(Mutation::node).unwrap_or_default();
    let config = NodeConfig { record, rules, trust_claims: true, ..NodeConfig::new("root", Epoch(epoch)) };
    Node::new(Time::ZERO, config, repository(capacity))
}

/// Asks without a stream, and gives back what is granted.
pub(crate) fn ask(node: &mut Node, now: Time, who: (HolderKind, &str, u64), report: &Report) -> Amount {
    let (kind, name, incarnation) = who;
    let resource = resource();
    let mut told = report.told();
    if let (Some(amount), Some(has)) = (report.token, &mut told.has) {
        let bearer = Bearer {
            node: "root",
            kind,
            holder: name,
            incarnation: Incarnation(incarnation),
            resource: &resource,
        };
        let order = has.order.expect("a lease of Lessor's has a number");
        has.token = keys().token(&bearer, Content { order, amount: units(amount) });
    }
    let ask = Ask {
        kind,
        holder: ClientId::new(name, 16).expect("a name"),
        incarnation: Some(Incarnation(incarnation)),
        report_id: Some(ReportId(1)),
        target_epoch: None,
        line: (kind == HolderKind::Node).then_some(1),
        reports: vec![told],
    };
    let answer = node.ask(now, &ask).expect("it is asked well");
    answer.grants.first().map_or(Amount::ZERO, |grant| grant.capacity)
}

// === impl Report ===

impl Report {
    pub(crate) fn told(&self) -> lessor_proto::message::Report {
        let band = Band { priority: self.priority, subclients: 1, wants: self.wants };
        let has = self.has.map(|(epoch, seq, capacity)| Has {
            capacity: units(capacity),
            order: Some(Order { epoch: Epoch(epoch), seq }),
            token: Vec::new(),
            lasts: None,
            expiry: 0,
        });
        let bands = [band].into_iter().collect::<Bands>();
        lessor_proto::message::Report {
            resource: resource(),
            bands,
            has,
            held: self.held.map(units),
            domains: None,
            integer: None,
            peak: None,
            unenforced: None,
        }
    }
}
