//! A server that begins without knowing what is out, and what it hands out all the same.

use std::time::Duration;

use lessor_proto::message::{Ask, Band, Has, HolderKind, Lasts, Order, Report};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, Time};
use lessor_server::election::call::{Action, Answer, Call, LeaseId, Stored};
use lessor_server::election::{Candidate, ElectionConfig, Event};
use lessor_server::node::{Node, NodeConfig};
use lessor_server::record::{EtcdCluster, Record, Unknown};
use lessor_server::repository::{Glob, Kind, Repository, SafeCapacity, Template};
use lessor_sim::mutation::Mutation;
use lessor_sim::plan::{DiskPlan, Election, EtcdPlan, Keeps, Memory, SimulationPlan, Terms};
use lessor_sim::simulation::Simulation;

use super::hall::{self, resource, units};
use super::kinds;

/// The length of leases, and the learning time of the configuration.
const LEASE: Duration = Duration::from_secs(10);
/// The length of leases before.
const EARLIER: Duration = Duration::from_secs(60);

fn begin(without: Option<Mutation>, marks: bool, record: Option<Record>) -> Node {
    begin_at(without, 2, marks, record)
}

fn begin_at(without: Option<Mutation>, epoch: u64, marks: bool, record: Option<Record>) -> Node {
    let template = Template {
        safe_capacity: SafeCapacity::Fixed(Amount::ZERO),
        lease_length: LEASE,
        refresh_interval: Duration::from_secs(5),
        learning: LEASE,
        ..Template::new(Glob::new("*").expect("a glob"), units(10))
    };
    let repository = Repository::new(vec![template]).expect("it holds together");
    let rules = without.map(Mutation::node).unwrap_or_default();
    let config =
        NodeConfig { record, rules, marks, trust_claims: true, ..NodeConfig::new("root", Epoch(epoch)) };
    Node::new(Time::ZERO, config, repository)
}

/// Asks for all there is, and writes whatever is to be written.
fn ask(node: &mut Node, seconds: u64, name: &str, shown: Option<u64>) -> Amount {
    ask_with(node, seconds, name, shown.map(|amount| (amount, Order { epoch: Epoch(1), seq: 1 })))
}

fn ask_with(node: &mut Node, seconds: u64, name: &str, shown: Option<(u64, Order)>) -> Amount {
    let now = Time::ZERO + Duration::from_secs(seconds);
    let has = shown.map(|(amount, order)| Has {
        capacity: units(amount),
        order: Some(order),
        token: Vec::new(),
        lasts: Some(Lasts { length: EARLIER, remaining: EARLIER, counts: EARLIER }),
        expiry: 0,
    });
    let mut granted = Amount::ZERO;
    for id in 1..4 {
        let wish = Band { priority: 0, subclients: 1, wants: 10.0 };
        let resource = resource();
        let report = Report {
            resource,
            bands: [wish].into_iter().collect(),
            has: has.clone(),
            held: None,
            domains: None,
            integer: None,
            peak: None,
            unenforced: None,
        };
        let ask = Ask {
            kind: HolderKind::Client,
            holder: ClientId::new(name, 16).expect("a name"),
            incarnation: Some(Incarnation(1)),
            report_id: Some(ReportId(seconds * 10 + id)),
            target_epoch: None,
            reports: vec![report],
            line: None,
        };
        let answer = node.ask(now, &ask).expect("it is asked well");
        granted = answer.grants.first().map_or(granted, |grant| grant.capacity);
        let later = now + Duration::from_millis(10);
        while let Some(write) = node.next_marks(later) {
            node.on_marks(later, write.ticket, true);
        }
    }
    granted
}

/// Before the start 10 were out, for up to a minute, 8 of them to somebody who is not heard of. When that is over as far as the
/// configuration says, a newcomer asks for all there is.
pub(crate) fn shorter_leases(without: Option<Mutation>) -> Option<String> {
    let mut node = begin(without, false, None);
    let shown = ask(&mut node, 1, "shows", Some(2));
    assert_eq!(shown, units(2), "who shows a lease keeps it");
    let early = ask(&mut node, 20, "newcomer", None);
    let late = ask(&mut node, 90, "newcomer", None);
    assert!(late > Amount::ZERO, "it is served when all of that is over");
    (early > Amount::ZERO).then(|| format!("{early} of the 8 that are in use are granted to another"))
}

/// Before the start 10 were out to somebody who is not heard of yet, and the record has been lost. A newcomer asks for all there
/// is.
pub(crate) fn an_empty_record(without: Option<Mutation>) -> Option<String> {
    let mut node = begin(without, true, Some(Record { unknown: Unknown::All, ..Record::default() }));
    let early = ask(&mut node, 1, "newcomer", None);
    let late = ask(&mut node, 60, "newcomer", None);
    assert!(late > Amount::ZERO, "it is served when all of that is over");
    (early > Amount::ZERO).then(|| format!("{early} of the 10 that are in use are granted to another"))
}

/// The record says that 2 were out under epoch 3; then somebody led who wrote elsewhere, and left 6 to one who shows them and 4
/// to one who does not. When what the record knows of is over by its own account, a newcomer asks for all there is.
pub(crate) fn an_old_record(without: Option<Mutation>) -> Option<String> {
    shown_to_an_old_record(without).or_else(|| super::shown::to_an_old_record(without))
}

fn shown_to_an_old_record(without: Option<Mutation>) -> Option<String> {
    let marks = [(resource(), units(2))].into();
    let record = Record { epoch: Epoch(3), marks, longest_lease: LEASE, ..Record::default() };
    let mut node = begin_at(without, 7, true, Some(record));
    let order = Order { epoch: Epoch(5), seq: 1 };
    let shown = ask_with(&mut node, 1, "shows", Some((6, order)));
    assert!(shown >= units(6), "who shows a lease keeps it");
    let early = shown.saturating_sub(units(6)).max(ask(&mut node, 2, "newcomer", None));
    let late = ask(&mut node, 90, "newcomer", None);
    assert!(late > Amount::ZERO, "it is served when all of that is over");
    (early > Amount::ZERO).then(|| format!("{early} of the 4 that are in use are granted to another"))
}

/// Before the start 10 units were out, to somebody who is not heard of yet. One whose lease is over, and who has not done with
/// its units, asks for more.
pub(crate) fn in_use_when_it_is_over(without: Option<Mutation>) -> Option<String> {
    let second = |second| Time::ZERO + Duration::from_secs(second);
    let mut node = begin(without, false, None);
    let gauge = Template { kind: Kind::Gauge, ..Template::clone(&node.repository().templates()[0]) };
    node.reload(Time::ZERO, Repository::new(vec![gauge]).expect("it holds together"));
    let over = hall::Report { wants: 8.0, has: Some((1, 1, 0)), held: Some(6), ..hall::Report::default() };
    let early = kinds::ask(&mut node, second(1), "over", &over, true);
    let late = kinds::ask(&mut node, second(60), "over", &over, true);
    assert!(late > Amount::ZERO, "it is served when all of that is over");
    (early > Amount::ZERO).then(|| format!("{early} of the 10 that are in use are granted to another"))
}

/// Before the start 10 units were out: 2 to one who has besides not done with 4 of a lease that is over, and 8 to another, who is
/// heard second.
pub(crate) fn in_use_beside_a_lease(without: Option<Mutation>) -> Option<String> {
    let second = |second| Time::ZERO + Duration::from_secs(second);
    let mut node = begin(without, false, None);
    let gauge = Template { kind: Kind::Gauge, ..Template::clone(&node.repository().templates()[0]) };
    node.reload(Time::ZERO, Repository::new(vec![gauge]).expect("it holds together"));
    let over = hall::Report { wants: 8.0, has: Some((1, 1, 2)), held: Some(6), ..hall::Report::default() };
    let busy = hall::Report { wants: 8.0, has: Some((1, 1, 8)), held: Some(8), ..hall::Report::default() };
    let over = kinds::ask(&mut node, second(1), "over", &over, true);
    let busy = kinds::ask(&mut node, second(2), "busy", &busy, true);
    (over, busy)
        .ne(&(units(2), units(8)))
        .then(|| format!("{over} is granted to who has 2, and {busy} to who has 8"))
}

/// Before the start 18 units were in use, and then there are 10. They are in use still when there are 20, and a newcomer asks for
/// ten.
pub(crate) fn a_smaller_capacity(without: Option<Mutation>) -> Option<String> {
    let second = |second| Time::ZERO + Duration::from_secs(second);
    let mut node = begin(without, false, None);
    let template = Template::clone(&node.repository().templates()[0]);
    let gauge = |capacity| {
        let gauge = Template { kind: Kind::Gauge, capacity: units(capacity), ..template.clone() };
        Repository::new(vec![gauge]).expect("it holds together")
    };
    node.reload(Time::ZERO, gauge(10));
    let busy = hall::Report { wants: 18.0, held: Some(18), ..hall::Report::default() };
    let shown = hall::Report { has: Some((1, 1, 18)), ..busy };
    let first = kinds::ask(&mut node, second(1), "busy", &shown, true);
    if first != units(10) {
        return Some(format!("{first} of the 10 that there are is granted to who has all of them in use"));
    }
    for at in [5, 9, 13] {
        let shown = hall::Report { has: Some((2, at / 4, 10)), ..busy };
        assert_eq!(kinds::ask(&mut node, second(at), "busy", &shown, true), units(10), "it has units in use");
    }
    node.reload(second(14), gauge(20));
    let wish = hall::Report { wants: 10.0, ..hall::Report::default() };
    let early = kinds::ask(&mut node, second(15), "newcomer", &wish, true);
    let done = hall::Report { has: Some((2, 4, 10)), held: Some(0), ..hall::Report::default() };
    kinds::ask(&mut node, second(16), "busy", &done, true);
    let late = kinds::ask(&mut node, second(17), "newcomer", &wish, true);
    assert_eq!(late, units(10), "it is served when they are not in use any more");
    (early > units(2)).then(|| format!("{early} of 20 are granted, of which 18 are in use"))
}

/// A task is elected by an etcd, and another by one that was wiped since.
pub(crate) fn a_wiped_etcd(without: Option<Mutation>) -> Option<String> {
    let (before, after) =
        (elected(without, 1_790_000_000_000, 5_000), elected(without, 1_790_000_060_000, 2));
    (after <= before).then(|| format!("holders of epoch {before} do not listen to epoch {after}"))
}

/// An etcd is restored from a backup as another cluster: by its record 2 are out, and 10 are in use. A newcomer asks for all
/// there is as soon as the last leader of the record has certainly stopped.
pub(crate) fn a_restored_etcd(without: Option<Mutation>) -> Option<String> {
    let stored = |key: &str, value: &str| Stored {
        key: format!("lessor/root/{key}").into_bytes(),
        value: value.into(),
        create_revision: 3,
        mod_revision: 9,
        lease: None,
    };
    let header =
        "1 epoch 1 write 2 longest_lease_ns 60000000000 authority_ns 4000000000 closed no config_version 0";
    let backup = [
        stored("cluster", "1 id 10 term 7"),
        stored(&format!("mark/{}", resource()), "1 millionths 2000000"),
        stored("reign", header),
    ];
    let (epoch, record) = elected_with(without, 1_790_000_000_000, 5_000, &backup);
    let authority = Duration::from_secs(4);
    let record = Record::left(record, authority);
    let mut node = begin_at(without, epoch, true, Some(record));
    let early = ask(&mut node, 5, "newcomer", None);
    let late = ask(&mut node, 90, "newcomer", None);
    assert!(late > Amount::ZERO, "it is served when all of that is over");
    (early > Amount::ZERO).then(|| format!("{early} of the 10 that are in use are granted to another"))
}

/// The number of an epoch that begins at `date` by an etcd at `revision` without a record.
fn elected(without: Option<Mutation>, date: u64, revision: u64) -> u64 {
    elected_with(without, date, revision, &[]).0
}

/// The same of one that holds `stored`, with the record that it reads.
fn elected_with(without: Option<Mutation>, date: u64, revision: u64, stored: &[Stored]) -> (u64, Record) {
    let rules = without.map(Mutation::election).unwrap_or_default();
    let config = ElectionConfig { rules, ..ElectionConfig::new("root", "a:1", 7) };
    let mut candidate = Candidate::new(Time::ZERO, config).expect("it can work");
    candidate.set_date(Duration::from_millis(date));
    let mut now = Time::ZERO;
    for _ in 0..100 {
        while let Some(event) = candidate.next_event() {
            if let Event::Elected { epoch, record } = event {
                return (epoch.0, *record);
            }
        }
        match candidate.poll(now) {
            Some(Action::Call { id, call }) => {
                candidate.on_answer(now, id, Ok(answer(&call, revision, stored)));
            }
            Some(_) => {}
            None => now = candidate.next_deadline(),
        }
    }
    panic!("never elected");
}

fn answer(call: &Call, revision: u64, stored: &[Stored]) -> Answer {
    match call {
        Call::Read { .. } => Answer::Read { stored: None, revision },
        Call::GrantLease { ttl } => Answer::Granted { lease: LeaseId(5), ttl: *ttl },
        Call::Put { .. } | Call::Campaign { .. } => Answer::Won { revision },
        Call::ReadRecord { .. } => {
            let cluster = Some(EtcdCluster { id: 11, term: 2 });
            Answer::Record { stored: stored.to_vec(), more: false, cluster }
        }
        Call::Write(_) => Answer::Written { revision: revision + 1 },
        Call::KeepAlive { .. } => Answer::KeptAlive { ttl: Duration::from_secs(10) },
        Call::Revoke { .. } => Answer::Revoked,
    }
}

/// A leaf begins a state directory, grants some of what it gets, and dies before it would have learnt what was before it.
/// Whether more is believed then than the node above counts.
pub(crate) fn a_leaf_that_has_just_begun(without: Option<Mutation>) -> Option<String> {
    let mut plan = SimulationPlan::tree(&[2], 3, 60.0, 5.0);
    plan.election = Election::Alone;
    plan.memory = Memory { disk: Some(DiskPlan::default()), etcd: Some(EtcdPlan::default()) };
    plan.mutation = without;
    // What the node above charged to the one before is over long before the leaf would have learnt.
    plan.sites[0].terms =
        Terms { lease_length: Duration::from_secs(20), refresh_interval: Duration::from_secs(4) };
    let mut sim = Simulation::new(3, &plan);
    let pass = |sim: &mut Simulation, seconds| sim.pass(Duration::from_secs(seconds)).err();
    let mut broken = pass(&mut sim, 90);
    sim.keep_in(1, Keeps::File);
    broken = broken.or_else(|| pass(&mut sim, 40));
    sim.lose_leader(1);
    (3..6).for_each(|client| sim.set_wants(client, 20.0));
    broken = broken.or_else(|| pass(&mut sim, 30));
    broken.map(|violation| format!("{}: {}", violation.rule, violation.what))
}
