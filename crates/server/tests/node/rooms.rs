//! Places: who gets one where a limit is reached, and who gives one up.

use std::time::Duration;

use lessor_client::Transport;
use lessor_proto::message::{Ask, Band, Down, Hello, HolderKind, Report, StreamReport, Up};
use lessor_proto::{ClientId, Epoch, Features, Incarnation, ReportId, ResourceId, Time};
use lessor_server::node::{Node, NodeConfig, Output, ParentConfig, Peer};

use super::holders::{repository, template};

fn node(config: NodeConfig) -> Node {
    Node::new(Time::ZERO, config, repository(template(100.0)))
}

fn config() -> NodeConfig {
    NodeConfig::new("root", Epoch(1))
}

fn report(resource: &str, wants: f64) -> Report {
    Report::new(ResourceId::new(resource, 64).expect("a name"), [Band { priority: 0, subclients: 1, wants }])
}

/// Whether a poller is granted something of each of these.
fn ask(node: &mut Node, name: &str, number: u64, reports: Vec<Report>) -> bool {
    let now = Time::ZERO + Duration::from_millis(number);
    node.ask(now, &asked(name, number, reports)).is_ok_and(|answer| answer.refused.is_empty())
}

fn asked(name: &str, number: u64, reports: Vec<Report>) -> Ask {
    Ask {
        kind: HolderKind::Client,
        holder: ClientId::new(name, 64).expect("a name"),
        incarnation: Some(Incarnation(1)),
        report_id: Some(ReportId(number)),
        target_epoch: None,
        line: None,
        reports,
    }
}

#[test]
fn who_has_and_wants_nothing_makes_room_for_a_holding_of_something_else() {
    let mut node = node(NodeConfig { holdings: 2, ..config() });
    assert!(ask(&mut node, "busy", 1, vec![report("db", 10.0)]));
    assert!(ask(&mut node, "idle", 2, vec![report("db", 0.0)]));
    assert!(!ask(&mut node, "bored", 3, vec![report("queue", 0.0)]), "it wants nothing itself");
    assert!(ask(&mut node, "new", 4, vec![report("queue", 10.0)]));
    assert!(!ask(&mut node, "late", 5, vec![report("queue", 10.0)]), "nobody idles any more");
    assert!(ask(&mut node, "busy", 6, vec![report("db", 10.0)]));
}

/// A client that shows no incarnation, and was never granted anything, is one life of its id however often it asks.
#[test]
fn who_was_never_answered_asks_again_in_its_own_place() {
    let parent = ParentConfig { servers: vec!["above".into()], transport: Transport::Poll, eager: true };
    let mut node = node(NodeConfig { clients_per_resource: 2, parent: Some(parent), ..config() });
    let poll = |node: &mut Node, number: u64| {
        let ask = Ask { incarnation: None, ..asked("poller", number, vec![report("db", 10.0)]) };
        let answer = node.ask(Time::ZERO + Duration::from_millis(number), &ask).expect("it has a place");
        assert!(answer.grants.is_empty(), "nothing is known of what there is to grant");
    };
    let names = |node: &Node| -> Vec<String> {
        let books = node.books(Time::ZERO, &ResourceId::new("db", 64).expect("a name")).expect("books");
        let mut names: Vec<String> = books.children.iter().map(|child| child.holder.to_string()).collect();
        names.sort();
        names
    };
    assert!(ask(&mut node, "idle", 1, vec![report("db", 0.0)]));
    (2..5).for_each(|number| poll(&mut node, number));
    assert_eq!(names(&node), ["idle", "poller"], "nobody makes room for one that has a place");
    assert!(ask(&mut node, "busy", 5, vec![report("db", 10.0)]));
    (6..9).for_each(|number| poll(&mut node, number));
    assert_eq!(names(&node), ["busy", "poller"]);
}

#[test]
fn one_resource_of_a_request_makes_no_room_for_another() {
    let mut node = node(NodeConfig { holdings: 1, ..config() });
    assert!(ask(&mut node, "one", 1, vec![report("db", 0.0)]));
    assert!(!ask(&mut node, "one", 2, vec![report("db", 0.0), report("queue", 10.0)]));
    assert!(ask(&mut node, "one", 3, vec![report("queue", 10.0)]), "asked for by itself it does");
}

/// The number of streams that the node has closed, and of reports that it has refused.
fn listen(node: &mut Node, now: Time) -> (usize, usize) {
    let (mut closed, mut refused) = (0, 0);
    while let Some(output) = node.poll(now) {
        match output {
            Output::Close { .. } => closed += 1,
            Output::Send { peer, down } => {
                refused += usize::from(matches!(down, Down::Refused { .. }));
                node.ready(now, peer);
            }
            Output::Parent(_) => unreachable!("a root"),
        }
    }
    (closed, refused)
}

fn open(node: &mut Node, now: Time, name: &str) -> Peer {
    let hello = Hello {
        kind: HolderKind::Client,
        holder: ClientId::new(name, 64).expect("a name"),
        incarnation: Incarnation(1),
        line: None,
        features: Features::default(),
    };
    node.connect(now, hello)
}

fn say(node: &mut Node, now: Time, peer: Peer, number: u64, wants: f64) {
    let reports = vec![report("db", wants)];
    let report = StreamReport { id: ReportId(number), target_epoch: None, renew_all: false, reports };
    node.receive(now, peer, Up::Report(report));
}

#[test]
fn those_who_want_nothing_do_not_drive_each_other_out() {
    let mut node = node(NodeConfig { clients_per_resource: 1, ..config() });
    let now = Time::ZERO + Duration::from_secs(1);
    let [one, other, busy] = ["one", "other", "busy"].map(|name| open(&mut node, now, name));
    say(&mut node, now, one, 1, 0.0);
    assert_eq!(listen(&mut node, now), (0, 0));
    say(&mut node, now, other, 1, 0.0);
    assert_eq!(listen(&mut node, now), (0, 1), "the place is taken, by one who wants as little");
    say(&mut node, now, busy, 1, 10.0);
    assert_eq!(listen(&mut node, now), (0, 0));
    let beat = StreamReport { id: ReportId(2), target_epoch: None, renew_all: true, reports: Vec::new() };
    node.receive(now, one, Up::Report(beat));
    assert_eq!(listen(&mut node, now), (1, 0), "the one that had it has to come back");
}
