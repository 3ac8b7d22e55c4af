//! Policies of domains on their way: from a template to those who hold the lease, over streams and by polling.

use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::internals::domain::{Policies, Rules};
use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{Action, Change, Event, Session, SessionConfig};
use lessor_client::{Kind, Transport};
use lessor_proto::message::{Answer, Ask, Bands, Down, HolderKind, Report};
use lessor_proto::{Epoch, Incarnation, ReportId, Time};
use lessor_server::node::{Node, NodeConfig};
use lessor_server::repository::{Domains, Template};
use lessor_sim::net::{Heard, StillNet};

use super::holders::{client, repository, resource, template, wants};

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

/// A client's session and its server, on a network that takes no time.
struct Pair {
    now: Time,
    net: StillNet,
    /// The version of the policies that came with each grant, if there were some.
    came: Vec<Option<u32>>,
    changes: Vec<Change>,
}

/// The site of the node.
const NODE: usize = 0;

// === impl Pair ===

impl Pair {
    fn new(transport: Transport, template: Template) -> Pair {
        let config = SessionConfig::new(client("web"), Incarnation(1), vec!["root:1".into()]);
        let mut session = Session::new(SessionConfig { transport, ..config });
        session.add(Time::ZERO, resource(), HoldingConfig::new(Kind::Rate, 10.0, 0));
        let mut net = StillNet::new(&[None]);
        net.net.begin(Time::ZERO, NODE, NodeConfig::new("root", Epoch(1)), repository(template));
        net.add(NODE, session);
        let mut pair = Pair { now: Time::ZERO, net, came: Vec::new(), changes: Vec::new() };
        pair.exchange();
        pair
    }

    /// Everything that is to be said now is said, and heard.
    fn exchange(&mut self) {
        let (came, changes) = (&mut self.came, &mut self.changes);
        self.net.settle(self.now, &mut |_, heard: Heard<'_>| match heard {
            Heard::Action(Action::Change(change)) => changes.push(change),
            Heard::Event(Event::Answered { answer: Answer { grants, .. }, .. })
            | Heard::Event(Event::Down { down: Down::Grants(grants), .. }) => {
                came.extend(grants.iter().map(|grant| grant.domains.as_ref().map(|it| it.version)));
            }
            _ => {}
        });
    }

    fn later(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            self.exchange();
        }
    }

    fn want(&mut self, wants: f64) {
        self.net.sessions[0].set_wants(self.now, &resource(), wants);
    }

    fn configure(&mut self, template: Template) {
        let node = self.net.net.node_mut(NODE).expect("it leads");
        node.reload(self.now, repository(template));
        self.exchange();
    }

    /// Another leads, who has heard of nobody.
    fn succeed(&mut self, template: Template) {
        let last = self.net.net.node(NODE).expect("it leads").epoch();
        self.net.lose(NODE);
        let config = NodeConfig::new("root", last.next());
        self.net.net.begin(self.now, NODE, config, repository(template));
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
    pair.want(20.0);
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
        pair.succeed(template);
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
            unenforced: None,
        }],
        line: None,
    };
    let grant = node.ask(Time::ZERO, &ask).expect("it is answered").grants.remove(0);
    grant.domains.map(|domains| domains.version)
}
