//! Names of nodes that poll: a loop is found in an answer, and nothing of that answer counts.

use std::time::Duration;

use lessor_client::Transport;
use lessor_client::internals::session::{self, Action};
use lessor_proto::message::{Answer, Ask, Grant, Has, HolderKind, Lasts, NodeNotice, Order, Refusal, Report};
use lessor_proto::{Amount, Epoch, Incarnation, ReportId, Time};
use lessor_server::node::{NameWarning, NamesStatus, Node, NodeConfig, Output, ParentConfig, StatusQuery};

use super::holders::{client, repository, resource, template, wants};

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(1_000 + seconds)
}

fn node(name: &str, transport: Transport) -> Node {
    begin(name, 1, transport)
}

fn begin(name: &str, epoch: u64, transport: Transport) -> Node {
    let mut config = NodeConfig::new(name, Epoch(epoch));
    let servers = vec!["above:1".into()];
    config.parent = Some(ParentConfig { servers, transport, eager: true });
    Node::new(at(0), config, repository(template(100.0)))
}

fn ask(node: &mut Node, seconds: u64, who: (HolderKind, &str, u64), amount: f64) -> Result<Answer, Refusal> {
    ask_showing(node, seconds, who, amount, None)
}

fn ask_showing(
    node: &mut Node,
    seconds: u64,
    who: (HolderKind, &str, u64),
    amount: f64,
    has: Option<Has>,
) -> Result<Answer, Refusal> {
    let (kind, name, incarnation) = who;
    let report = Report {
        resource: resource(),
        bands: wants(amount).bands,
        has,
        held: None,
        domains: None,
        integer: None,
        peak: None,
        unenforced: None,
    };
    let ask = Ask {
        kind,
        holder: client(name),
        incarnation: Some(Incarnation(incarnation)),
        report_id: Some(ReportId(1 + seconds)),
        target_epoch: None,
        line: None,
        reports: vec![report],
    };
    node.ask(at(seconds), &ask)
}

/// The number of the request to the node above that is made until then.
fn asked_above(node: &mut Node, seconds: u64) -> Option<u64> {
    let mut asked = None;
    for _ in 0..100 {
        match node.poll(at(seconds)) {
            Some(Output::Parent(Action::Ask { id, .. })) => asked = Some(id),
            Some(_) => {}
            None => break,
        }
    }
    asked.map(u64::from)
}

fn answer(path: &[&str], seq: u64) -> Answer {
    answer_with(path, seq, 10, false)
}

fn answer_with(path: &[&str], seq: u64, units: u64, learning: bool) -> Answer {
    let grant = Grant {
        resource: resource(),
        capacity: Amount::from_units(units),
        length: Duration::from_secs(60),
        refresh_interval: Duration::from_secs(5),
        order: Some(Order { epoch: Epoch(1), seq }),
        basis: None,
        token: Vec::new(),
        ack_wanted: false,
        safe_leased: false,
        safe_capacity: None,
        due: None,
        window: None,
        generation: None,
        sharing: None,
        domains: None,
        before: None,
        earlier: None,
        bound_by: None,
        unenforced: false,
        beside: false,
        burst: None,
        learning,
        learning_left: None,
    };
    let path = path.iter().map(ToString::to_string).collect();
    let notice = Some(NodeNotice { path, name_taken: false });
    Answer { grants: vec![grant], epoch: Some(Epoch(1)), notice, ..Answer::default() }
}

fn names(node: &Node) -> NamesStatus {
    node.status(at(0), &StatusQuery::default()).names
}

#[test]
fn a_node_that_polls_takes_nothing_from_below_itself() {
    let mut paris = node("paris", Transport::Poll);
    let client = (HolderKind::Client, "a", 1);
    assert_eq!(ask(&mut paris, 0, client, 4.0).unwrap().grants, []);
    let id = asked_above(&mut paris, 0).expect("it asks above");
    let answer_in_a_loop = answer(&["paris", "europe"], 1);
    paris.on_parent(at(0), session::Event::Answered { id: ReportId(id), answer: answer_in_a_loop });
    let why = "the nodes form a loop: paris -> europe -> paris";
    assert_eq!(names(&paris).circle.as_deref(), Some(why));
    assert_eq!(paris.next_name_warning(), Some(NameWarning::Loop { why: why.to_owned() }));
    assert_eq!(ask(&mut paris, 1, client, 4.0).unwrap().grants, [], "there is nothing to grant");

    let id = asked_above(&mut paris, 60).expect("it tries again");
    paris.on_parent(
        at(60),
        session::Event::Answered { id: ReportId(id), answer: answer(&["root", "europe"], 2) },
    );
    asked_above(&mut paris, 60);
    assert_eq!((names(&paris).circle, names(&paris).path.join(" ")), (None, "root europe paris".to_owned()));
    let granted = ask(&mut paris, 61, client, 4.0).unwrap().grants;
    assert_eq!(granted[0].capacity, Amount::from_units(4), "it is served");

    let refused = ask(&mut paris, 62, (HolderKind::Node, "europe", 1), 4.0).unwrap_err().to_string();
    assert_eq!(refused, "the nodes form a loop: europe -> paris -> europe");
    let below = ask(&mut paris, 62, (HolderKind::Node, "louvre", 1), 4.0).unwrap();
    assert_eq!(below.notice.unwrap().path, ["root", "europe", "paris"]);
}

#[test]
fn two_that_poll_under_one_name_are_told() {
    let mut root = Node::new(at(0), NodeConfig::new("root", Epoch(1)), repository(template(10.0)));
    let mut ask = |seconds, life| {
        let answer = ask(&mut root, seconds, (HolderKind::Node, "paris", life), 8.0).unwrap();
        (answer.grants[0].capacity, answer.notice.unwrap().name_taken)
    };
    let units = Amount::from_units;
    assert_eq!((ask(0, 1), ask(1, 2)), ((units(8), false), (units(2), false)));
    assert_eq!((ask(2, 1), ask(3, 2)), ((units(5), true), (units(2), true)));
    assert_eq!(names(&root).duplicates, ["paris"]);
}

/// The earlier of two processes of one name has granted 6 for half a minute to one that had asked the later before.
#[test]
fn who_was_at_another_of_one_name_meanwhile_is_left_what_it_shows() {
    let mut paris = begin("paris", 2, Transport::Poll);
    let (a, b) = ((HolderKind::Client, "a", 1), (HolderKind::Client, "b", 1));
    assert_eq!(ask(&mut paris, 0, a, 6.0).unwrap().grants, [], "there is nothing to grant");
    let id = asked_above(&mut paris, 0).expect("it asks above");
    paris.on_parent(at(0), session::Event::Answered { id: ReportId(id), answer: answer(&["root"], 1) });
    asked_above(&mut paris, 0);
    assert_eq!(ask(&mut paris, 1, b, 10.0).unwrap().grants[0].capacity, Amount::from_units(5));
    let seconds = Duration::from_secs;
    let has = |remaining| Has {
        capacity: Amount::from_units(6),
        order: Some(Order { epoch: Epoch(1), seq: 1 }),
        token: Vec::new(),
        lasts: Some(Lasts { length: seconds(60), remaining, counts: remaining }),
        expiry: 0,
    };
    let shown = ask_showing(&mut paris, 2, a, 6.0, Some(has(seconds(30)))).unwrap();
    assert_eq!(shown.grants, [], "it may have units in use, which nobody here would count");
    let ended = ask_showing(&mut paris, 40, a, 6.0, Some(has(seconds(0)))).unwrap();
    assert_eq!(ended.grants[0].capacity, Amount::from_units(5), "half of it is another's");
}

/// A node above that has begun again does not know what is out: a client that lives on what is safe goes on with that, and
/// hears when it is known.
#[test]
fn who_is_granted_something_is_told_that_the_node_above_learns() {
    let mut paris = node("paris", Transport::Poll);
    let client = (HolderKind::Client, "a", 1);
    assert_eq!(ask(&mut paris, 0, client, 4.0).unwrap().grants, []);
    let mut told = |seconds, seq, units, learning| {
        let id = asked_above(&mut paris, seconds).expect("it asks above");
        let answer = answer_with(&["root"], seq, units, learning);
        paris.on_parent(at(seconds), session::Event::Answered { id: ReportId(id), answer });
        asked_above(&mut paris, seconds);
        let grants = ask(&mut paris, seconds + 1, client, 4.0).unwrap().grants;
        (grants[0].capacity, grants[0].learning)
    };
    assert_eq!(told(0, 1, 0, true), (Amount::ZERO, true));
    assert_eq!(told(30, 2, 3, true), (Amount::from_units(3), true));
    assert_eq!(told(60, 3, 3, false), (Amount::from_units(3), false));
}
