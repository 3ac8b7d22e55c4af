//! Inherited capacity: what a new leader shows a successor of the node above of what those below had when it began.

use std::time::Duration;

use lessor_client::Transport;
use lessor_client::internals::holding::Proof;
use lessor_client::internals::session::{self, Action};
use lessor_proto::message::{Ask, Band, Bands, Grant, Has, HolderKind, Lasts, Order, Report};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, Time};
use lessor_server::node::{Node, NodeConfig, Output, ParentConfig};
use lessor_server::record::Record;
use lessor_server::repository::Kind;
use lessor_sim::mutation::Mutation;

use super::hall::{self, resource, units};

/// The client below may use what it has for so long.
const LEFT: Duration = Duration::from_secs(20);

/// All 10 were out to a node, under whose leader before they were out to a client. The client shows the new leader what it
/// has, for 20 seconds more. The node above has a successor, too: to that one the node speaks when those are over, and the
/// 10 may have been granted to others. Before they are over, they are the node's.
pub(crate) fn and_ended_since(without: Option<Mutation>) -> Option<String> {
    let claimed = |seconds| claimed_after(without, Duration::from_secs(seconds));
    let (early, late) = (claimed(2), claimed(21));
    if early != units(10) {
        return Some(format!("{early} of 10 are charged to a node below which 10 are in use"));
    }
    (late > Amount::ZERO).then(|| format!("{late} are claimed that have ended"))
}

/// All 10 units were out to a node, and below it to a client, which has them in flight. Both the node and the one above have
/// new leaders. The client comes when its node has shown already what is out below, or the one above does not believe that.
/// When what was out before is over above, the units are in nobody's books there; so they must not be in use any more.
/// Until its lease ends they are the client's.
pub(crate) fn after_it_was_shown(without: Option<Mutation>) -> Option<String> {
    let late = uncounted_above(without, 5, false, Kind::Gauge);
    late.or_else(|| uncounted_above(None, 1, false, Kind::Gauge))
        .or_else(|| uncounted_above(without, 1, true, Kind::Gauge))
        // The same when the template says a rate meanwhile: what is out are units.
        .or_else(|| uncounted_above(without, 5, false, Kind::Rate))
        .or_else(|| uncounted_above(without, 1, true, Kind::Rate))
}

fn uncounted_above(without: Option<Mutation>, first: u64, unsure: bool, kind: Kind) -> Option<String> {
    let mut above = hall::successor_of_units(without, 10, unsure);
    let mut node = between(without);
    node.reload(Time::ZERO, hall::gauge(10));
    let end = Time::ZERO + Duration::from_secs(first) + LEFT;
    let (mut in_use_until, mut order) = (end, Order { epoch: Epoch(1), seq: 5 });
    ask(&mut node, Time::ZERO, "other", 1, None);
    for second in 0..100 {
        let now = Time::ZERO + Duration::from_secs(second);
        node.advance(now);
        while let Some(output) = node.poll(now) {
            let Output::Parent(Action::Ask { id, ask, .. }) = output else { continue };
            let answer = above.ask(now, &ask).expect("it is asked well");
            node.on_parent(now, session::Event::Answered { id, answer });
        }
        if second % 5 == first % 5 && second >= first && now < in_use_until {
            let left = end.since(now);
            let capacity = if order.epoch == Epoch(1) { units(10) } else { Amount::ZERO };
            // What is shown to the one that believes nobody counts no longer than that is waited for.
            let counts = if unsure { left.min(Duration::from_secs(2)) } else { left };
            let lasts = Some(Lasts { length: hall::LEASE, remaining: left, counts });
            let has = Has { capacity, order: Some(order), token: Vec::new(), lasts, expiry: 0 };
            if let Some(grant) = ask(&mut node, now, "client", 1 + second, Some(has)) {
                in_use_until = now + grant.length;
                order = grant.order.expect("a grant has a number");
            }
        }
        above.advance(now);
        // Before it is asked for, all of it is out by the record.
        let charged = above.books(now, &resource()).map_or(units(10), |books| {
            books.children.iter().map(|child| child.charge).fold(books.ghost, Amount::saturating_add)
        });
        if now < in_use_until && charged < units(10) {
            return Some(format!("10 units are in use after {second} s, and {charged} charged above"));
        }
        if in_use_until < end {
            return Some(format!("the units are the client's until {end}, and it has lost them before"));
        }
        if second == 0 && kind == Kind::Rate {
            above.reload(now, hall::repository(10));
            node.reload(now, hall::repository(10));
        }
    }
    None
}

/// All 10 were out to a node; it gave 6 of them back, which another was granted, and died before its record said so. The one above
/// has a successor without memory, to which the next leader of the node shows the 4 that its client has: it may have 10 out, and is
/// granted no more than 4, so that who has the 6 keeps them.
pub(crate) fn beside_what_was_given_back(without: Option<Mutation>) -> Option<String> {
    let second = |second| Time::ZERO + Duration::from_secs(second);
    let (mut above, mut node) = (hall::learning(without), between(without));
    let lasts = Some(Lasts { length: hall::LEASE, remaining: LEFT, counts: LEFT });
    let order = Some(Order { epoch: Epoch(1), seq: 5 });
    let mut has = Has { capacity: units(4), order, token: Vec::new(), lasts, expiry: 0 };
    let mut granted = Amount::ZERO;
    for at in 0..15 {
        node.advance(second(at));
        if let Some(grant) = ask(&mut node, second(at), "client", 1 + at, Some(has.clone())) {
            has = Has { capacity: grant.capacity, order: grant.order, lasts: None, ..has };
        }
        while let Some(output) = node.poll(second(at)) {
            let Output::Parent(Action::Ask { id, ask, .. }) = output else { continue };
            let answer = above.ask(second(at), &ask).expect("it is asked well");
            granted = answer.grants.iter().map(|grant| grant.capacity).fold(granted, Amount::max);
            node.on_parent(second(at), session::Event::Answered { id, answer });
        }
    }
    let books = above.books(second(15), &resource()).expect("it was asked for");
    assert_eq!(books.total, u128::from(units(10).as_micros()), "as much may be out below");
    let six = hall::Report { wants: 6.0, has: Some((1, 7, 6)), held: Some(6), ..hall::Report::default() };
    let left = hall::ask(&mut above, second(15), (HolderKind::Client, "other", 1), &six);
    if (granted, left) != (units(4), units(6)) {
        return Some(format!("{granted} of 10 are granted to a node that has 4, and {left} to who has 6"));
    }
    (has.capacity != units(4)).then(|| format!("{} are left below to the client that has 4", has.capacity))
}

fn ask(node: &mut Node, now: Time, name: &str, report_id: u64, has: Option<Has>) -> Option<Grant> {
    let held = has.as_ref().map(|has| if has.capacity == units(4) { has.capacity } else { units(10) });
    let report = Report {
        resource: resource(),
        bands: Bands::from_elem(Band { priority: 0, subclients: 1, wants: 10.0 }, 1),
        has,
        held,
        domains: None,
        integer: None,
        peak: None,
        unenforced: None,
    };
    let ask = Ask {
        kind: HolderKind::Client,
        holder: ClientId::new(name, 16).expect("a name"),
        incarnation: Some(Incarnation(1)),
        report_id: Some(ReportId(report_id)),
        target_epoch: Some(Epoch(2)),
        line: None,
        reports: vec![report],
    };
    node.ask(now, &ask).expect("it is asked well").grants.pop()
}

/// The amount that the node is charged with in the books of the successor above.
fn claimed_after(without: Option<Mutation>, pause: Duration) -> Amount {
    let mut above = hall::successor(without, 10);
    let mut node = between(without);
    let shown = Has {
        capacity: units(10),
        order: Some(Order { epoch: Epoch(1), seq: 5 }),
        token: Vec::new(),
        lasts: Some(Lasts { length: hall::LEASE, remaining: LEFT, counts: LEFT }),
        expiry: 0,
    };
    let report = Report {
        resource: resource(),
        bands: Bands::from_elem(Band { priority: 0, subclients: 1, wants: 10.0 }, 1),
        has: Some(shown),
        held: Some(units(10)),
        domains: None,
        integer: None,
        peak: None,
        unenforced: None,
    };
    let ask = Ask {
        kind: HolderKind::Client,
        holder: ClientId::new("client", 16).expect("a name"),
        incarnation: Some(Incarnation(1)),
        report_id: Some(ReportId(1)),
        target_epoch: Some(Epoch(2)),
        line: None,
        reports: vec![report],
    };
    node.ask(Time::ZERO, &ask).expect("it is asked well");
    let now = Time::ZERO + pause;
    for turn in 0..20 {
        let now = now + Duration::from_secs(turn) / 10;
        node.advance(now);
        while let Some(output) = node.poll(now) {
            let Output::Parent(Action::Ask { id, ask, .. }) = output else { continue };
            let answer = above.ask(now, &ask).expect("it is asked well");
            node.on_parent(now, session::Event::Answered { id, answer });
        }
    }
    let books = above.books(now, &resource()).expect("it was asked for");
    books.children.iter().map(|child| child.charge).max().unwrap_or_default()
}

/// The second leader of a node that held everything under the first leader above.
fn between(without: Option<Mutation>) -> Node {
    let rules = without.map(Mutation::node).unwrap_or_default();
    let proof = Proof { order: Order { epoch: Epoch(1), seq: 9 }, token: [].into() };
    let record = Record {
        marks: [(resource(), units(10))].into(),
        proofs: [(resource(), proof)].into(),
        longest_lease: hall::LEASE,
        ..Record::default()
    };
    let parent = ParentConfig { servers: vec!["above:1".into()], transport: Transport::Poll, eager: true };
    let config = NodeConfig {
        record: Some(record),
        rules,
        trust_claims: true,
        parent: Some(parent),
        line: Some(1),
        ..NodeConfig::new("leaf", Epoch(2))
    };
    Node::new(Time::ZERO, config, hall::repository(10))
}
