//! The end of earlier leaders' leases, as the node above tells a new leader: when all is over that they had.

use std::time::Duration;

use lessor_client::Transport;
use lessor_client::internals::session::{self, Action};
use lessor_proto::message::HolderKind;
use lessor_proto::{Amount, Epoch, Time};
use lessor_server::node::{Node, NodeConfig, Output, ParentConfig};
use lessor_server::record::Record;
use lessor_sim::mutation::Mutation;

use super::hall::{self, Report, ask, resource, units};

const LEAF: &str = "leaf";
/// The first leader of the leaf dies then.
const DEATH: Duration = Duration::from_secs(10);

/// All 10 are out to a leaf, and below it to a client that goes on with them. The second leader of the leaf does not know that
/// client, and wants nothing. The node above must not hear that the 10 are not used.
pub(crate) fn and_used_still(without: Option<Mutation>) -> Option<String> {
    let mut above = hall::first(without, 10);
    let out = ask(&mut above, Time::ZERO, (HolderKind::Node, LEAF, 1), &wants(10.0));
    let mut leaf = second(without, out);
    let now = converse(&mut leaf, Time::ZERO + DEATH, |now, ask| {
        above.confirm(now, now);
        above.ask(now, ask).expect("it is asked well")
    });
    let granted = ask(&mut above, now, (HolderKind::Client, "late", 1), &wants(10.0));
    (granted > Amount::ZERO)
        .then(|| format!("{granted} of 10 are granted, and {out} are in use below a leaf"))
}

/// A client has 5 from the first leader above. Its successor grants the other 5 to the first leader of a leaf, below which
/// they are used. The second leader of that leaf comes to the deposed leader first, which has never heard of the leaf.
pub(crate) fn from_a_successor(without: Option<Mutation>) -> Option<String> {
    let mut deposed = hall::first(without, 10);
    let direct = ask(&mut deposed, Time::ZERO, (HolderKind::Client, "direct", 1), &wants(5.0));
    let mut above = hall::successor_of(without, 10, direct);
    let out = ask(&mut above, Time::ZERO, (HolderKind::Node, LEAF, 1), &wants(5.0));
    let mut leaf = second(without, out);
    let now =
        converse(&mut leaf, Time::ZERO + DEATH, |now, ask| deposed.ask(now, ask).expect("it is asked well"));
    let now = converse(&mut leaf, now, |now, ask| above.ask(now, ask).expect("it is asked well"));
    let granted = ask(&mut above, now, (HolderKind::Client, "late", 1), &wants(10.0));
    let all = granted.saturating_add(direct).saturating_add(out);
    (all > units(10)).then(|| format!("{all} of 10 are in use, {out} of it below a leaf"))
}

/// A leaf that has lost its memory has begun another record, and its leader has granted 10. What a client still has from before
/// is charged above to whoever bore the name then. The next leader must not take it out of those 10.
pub(crate) fn before_the_record(without: Option<Mutation>) -> Option<String> {
    let begun = Epoch(2);
    let record = Record {
        marks: [(resource(), units(10))].into(),
        longest_lease: hall::LEASE,
        epoch: begun,
        line: 1,
        first_epoch: begun,
        ..Record::default()
    };
    let mut leaf = lead(without, record, Epoch(3));
    let now = Time::ZERO + DEATH + Duration::from_secs(1);
    for (name, epoch, amount) in [("before", 1, 8), ("since", 2, 10)] {
        let shown = Report { has: Some((epoch, 1, amount)), held: Some(amount), ..wants(10.0) };
        ask(&mut leaf, now, (HolderKind::Client, name, 1), &shown);
    }
    let books = leaf.books(now, &resource()).expect("it was asked for");
    let since = books.children.iter().find(|child| &*child.holder == "since").expect("it has asked");
    (since.charge < units(10)).then(|| format!("who has 10 by the record is charged {}", since.charge))
}

fn wants(wants: f64) -> Report {
    Report { wants, ..Report::default() }
}

/// A leader of the leaf after one that has died and left `record`.
fn lead(without: Option<Mutation>, record: Record, epoch: Epoch) -> Node {
    let parent = ParentConfig { servers: vec!["above:1".into()], transport: Transport::Poll, eager: true };
    let config = NodeConfig {
        record: Some(record),
        rules: without.map(Mutation::node).unwrap_or_default(),
        parent: Some(parent),
        line: Some(1),
        trust_claims: true,
        ..NodeConfig::new(LEAF, epoch)
    };
    Node::new(Time::ZERO + DEATH, config, hall::repository(10))
}

/// The second leader of the leaf, under whose first `out` was out.
fn second(without: Option<Mutation>, out: Amount) -> Node {
    let record = Record {
        marks: [(resource(), out)].into(),
        longest_lease: hall::LEASE,
        epoch: Epoch(1),
        ..Record::default()
    };
    let mut node = lead(without, record, Epoch(2));
    ask(&mut node, Time::ZERO + DEATH, (HolderKind::Client, "idle", 1), &wants(0.0));
    node
}

/// The leaf asks for ten seconds. Gives back when that is over.
fn converse(
    leaf: &mut Node,
    since: Time,
    mut above: impl FnMut(Time, &lessor_proto::message::Ask) -> lessor_proto::message::Answer,
) -> Time {
    for turn in 0..100 {
        let now = since + Duration::from_secs(turn) / 10;
        leaf.advance(now);
        while let Some(output) = leaf.poll(now) {
            let Output::Parent(Action::Ask { id, ask, .. }) = output else { continue };
            let answer = above(now, &ask);
            leaf.on_parent(now, session::Event::Answered { id, answer });
        }
    }
    since + Duration::from_secs(10)
}
