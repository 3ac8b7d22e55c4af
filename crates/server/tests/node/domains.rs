//! Policies of domains on their way: from a template to those who hold the lease, over streams and by polling.

use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::internals::domain::{Policies, Rules};
use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{self, Action, Change, Session, SessionConfig};
use lessor_client::{Failure, Kind, Transport};
use lessor_proto::message::{Ask, Bands, Down, HolderKind, Report};
use lessor_proto::{Epoch, Incarnation, ReportId, Time};
use lessor_server::node::{Node, NodeConfig, Output, Peer};
use lessor_server::repository::{Domains, Template};

use super::holders::{client, repository, resource, template, wants};

/// Steps that an exchange takes at the most.
const STEPS: usize = 100;

/// Policies by which they are known again.
fn policies(limit: u32) -> Arc<Policies> {
    let second = Duration::from_secs(1);
    let (window, active, cooldown) = (second, second, Duration::ZERO);
    let tier = Tier { limit, window, active, cooldown, is_skippable: false, kind: Window::Exact };
    let contract =
        Contract::from(TierPolicy::new(vec![tier], None, None).expect("a policy that holds together"));
    Arc::new(
        Policies::new(Rules { default: Some(contract), ..Rules::default() }).expect("nothing stands twice"),
    )
}

fn with(limit: Option<u32>) -> Template {
    let domains = limit.map(|limit| Domains { policies: policies(limit), changes: Vec::new() });
    Template { domains, ..template(100.0) }
}

/// A client's session and its server, with nothing between them.
struct Pair {
    now: Time,
    node: Node,
    session: Session,
    stream: Option<(u64, Peer)>,
    /// The version of the policies that came with each grant, if there were some.
    came: Vec<Option<u32>>,
    changes: Vec<Change>,
}

// === impl Pair ===

impl Pair {
    fn new(transport: Transport, template: Template) -> Pair {
        let config = SessionConfig::new(client("web"), Incarnation(1), vec!["root:1".into()]);
        let mut session = Session::new(SessionConfig { transport, ..config });
        session.add(Time::ZERO, resource(), HoldingConfig::new(Kind::Rate, 10.0, 0));
        let node = Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), repository(template));
        let mut pair =
            Pair { now: Time::ZERO, node, session, stream: None, came: Vec::new(), changes: Vec::new() };
        pair.exchange();
        pair
    }

    /// Everything that is to be said now is said, and heard.
    fn exchange(&mut self) {
        for _ in 0..STEPS {
            if let Some(action) = self.session.poll(self.now) {
                self.perform(action);
            } else if let Some(output) = self.node.poll(self.now) {
                self.deliver(output);
            } else {
                return;
            }
        }
        panic!("they do not come to an end");
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Change(change) => self.changes.push(change),
            Action::Ask { id, ask, .. } => {
                let answer = self.node.ask(self.now, &ask).expect("it is answered");
                self.came
                    .extend(answer.grants.iter().map(|grant| grant.domains.as_ref().map(|it| it.version)));
                self.session.handle(self.now, session::Event::Answered { id, answer });
            }
            Action::Connect { id, hello, .. } => {
                self.stream = Some((id, self.node.connect(self.now, hello)));
            }
            Action::Send { up, .. } => {
                let (_, peer) = self.stream.expect("a stream");
                self.node.receive(self.now, peer, up);
            }
            other => panic!("not expected: {other:?}"),
        }
    }

    fn deliver(&mut self, output: Output) {
        let Output::Send { peer, down } = output else { panic!("not expected: {output:?}") };
        if let Down::Grants(grants) = &down {
            self.came.extend(grants.iter().map(|grant| grant.domains.as_ref().map(|it| it.version)));
        }
        self.session.handle(self.now, session::Event::Down { id: self.stream.expect("a stream").0, down });
        self.node.ready(self.now, peer);
    }

    fn later(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            self.node.advance(self.now);
            self.exchange();
        }
    }

    fn configure(&mut self, template: Template) {
        self.node.reload(self.now, repository(template));
        self.exchange();
    }

    /// The version that the program was told last.
    fn in_force(&self) -> Option<u32> {
        self.changes.last()?.domains.as_ref().map(|policies| policies.version())
    }

    /// Takes the versions that have come since this was last asked.
    fn came(&mut self) -> Vec<Option<u32>> {
        std::mem::take(&mut self.came)
    }
}

#[test]
fn on_a_stream_policies_come_with_the_first_grant_and_when_they_change() {
    let (five, six) = (policies(5).version(), policies(6).version());
    let mut pair = Pair::new(Transport::Stream, with(Some(5)));
    assert_eq!((pair.came(), pair.in_force()), (vec![Some(five)], Some(five)));
    pair.session.set_wants(pair.now, &resource(), 20.0);
    pair.later(30);
    let more = pair.came();
    assert!(!more.is_empty() && more.iter().all(Option::is_none), "they come once: {more:?}");

    pair.configure(with(Some(6)));
    pair.later(1);
    assert_eq!((pair.came(), pair.in_force()), (vec![Some(six)], Some(six)), "without its asking");
    pair.configure(with(Some(6)));
    pair.later(1);
    assert_eq!((pair.came(), pair.in_force()), (vec![], Some(six)), "nothing has changed");
    pair.configure(with(None));
    pair.later(1);
    assert_eq!((pair.came(), pair.in_force()), (vec![Some(0)], None));
}

#[test]
fn by_polling_policies_come_when_others_are_shown() {
    let (five, six) = (policies(5).version(), policies(6).version());
    let mut pair = Pair::new(Transport::Poll, with(Some(5)));
    assert_eq!((pair.came(), pair.in_force()), (vec![Some(five)], Some(five)));
    pair.later(20);
    let more = pair.came();
    assert!(more.len() >= 3 && more.iter().all(Option::is_none), "they come once: {more:?}");
    pair.configure(with(Some(6)));
    pair.later(6);
    assert_eq!((pair.came()[0], pair.in_force()), (Some(six), Some(six)));
    pair.configure(with(None));
    pair.later(6);
    assert_eq!((pair.came()[0], pair.in_force()), (Some(0), None));
}

#[test]
fn a_stream_that_begins_anew_brings_only_what_is_not_there() {
    let mut pair = Pair::new(Transport::Stream, with(Some(5)));
    pair.came();
    for (template, expected) in [(with(Some(5)), None), (with(Some(7)), Some(policies(7).version()))] {
        // Another leader, who has heard of nobody.
        let config = NodeConfig::new("root", pair.node.epoch().next());
        pair.node = Node::new(pair.now, config, repository(template));
        let (id, _) = pair.stream.expect("a stream");
        let gone = Failure::Unreachable("gone".into());
        pair.session.handle(pair.now, session::Event::Closed { id, failure: gone });
        pair.later(5);
        assert_eq!(pair.came(), [expected]);
    }
    assert_eq!(pair.in_force(), Some(policies(7).version()));
}

#[test]
fn an_answer_that_is_lost_is_made_good_by_the_next() {
    let mut node = Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), repository(with(Some(5))));
    let version = policies(5).version();
    let mut ask = |report_id, shown| told(&mut node, HolderKind::Client, Some(1), report_id, shown);
    assert_eq!(ask(1, Some(0)), Some(version));
    assert_eq!(ask(2, Some(0)), Some(version), "it still has none");
    assert_eq!(ask(3, Some(version)), None);
    assert_eq!(ask(4, Some(99)), Some(version), "others than these");
}

#[test]
fn who_does_not_know_of_domains_is_never_told() {
    let mut node = Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), repository(with(Some(5))));
    for (kind, incarnation) in
        [(HolderKind::Client, None), (HolderKind::Client, Some(3)), (HolderKind::Node, Some(4))]
    {
        for report_id in 1..4 {
            assert_eq!(told(&mut node, kind, incarnation, report_id, None), None, "{kind:?}");
            node.reload(Time::ZERO, repository(with(Some(report_id as u32))));
        }
    }
}

#[test]
fn where_there_are_no_policies_nothing_is_told() {
    let mut node = Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), repository(with(None)));
    assert_eq!(told(&mut node, HolderKind::Client, Some(1), 1, Some(0)), None);
    assert_eq!(told(&mut node, HolderKind::Client, Some(1), 2, Some(9)), Some(0), "that there are none");
}

/// The version of the policies that comes with the grant that answers a report, if there are some.
fn told(
    node: &mut Node,
    kind: HolderKind,
    incarnation: Option<u64>,
    report_id: u64,
    shown: Option<u32>,
) -> Option<u32> {
    let bands: Bands = wants(1.0).bands;
    let ask = Ask {
        kind,
        holder: client("one"),
        incarnation: incarnation.map(Incarnation),
        report_id: incarnation.map(|_| report_id).map(ReportId),
        target_epoch: None,
        reports: vec![Report {
            resource: resource(),
            bands,
            has: None,
            held: None,
            domains: shown,
            integer: None,
            peak: None,
        }],
        line: None,
    };
    let grant = node.ask(Time::ZERO, &ask).expect("it is answered").grants.remove(0);
    grant.domains.map(|domains| domains.version)
}
